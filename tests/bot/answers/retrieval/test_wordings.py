"""Query expansion: glossary and reworded queries, and a second search before "not found"."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest
from fakes.core import ASKED_AT, WORDS, Book, HashEmbedder, Shelf, World, make_channel, make_passage

from bot.answer_settings import AnswerSettings
from bot.answers.citations.citations import CitationService
from bot.answers.generation.answer_writer import AnswerWriter
from bot.answers.generation.extractive import ExtractiveAnswerer
from bot.answers.generation.judge import Judge
from bot.answers.pipeline import Answering
from bot.answers.retrieval.hybrid_retriever import (
    HybridRetriever,
    MultiQueryMode,
    QueryExpansionRetriever,
    content_words,
)
from bot.answers.rewriting.query_rewriting import FollowUpRewriter
from bot.core.errors import ModelUnavailable
from bot.core.models import AnswerState, Question, Retrieval
from storage.chat_models import GlossaryEntry
from storage.text.analyzer import analyze

LEAVE = "Parental leave is 16 weeks for each parent. It begins with the birth or the adoption of the child."
PARKING = "Parking permits are sold at the front desk every Monday."


@dataclass
class Reworder:
    """A model with scripted rewordings or a scripted error."""

    said: Sequence[str] | Exception
    asked: list[str] = field(default_factory=list)

    async def paraphrases(self, question: str) -> Sequence[str]:
        self.asked.append(question)
        if isinstance(self.said, Exception):
            raise self.said
        return self.said


@dataclass
class Watched:
    """A retriever that records its questions."""

    retriever: HybridRetriever
    asked: list[Question] = field(default_factory=list)

    async def retrieve(self, question: Question) -> Retrieval:
        self.asked.append(question)
        return await self.retriever.retrieve(question)


def question(text: str, *, is_wide: bool = False) -> Question:
    return Question("q7", text, make_channel(), ASKED_AT, is_wide=is_wide)


def make_shelf() -> Shelf:
    return Shelf([make_passage(PARKING, title="a"), make_passage(LEAVE, title="b", ordinal=1)])


def watched(shelf: Shelf | None = None) -> Watched:
    return Watched(HybridRetriever(shelf or make_shelf(), HashEmbedder(), AnswerSettings()))


async def test_a_question_without_expansion_is_searched_unchanged() -> None:
    """Shows that without glossary and model neither order nor scores change."""
    inner = watched()
    asked = question("who sells parking permits?")
    found, plain = (
        await QueryExpansionRetriever(inner, Book()).retrieve(asked),
        await inner.retriever.retrieve(asked),
    )
    assert (found.passages, found.figures) == (plain.passages, plain.figures)
    assert inner.asked == [asked]


async def test_candidates_of_all_wordings_are_merged_by_best_score() -> None:
    """Shows that results of all wordings are merged without duplicates."""
    reworder = Reworder(["duration of parental leave"])
    retriever = QueryExpansionRetriever(watched(), Book(), reworder, mode=MultiQueryMode.ALWAYS)
    retrieval = await retriever.retrieve(question("time with a baby, sold at desks"))
    assert sorted(passage.ordinal for passage in retrieval.passages) == [0, 1]
    assert {passage.ordinal: passage.bm25 for passage in retrieval.passages} == {0: 4.0, 1: 3.0}
    assert retrieval.question.text == "time with a baby, sold at desks"
    assert retrieval.question.terms == tuple(analyze("time with a baby, sold at desks"))
    assert [one.text for one in retrieval.question.paraphrases] == ["duration of parental leave"]


async def test_rewording_depends_on_the_setting() -> None:
    """Shows that by default no model gets a question, and under "missed" only after a miss."""
    for mode, is_wide, calls in [
        (MultiQueryMode.NEVER, True, 0),
        (MultiQueryMode.ON_MISS, False, 0),
        (MultiQueryMode.ON_MISS, True, 1),
        (MultiQueryMode.ALWAYS, False, 1),
    ]:
        reworder = Reworder(["parental leave"])
        retriever = QueryExpansionRetriever(watched(), Book(), reworder, mode=mode)
        await retriever.retrieve(question("baby?", is_wide=is_wide))
        assert reworder.asked == ["baby?"] * calls


async def test_a_model_that_fails_leaves_the_questions_own_words(caplog: pytest.LogCaptureFixture) -> None:
    """Shows that the question is answered without it, and that the log has the question's id."""
    inner = watched()
    reworder = Reworder(ModelUnavailable("down"))
    retriever = QueryExpansionRetriever(inner, Book(), reworder, mode=MultiQueryMode.ALWAYS)
    with caplog.at_level(logging.WARNING):
        retrieval = await retriever.retrieve(question("who sells parking permits?"))
    plain = await inner.retriever.retrieve(question("who sells parking permits?"))
    assert retrieval.passages == plain.passages
    assert "question=q7 query expansion failed: ModelUnavailable" in caplog.text
    assert "parking" not in caplog.text


async def test_each_wording_has_the_glossary_of_its_own_words() -> None:
    """Shows that a glossary term that occurs only in a reworded query is expanded, too."""
    inner = watched()
    book = Book((GlossaryEntry("maternity", ("parental",)),))
    retriever = QueryExpansionRetriever(
        inner, book, Reworder(["maternity rules"]), mode=MultiQueryMode.ALWAYS
    )
    await retriever.retrieve(question("baby?"))
    assert [[one.text for one in asked.synonyms] for asked in inner.asked] == [[], ["parental"]]


def test_words_that_only_ask_are_left_out_of_a_wide_search() -> None:
    """Shows the remaining words, and that a question of only such words stays unchanged."""
    assert content_words("How long is the Parental-Leave, please?") == "Parental-Leave,"
    assert content_words("what is it?") == "what is it?"


async def test_a_wide_search_answers_the_same_question() -> None:
    """Shows fewer search terms, a bidirectional glossary, and an unchanged question text."""
    inner = watched()
    book = Book((GlossaryEntry("parental leave", ("baby break",)),))
    retriever = QueryExpansionRetriever(inner, book)
    retrieval = await retriever.retrieve(question("how long is the baby break?", is_wide=True))
    (asked,) = inner.asked
    assert asked.text == "baby break?"
    assert [one.text for one in asked.synonyms] == ["parental leave"]
    assert retrieval.question.text == "how long is the baby break?"
    assert retrieval.question.synonyms == asked.synonyms


def answering(world: World, retriever: QueryExpansionRetriever) -> Answering:
    return Answering(
        AnswerSettings(),
        retriever=retriever,
        writing=AnswerWriter(ExtractiveAnswerer(HashEmbedder())),
        follow_ups=FollowUpRewriter(HashEmbedder()),
        judge=world.judge,
        readings=world.shelf,
        catalog=world.register,
        citations=CitationService(world.register, world.register, world.register),
    )


async def test_a_second_wider_search_precedes_not_found(world: World) -> None:
    """Shows that a miss is answered with the passages of a wider search."""
    inner = watched(replace(world.shelf, passages=make_shelf().passages))
    world.shelf.passages = make_shelf().passages
    book = Book((GlossaryEntry("parental leave", ("baby break",)),))
    answer = await answering(world, QueryExpansionRetriever(inner, book)).answer(question("baby break?"))
    assert [asked.is_wide for asked in inner.asked] == [False, True]
    assert answer.state is AnswerState.PASSAGES
    assert "Parental leave is 16 weeks" in answer.text
    assert answer.passages[0].ordinal == 1


async def test_a_second_search_is_judged_like_the_first(world: World) -> None:
    """Shows that a wide search has the same threshold, and that there is no third one."""
    inner = watched(world.shelf)
    answer = await answering(world, QueryExpansionRetriever(inner, Book())).answer(
        question("capital of Peru?")
    )
    assert [asked.is_wide for asked in inner.asked] == [False, True]
    assert answer.state is AnswerState.NOT_FOUND
    assert answer.text.startswith(WORDS.not_found_in(2))


async def test_a_reworded_query_can_pass_the_threshold(world: World) -> None:
    """Shows that words of a reworded query count as the question's own."""
    inner = watched(world.shelf)
    reworder = Reworder(["daily backups"])
    retriever = QueryExpansionRetriever(inner, Book(), reworder, mode=MultiQueryMode.ON_MISS)
    world.judge = Judge(answer_probability=0.38)
    unworded = await answering(world, QueryExpansionRetriever(watched(world.shelf), Book())).answer(
        question("safety copies?")
    )
    assert unworded.state is not AnswerState.PASSAGES
    answer = await answering(world, retriever).answer(question("safety copies?"))
    assert answer.state is AnswerState.PASSAGES
    assert answer.citations[0].file == "sop-it-04.pdf"
    assert reworder.asked == ["safety copies?"]
