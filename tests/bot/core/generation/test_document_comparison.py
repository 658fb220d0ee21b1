"""Several documents: each is quoted by name, one that says nothing is named, and differences are said."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest
from fakes.core import (
    WORDS,
    Found,
    Register,
    Scripted,
    Shelf,
    World,
    ask,
    make_evidence,
    make_passage,
    make_status,
)

from bot.core.generation.document_comparison import compare
from bot.core.generation.extractive import QuoteCandidate
from bot.core.generation.judge import Judge
from bot.core.models import AnswerState, Claim, Draft, Quote
from bot.slack import blocks
from bot.teams import cards
from storage.index.base import document_facet
from storage.models import MetadataField
from storage.text.sentences import Quotable

ALLOWANCE = "How much is the travel allowance?"


@dataclass
class FacetedShelf(Shelf):
    """A shelf whose search keeps to the documents that are asked for."""

    async def find(self, *asked: Any, **options: Any) -> Found:
        *others, scopes = asked
        wanted = {facet for scope in scopes for facet in scope}
        held = [
            one
            for one in self.passages
            if not wanted or document_facet(one.publication.document_id) in wanted
        ]
        return await Shelf(held).find(*others, (), **options)


def channel(**documents: str) -> World:
    """A channel of documents of one sentence each, by title; the judge wants a sentence that is near."""
    passages = [
        make_passage(text, file=f"{title.lower()}.pdf", title=title) for title, text in documents.items()
    ]
    statuses = [
        replace(
            make_status(one.publication.file),
            title=one.publication.title,
            document=one.publication.document_id,
        )
        for one in passages
    ]
    return World(FacetedShelf(passages), Register(statuses), judge=Judge(0.3, 0.2))


def quote(text: str, file: str, score: float, effective: str = "") -> QuoteCandidate:
    """A sentence of a document, with the day from which it holds."""
    passage = make_passage(text, file=file, title=file)
    fields = {"effective": MetadataField("effective", effective, 1, (), effective)} if effective else {}
    [item] = make_evidence(replace(passage, publication=replace(passage.publication, metadata=fields)))
    return QuoteCandidate(item, Quotable(0, len(text), text, is_row=False), score=score)


def compared(question: str, *ranked: QuoteCandidate) -> tuple[bool, list[str]]:
    found = compare(ask(question), ranked[:2], ranked)
    return found.is_differing, [one.item.passage.publication.file for one in found.quotes]


BERN = quote("The travel allowance in Bern is $40 per day.", "bern", 9.0, "2023-05-01")
ROME = quote("The travel allowance in Rome is $30 per day.", "rome", 8.8, "2024-05-01")
OSLO = quote("The travel allowance in Oslo is $55 per day.", "oslo", 7.5)


def test_documents_that_differ_are_each_quoted_the_newest_first() -> None:
    """Shows it beyond what would be quoted without, undated ones last."""
    assert compared(ALLOWANCE, BERN, ROME, OSLO) == (True, ["rome", "bern", "oslo"])


@pytest.mark.parametrize(
    ("question", "one", "other"),
    [
        (ALLOWANCE, "The allowance in Bern is $40 per day.", "The allowance in Rome is 40 USD per day."),
        ("Who pays the allowance?", "The office in Bern pays the fare.", "The office in Rome pays the fare."),
        ("How long is the notice?", "See 4.1: the notice is 30 days.", "See 4.2: the notice is thirty days."),
        ("Where is it paid?", "Bern pays it on floor 4, see 4.1.", "Rome pays it on floor 5, see 5.1."),
        ("How many hours are needed?", "Last flight review: 06/01/2006.", "Last flight review: 10/01/2006."),
        ("What did the test show?", "Last flight review: 06/01/2006.", "Last flight review: 10/01/2006."),
        ("Compare the allowances", "The allowance in Bern is $40.", "The allowance in Rome is $30."),
    ],
)
def test_documents_that_agree_are_not_said_to_differ(question: str, one: str, other: str) -> None:
    """Shows it for one value in two spellings, no value, numbers nobody asked for, and a comparison."""
    assert not compared(question, quote(one, "bern", 9.0), quote(other, "rome", 8.9))[0]


def test_a_question_in_any_language_sees_values_with_a_unit() -> None:
    """Shows that twins which differ in nothing but their days differ."""
    bern = quote("Der Urlaub in Bern beträgt 25 Tage im Jahr.", "bern", 9.0)
    rome = quote("Der Urlaub in Rom beträgt 28 Tage im Jahr.", "rome", 8.8)
    assert compared("Wie lange ist der Urlaub?", bern, rome)[0]


async def test_the_reply_says_that_they_differ_and_names_each() -> None:
    """Shows lead, names and quotes of an answer, as both chat platforms show them."""
    world = channel(
        Bern="The travel allowance in Bern is $40 per day.",
        Rome="The travel allowance in Rome is $30 per day.",
    )
    answer = await replace(world, judge=Judge(0.0, 0.0)).answering().answer(world.question(ALLOWANCE))
    assert answer.state is AnswerState.GROUNDED
    lines = answer.text.splitlines()
    assert lines[0] == WORDS.documents_differ
    assert sorted(line[:7] for line in lines[1:]) == ["Bern: “", "Rome: “"]
    assert [one.number for one in answer.citations] == [1, 2]
    assert WORDS.documents_differ in str(blocks.render(answer, 5).blocks)
    assert cards.render(answer, 5).text.startswith(WORDS.documents_differ)


async def test_a_comparison_quotes_each_named_document_or_says_which_has_nothing() -> None:
    """Shows that each is searched by itself, and that a third document is left out."""
    world = channel(
        Bern="The travel allowance is $40 per day.",
        Rome="Dogs are welcome.",
        Oslo="The travel allowance is $55 per day.",
    )
    asked = world.question("Compare the travel allowance in Bern and in Rome")
    answer = await world.answering().answer(asked)
    assert answer.text.splitlines() == [
        WORDS.quotes_lead,
        "Bern: “The travel allowance is $40 per day.” [1]",
        WORDS.nothing_in(documents="“Rome”"),
    ]
    both = await world.answering().answer(world.question("Compare the travel allowance in Oslo and in Bern"))
    assert [line.partition(":")[0] for line in both.text.splitlines()[1:]] == ["Oslo", "Bern"]


async def test_a_model_compares_what_was_found_in_each() -> None:
    """Shows that it reads every named document, and that the reply still says which has nothing."""
    world = channel(Bern="The travel allowance is $40 per day.", Rome="Dogs are welcome.")
    said = "The travel allowance is $40 per day."
    draft = Draft((Claim(said, (Quote(1, said),)),))
    asked = world.question("Compare the travel allowance in Bern and in Rome")
    answer = await world.answering(Scripted(draft)).answer(asked)
    assert answer.text == f"{said} [1]\n" + WORDS.nothing_in(documents="“Rome”")
