"""Hybrid retrieval: BM25 and vectors in one ranking, with exact hits and without duplicates."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from fakes.core import (
    ASKED_AT,
    Found,
    HashEmbedder,
    Shelf,
    ask,
    make_channel,
    make_passage,
    make_publication,
)
from harness.waiting import PATIENCE

from bot.answer_settings import AnswerSettings
from bot.answers.retrieval.hybrid_retriever import HybridRetriever
from bot.answers.retrieval.ranking import fuse, mark_near_duplicates, truncate_keeping_exact
from bot.answers.understanding.channel_documents import named_documents
from bot.answers.understanding.question_terms import (
    exact_words,
    holds_exactly,
    identified_documents,
    rare_words,
)
from bot.core.models import Passage, Question
from storage.errors import IndexUnavailable
from storage.index.base import Hit
from storage.text.analyzer import analyze

PUBLICATION = make_publication()
PUBLICATIONS = {PUBLICATION.id: PUBLICATION}


def without_duplicates(passages: list[Passage]) -> list[Passage]:
    return [passage for passage, earlier in mark_near_duplicates(passages) if earlier is None]


def hit(ordinal: int, score: float) -> Hit:
    return Hit(PUBLICATION.id, ordinal, f"text {ordinal}", 1, 1, (), score, f"text {ordinal}")


def question(text: str) -> Question:
    return Question("q", text, make_channel(), ASKED_AT)


def test_scores_are_mixed_after_normalising() -> None:
    """Scores of each leg are normalized to 0-1 and weighted; the raw scores are preserved."""
    found = Found(
        [hit(1, 12.0), hit(2, 8.0), hit(3, 4.0)], [hit(2, 0.9), hit(1, 0.5), hit(4, 0.1)], PUBLICATIONS
    )
    mixed = fuse(found, 0.6)
    assert [(passage.ordinal, round(passage.score, 3)) for passage in mixed] == [
        (1, 0.8),
        (2, 0.7),
        (3, 0.0),
        (4, 0.0),
    ]
    assert [(passage.bm25, passage.vector) for passage in mixed] == [
        (12.0, 0.5),
        (8.0, 0.9),
        (4.0, None),
        (None, 0.1),
    ]


@pytest.mark.parametrize("empty", ["words", "vectors"])
def test_a_leg_without_hits_has_no_weight(empty: str) -> None:
    """Without vectors, or without any matching word, the other leg has full weight."""
    hits = [hit(1, 9.0), hit(2, 1.0)]
    found = Found([] if empty == "words" else hits, [] if empty == "vectors" else hits, PUBLICATIONS)
    assert [passage.score for passage in fuse(found, 0.6)] == [1.0, 0.0]


def test_a_document_without_vectors_disables_similarity() -> None:
    """While such a document is among the best by words, similarity is ignored for all."""
    found = Found(
        [hit(1, 12.0), hit(2, 4.0)], [hit(2, 0.9)], PUBLICATIONS, words_only=frozenset({PUBLICATION.id})
    )
    assert [(passage.ordinal, passage.score) for passage in fuse(found, 0.5)] == [(1, 1.0), (2, 0.0)]


def test_tiny_differences_are_not_stretched() -> None:
    """Seven paraphrased pages stay close to one another in both legs."""
    found = Found([hit(1, 1.5), hit(2, 0.9)], [hit(1, 0.71), hit(2, 0.66)], PUBLICATIONS)
    assert [round(passage.score, 2) for passage in fuse(found, 0.5)] == [1.0, 0.85]
    unfound = Found([hit(1, 1.5)], [hit(1, 0.71), hit(2, 0.66)], PUBLICATIONS)
    assert [round(passage.score, 2) for passage in fuse(unfound, 0.5)] == [1.0, 0.78]
    rare = Found([hit(1, 9.5)], [hit(1, 0.71), hit(2, 0.66)], PUBLICATIONS)
    assert [round(passage.score, 2) for passage in fuse(rare, 0.5)] == [1.0, 0.4]


def test_an_exact_hit_is_never_cut() -> None:
    """A low-ranked passage with the code replaces the last one without it."""
    passages = [make_passage(f"text {number}", ordinal=number) for number in range(5)]
    kept = truncate_keeping_exact(passages, 3, lambda passage: passage.ordinal in {0, 4})
    assert [passage.ordinal for passage in kept] == [0, 1, 4]


def test_codes_numbers_and_names_are_exact() -> None:
    """Codes, numbers, acronyms and names in a question require literal matches."""
    assert exact_words("What does SOP-IT-04 say to Anna on 1,204.5 kg? The IT team knows.") == [
        "SOP-IT-04",
        "Anna",
        "1,204.5",
        "IT",
    ]


def test_only_rare_words_are_kept_exactly() -> None:
    """A name that occurs in every chunk distinguishes none of them."""
    asked = ask("What did Contoso buy under SOP-IT-04?", "contoso a", "contoso b", "contoso sop-it-04")
    holds = holds_exactly(rare_words(asked, rarity=0.5))
    assert holds(make_passage("see SOP‑IT‑04"))
    assert not holds(make_passage("Contoso", title=""))
    assert not holds(make_passage("SOP-IT-045", title=""))


def test_copies_collapse_and_twins_do_not() -> None:
    """Equal text in two files is shown once; with another number it is different."""
    text = "The deductible of this plan is {} dollars a year for each member of the family covered by it."
    passages = [
        make_passage(text.format(500)),
        make_passage(text.format(500).upper(), file="copy.pdf"),
        make_passage(text.format(900), file="other.pdf"),
    ]
    assert [passage.publication.file for passage in without_duplicates(passages)] == [
        "sop-it-04.pdf",
        "other.pdf",
    ]


def test_numbers_of_the_same_digits_are_not_the_same() -> None:
    """A page with "1 of 20" and one with "12 of 0" differ, however long the rest of the page is."""
    rest = " ".join(f"word{chr(97 + number % 26)}{chr(97 + number // 26)}" for number in range(120))
    passages = [make_passage(f"{rest} limit 1 of 20"), make_passage(f"{rest} limit 12 of 0", ordinal=1)]
    assert len(without_duplicates(passages)) == 2


def test_nearly_equal_pages_collapse() -> None:
    """A single changed word in a long page makes no second passage."""
    words = [f"word{chr(97 + number % 26)}{chr(97 + number // 26)}" for number in range(200)]
    changed = [*words[:100], "other", *words[101:]]
    passages = [make_passage(" ".join(words)), make_passage(" ".join(changed), ordinal=1)]
    assert len(without_duplicates(passages)) == 1


def test_a_named_document_is_preferred() -> None:
    """A title or file named in the question is boosted; words shared by several names are not."""
    standard = make_publication("Northwind_Standard.pdf", "Northwind Standard")
    plus = make_publication("Northwind_Plus.pdf", "Northwind Health Plus")
    shares = named_documents(analyze("deductible of Northwind Health Plus"), [standard, plus])
    assert shares[plus.id] == 1.0
    assert shares[standard.id] == 0.0
    assert set(named_documents(analyze("Northwind deductible"), [standard, plus]).values()) == {0.0}


def test_a_document_that_contains_the_code_is_boosted() -> None:
    """A report is identified by its number, although only its first page contains it."""
    first = make_passage("Report NYC08CA055 of Tallahassee", file="a.pdf")
    cause = make_passage("The probable cause was the wind.", file="a.pdf", ordinal=1)
    other = make_passage("The probable cause was fuel.", file="b.pdf")
    shares = identified_documents(["NYC08CA055"], [other, cause, first])
    assert shares == {first.publication.id: 1.0, other.publication.id: 0.0}
    assert identified_documents(["probable"], [other, cause]) == {}
    assert identified_documents([], [other]) == {}


async def test_the_named_document_ranks_first() -> None:
    """Two equal passages: that of the named document ranks first."""
    text = "The yearly deductible is {} dollars."
    shelf = Shelf(
        [
            make_passage(text.format(500), file="a.pdf", title="Northwind Standard"),
            make_passage(text.format(900), file="b.pdf", title="Northwind Health Plus"),
        ]
    )
    retrieval = await HybridRetriever(shelf, HashEmbedder(), AnswerSettings()).retrieve(
        question("deductible in Health Plus")
    )
    assert retrieval.passages[0].publication.file == "b.pdf"
    assert all(0 <= passage.score <= 1 for passage in retrieval.passages)


async def test_at_least_twenty_candidates_are_returned() -> None:
    """Candidates are numerous, distinct and sorted by score."""
    passages: list[Passage] = [
        make_passage(f"Rule {number} of the office says something on item {number}.", ordinal=number)
        for number in range(60)
    ]
    retrieval = await HybridRetriever(Shelf(passages), HashEmbedder(), AnswerSettings()).retrieve(
        question("office rule")
    )
    scores = [passage.score for passage in retrieval.passages]
    assert len(scores) == 24
    assert scores == sorted(scores, reverse=True)


async def test_without_vectors_words_alone_decide() -> None:
    """While only the quick reading is live, the question has no vector."""
    shelf = Shelf([make_passage("Backups run daily.")], has_vectors=False)
    retrieval = await HybridRetriever(shelf, HashEmbedder(), AnswerSettings()).retrieve(
        question("When do backups run?")
    )
    assert retrieval.question.vector is None
    assert retrieval.passages[0].vector is None
    assert retrieval.passages[0].score > 0.5


async def test_rare_terms_have_more_weight() -> None:
    """The result contains the IDF weights of the question's terms in this channel."""
    shelf = Shelf([make_passage("office backup"), make_passage("office chair", ordinal=1)])
    idf = (
        await HybridRetriever(shelf, HashEmbedder(), AnswerSettings()).retrieve(
            question("office backup zebra")
        )
    ).question.idf
    assert idf["zebra"] > idf[analyze("backup")[0]] > idf[analyze("office")[0]] > 0


@pytest.mark.parametrize(
    ("text", "weighed"),
    [
        ("What is in the office?", {"offic"}),
        ("What does IT say on the office?", {"offic", "it"}),
        ("What is it?", {"what", "is", "it"}),
        ("Wofür ist das?", {"wofur", "wofuer", "ist", "das"}),
    ],
)
async def test_function_words_have_no_weight_next_to_others(text: str, weighed: set[str]) -> None:
    """Function words are not counted, unless there is no other word or one is written like a name."""
    shelf = Shelf([make_passage("What is it? It is the office of IT.")])
    retrieval = await HybridRetriever(shelf, HashEmbedder(), AnswerSettings()).retrieve(question(text))
    assert retrieval.question.idf.keys() == shelf.counted == weighed


async def test_an_index_that_is_down_is_no_empty_result() -> None:
    """The error is raised, so that the reply is "try again" and not "not in your documents"."""
    with pytest.raises(IndexUnavailable):
        await HybridRetriever(Shelf(error=IndexUnavailable("x")), HashEmbedder(), AnswerSettings()).retrieve(
            question("a?")
        )


class SlowEmbedder(HashEmbedder):
    """Starts at once and ends on demand."""

    def __init__(self) -> None:
        super().__init__()
        self.may_end = asyncio.Event()

    async def aembed(self, texts: Sequence[str]) -> np.ndarray:
        await self.may_end.wait()
        return await super().aembed(texts)


class PatientShelf(Shelf):
    """Lets the embedder finish once a search was requested."""

    def __init__(self, passages: list[Passage], embedder: SlowEmbedder) -> None:
        super().__init__(passages)
        self._embedder = embedder

    async def search(self, *asked: Any, limit: int) -> Found:
        self._embedder.may_end.set()
        return await super().search(*asked, limit=limit)


async def test_the_search_begins_before_the_question_is_embedded() -> None:
    """Shows that search and embedding are concurrent: a sequential search would never return."""
    embedder = SlowEmbedder()
    retriever = HybridRetriever(
        PatientShelf([make_passage("Backups run daily.")], embedder), embedder, AnswerSettings()
    )
    async with asyncio.timeout(PATIENCE):
        (found,) = (await retriever.retrieve(question("When do backups run?"))).passages
    assert found.vector is not None
