"""Answers from several documents: each quoted by name, missing ones named, differences pointed out.

Also covers one document with two values on two pages, with and without a model.
"""

from __future__ import annotations

from collections.abc import Sequence
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
from harness.tables import for_each

from bot.answers.generation.document_comparison import compare, compare_claims
from bot.answers.generation.judge import Judge
from bot.answers.generation.quote_selection import QuoteCandidate, select_quotes
from bot.answers.verification.claims import VerifiedClaim, place
from bot.core.models import AnswerState, Claim, Draft, Language, Quote
from bot.core.wording import reply_words
from bot.platforms.slack import blocks
from bot.platforms.teams import cards
from storage.index.base import document_facet
from storage.models import MetadataField
from storage.text.sentences import Quotable

ALLOWANCE = "How much is the travel allowance?"


@dataclass
class FacetedShelf(Shelf):
    """A shelf whose search respects the requested document filters."""

    async def search(self, *asked: Any, **options: Any) -> Found:
        *others, scopes = asked
        wanted = {facet for scope in scopes for facet in scope}
        held = [
            one
            for one in self.passages
            if not wanted or document_facet(one.publication.document_id) in wanted
        ]
        return await Shelf(held).search(*others, (), **options)


def channel(**documents: str) -> World:
    """Return a channel with one-sentence documents by title; the judge requires a close sentence."""
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
    return World(FacetedShelf(passages), Register(statuses), judge=Judge(0.3))


def quote(text: str, file: str, score: float, effective: str = "") -> QuoteCandidate:
    """Return a sentence of a document with its effective date."""
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


def test_differing_documents_are_each_quoted_newest_first() -> None:
    """Shows it beyond the usual number of quotes, with undated documents last."""
    assert compared(ALLOWANCE, BERN, ROME, OSLO) == (True, ["rome", "bern", "oslo"])


@for_each(
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
def test_agreeing_documents_are_not_reported_as_differing(question: str, one: str, other: str) -> None:
    """Covers one value in two spellings, no value, other numbers, and a comparison question."""
    assert not compared(question, quote(one, "bern", 9.0), quote(other, "rome", 8.9))[0]


def test_a_document_far_from_the_question_does_not_differ() -> None:
    """Covers near-duplicates of the quoted document, and quotes of a model far below the best score."""
    assert not compared(ALLOWANCE, BERN, replace(OSLO, score=BERN.score - 3))[0]
    better = quote("An allowance is what an office pays.", "help", BERN.score + 3)
    claim = VerifiedClaim("It is $40 per day.", (place(BERN.item, 0, len(BERN.unit.text)),))
    assert compare_claims(ask(ALLOWANCE), [claim], [BERN, ROME])
    assert not compare_claims(ask(ALLOWANCE), [claim], [better, BERN, ROME])
    assert not compare_claims(ask(ALLOWANCE), [claim], [replace(ROME, score=BERN.score + 3), BERN])


def test_a_question_in_any_language_sees_values_with_a_unit() -> None:
    """Shows that documents that differ only in their number of days differ."""
    bern = quote("Der Urlaub in Bern beträgt 25 Tage im Jahr.", "bern", 9.0)
    rome = quote("Der Urlaub in Rom beträgt 28 Tage im Jahr.", "rome", 8.8)
    assert compared("Wie lange ist der Urlaub?", bern, rome)[0]


async def test_the_reply_says_that_documents_differ_and_names_each() -> None:
    """Shows lead, names and quotes, as both chat platforms show them."""
    world = channel(
        Bern="The travel allowance in Bern is $40 per day.",
        Rome="The travel allowance in Rome is $30 per day.",
    )
    answer = await replace(world, judge=Judge(0.0)).answering().answer(world.question(ALLOWANCE))
    assert answer.state is AnswerState.PASSAGES
    lead, *places = answer.text.split("\n\n")
    assert lead == WORDS.documents_differ
    assert sorted(place.splitlines()[0] for place in places) == ["Bern, p. 1", "Rome, p. 1"]
    assert [one.number for one in answer.citations] == [1, 2]
    assert WORDS.documents_differ in str(blocks.render(answer, 5).blocks)
    assert cards.render(answer).text.startswith(WORDS.documents_differ)


async def test_a_comparison_quotes_or_reports_each_named_document() -> None:
    """Shows a separate search per document, and that a third document is left out."""
    world = channel(
        Bern="The travel allowance is $40 per day.",
        Rome="Dogs are welcome.",
        Oslo="The travel allowance is $55 per day.",
    )
    asked = world.question("Compare the travel allowance in Bern and in Rome")
    answer = await world.answering().answer(asked)
    assert answer.text.splitlines() == [
        WORDS.nothing_in(documents="“Rome”"),
        "",
        "Bern, p. 1",
        "“The travel allowance is $40 per day.” [1]",
    ]
    both = await world.answering().answer(world.question("Compare the travel allowance in Oslo and in Bern"))
    assert [place.partition(",")[0] for place in both.text.split("\n\n")] == ["Oslo", "Bern"]


async def test_a_model_compares_what_was_found_in_each() -> None:
    """Shows that the model gets all named documents, and that the reply names the one without an answer."""
    world = channel(Bern="The travel allowance is $40 per day.", Rome="Dogs are welcome.")
    said = "The travel allowance is $40 per day."
    draft = Draft((Claim(said, (Quote(1, said),)),), missing="in Rome")
    asked = world.question("Compare the travel allowance in Bern and in Rome")
    answer = await world.answering(Scripted(draft)).answer(asked)
    assert answer.text == f"{said} [1]\n" + WORDS.nothing_in(documents="“Rome”")
    assert answer.state is AnswerState.PARTIAL


MAXIMUM = "What is the out-of-pocket maximum of Standard?"
SUMMARY = "The out-of-pocket maximum for Standard is $6,000 per person, per year."
DETAILS = "The out-of-pocket maximum for the Standard plan is $6,350 for an individual."


def plan(*texts: str, headings: tuple[str, ...] = (), pages: tuple[int, ...] = (3, 14)) -> World:
    """Return a channel with one document, one sentence per page."""
    passages = [
        make_passage(text, ordinal=at, page=page, heading_path=headings[at : at + 1])
        for at, (text, page) in enumerate(zip(texts, pages, strict=False))
    ]
    return World(Shelf(passages), Register([make_status("sop-it-04.pdf")]), judge=Judge(0.0))


def said(text: str, passage: int = 1) -> Scripted:
    """Return a model that writes a sentence of a passage."""
    return Scripted(Draft((Claim(text, (Quote(passage, text),)),)))


async def test_a_document_that_gives_two_values_is_quoted_with_both() -> None:
    """Shows it without a model, in every language; the only document is not named."""
    world = plan(SUMMARY, DETAILS, headings=("Out-of-Pocket Maximum", "Out-Of-Pocket Maximum"))
    answer = await world.answering().answer(world.question(MAXIMUM))
    lead, *lines = filter(None, answer.text.splitlines())
    assert lead == WORDS.values_differ
    assert sorted(line[:-4] for line in lines[1::2]) == [f"“{SUMMARY}”", f"“{DETAILS}”"]
    assert sorted(one.page for one in answer.citations) == [3, 14]
    assert answer.state is AnswerState.PASSAGES
    assert len({reply_words(language).values_differ for language in Language}) == len(Language)


@pytest.mark.parametrize(
    ("question", "score", "is_differing"),
    [
        ("How much is the fee?", 6.0, True),
        ("How much is the fee?", 4.0, False),
        ("How much is the fee in Bern?", 6.0, False),
    ],
)
def test_another_page_differs_if_it_is_equally_relevant(
    question: str, score: float, is_differing: bool
) -> None:
    """Covers a page far below the best score, and one that matches fewer words of the question."""
    bern, other = "The fee is $40 in Bern.", "The fee is $50."
    items = make_evidence(make_passage(bern, page=1), make_passage(other, page=2, ordinal=1))
    ranked = [
        QuoteCandidate(item, Quotable(0, len(text), text, is_row=False), score=at)
        for item, text, at in zip(items, (bern, other), (9.0, score), strict=True)
    ]
    assert compare(ask(question), ranked[:1], ranked).is_differing is is_differing


async def test_each_value_of_a_document_is_quoted_once() -> None:
    """A third page that agrees with the second is not quoted."""
    again = "In summary, the out-of-pocket maximum for the Standard plan is $6,350 for an individual."
    world = plan(SUMMARY, DETAILS, again, pages=(3, 14, 15))
    answer = await world.answering(said(SUMMARY)).answer(world.question(MAXIMUM))
    assert sum("$6,350" in line for line in answer.text.splitlines()) == 1


@pytest.mark.parametrize(("text", "other"), [(SUMMARY, DETAILS), (DETAILS, SUMMARY)])
async def test_the_other_value_is_added_to_a_models_answer(text: str, other: str) -> None:
    """The sentence keeps its citation number, and the other value is quoted after it."""
    world = plan(SUMMARY, DETAILS)
    number = (SUMMARY, DETAILS).index(text) + 1
    answer = await world.answering(said(text, number)).answer(world.question(MAXIMUM))
    assert [line for line in answer.text.splitlines() if line and ", p." not in line] == [
        f"{text} [1]",
        WORDS.values_differ,
        f"“{text}” [1]",
        f"“{other}” [2]",
    ]
    assert answer.state is AnswerState.GROUNDED


async def test_the_other_document_is_added_to_a_models_answer() -> None:
    """Shows each under its name, and no rejected quote."""
    world = channel(
        Bern="The travel allowance in Bern is $40 per day.",
        Rome="The travel allowance in Rome is $30 per day.",
    )
    claims = [
        Claim(text, (Quote(1, text),)) for text in ("The travel allowance is $40 per day.", "It is $99.")
    ]
    draft = Draft(tuple(claims))
    model = Scripted(draft)
    answer = await replace(world, judge=Judge(0.0)).answering(model).answer(world.question(ALLOWANCE))
    assert answer.text.splitlines() == [
        "The travel allowance is $40 per day. [1]",
        WORDS.documents_differ,
        "",
        "Bern, p. 1",
        "“The travel allowance in Bern is $40 per day.” [1]",
        "",
        "Rome, p. 1",
        "“The travel allowance in Rome is $30 per day.” [2]",
    ]
    assert answer.state is AnswerState.PARTIAL


@for_each(
    ("question", "one", "other"),
    [
        (MAXIMUM, SUMMARY, "The out-of-pocket maximum for Standard is $6,000.00 for an individual."),
        (MAXIMUM, SUMMARY, "The out-of-pocket maximum for Health Plus is $4,000 per person."),
        (MAXIMUM, SUMMARY, "The out-of-network maximum for Standard is $9,000 per person."),
        (MAXIMUM, SUMMARY, "The out-of-pocket maximum for Standard is $500 per month."),
        (MAXIMUM, SUMMARY, "Standard has an out-of-pocket maximum. It pays 80% of the cost."),
        ("How much is the fee?", "The fee was $40 in 2023.", "The fee was $50 in 2024."),
        ("How much is the fee?", "The fee for small parcels is $40.", "The fee for large parcels is $50."),
        ("How much is the fee?", "The fee is $40.", "The fee of a late return to the main desk is $50."),
        ("How much is the fee?", "A $40 fee is due.", "A $50 fee is due for a fine."),
        ("How much is the fee?", "The fee is $40 in Bern.", "The fee is $50 in Rome."),
        ("How much is the fee in Bern?", "The fee is $40 in Bern.", "The fee is $50."),
        ("How long is it?", "The trial takes 3 days.", "The trial takes 2 hours."),
        ("How long does it spin?", "Items:\n• Spin it for 1 min.", "Items:\n• Spin it for 2 min."),
        ("How do I spin it?", "Spin the tube for 1 min.", "Spin the tube for 2 min."),
    ],
)
async def test_different_subjects_are_no_contradiction(question: str, one: str, other: str) -> None:
    """Covers equal values, other names, scopes, years, units and steps, and values not asked for."""
    for world in (plan(one, other), plan(other, one)):
        for model in ((), (said(one),)):
            answer = await world.answering(*model).answer(world.question(question))
            assert WORDS.values_differ not in answer.text


@pytest.mark.parametrize(
    "world",
    [
        plan(SUMMARY, DETAILS, "Lunch is free.", pages=(3, 3, 4)),
        plan(SUMMARY, DETAILS, headings=("In the network", "Elsewhere")),
    ],
)
async def test_one_page_or_two_sections_are_no_contradiction(world: World) -> None:
    """Two steps on a page may differ, and so may sections on different subjects."""
    answer = await world.answering(said(SUMMARY)).answer(world.question(MAXIMUM))
    assert answer.text == f"{SUMMARY} [1]"


async def test_values_not_in_the_models_sentence_are_not_compared() -> None:
    """Shows that a cited sentence may contain a value that another page contradicts."""
    world = plan(f"{SUMMARY[:-1]}, and 3 visits are free.", f"{DETAILS[:-1]}, and 3 visits are free.")
    text = "The out-of-pocket maximum for Standard is per person."
    answer = await world.answering(said(text)).answer(world.question(MAXIMUM))
    assert answer.text == f"{text} [1]"


def dated(text: str, file: str, day: str, score: float) -> QuoteCandidate:
    """Return a dated sentence of a document, under the heading Returns."""
    one = quote(text, file, score, day)
    passage = replace(one.item.passage, heading_path=("Returns",))
    return replace(one, item=replace(one.item, passage=passage))


def test_a_value_of_the_requested_kind_differs_in_any_wording() -> None:
    """Shows a newer document with another number of days first, and no unrelated document."""
    old = dated("Customers may return goods within thirty days of purchase.", "shop", "2016-03-01", 9.0)
    new = dated("Returned goods are accepted for fourteen days.", "policy", "2025-02-01", 8.0)
    else_ = dated("The parcel is kept for fourteen days.", "post", "2025-02-01", 8.5)
    asked = ask("How long can I return goods?")
    assert compare(asked, [old], [old, new]).quotes == [new, old]
    assert not compare(asked, [old], [old, else_]).is_differing


def test_among_agreeing_documents_the_newest_comes_first() -> None:
    """Covers passages without a differing value; unrelated passages keep their rank."""
    old = dated("Goods are returned to the shop.", "old", "2016-03-01", 9.0)
    new = dated("Goods are returned to the shop desk.", "new", "2025-02-01", 8.0)
    third = dated("Returned parcels must be insured by whoever sends them.", "third", "2026-01-01", 7.0)
    assert select_quotes([old, new, third], is_spanning=False) == [new, old, third]


@pytest.mark.parametrize(
    ("question", "others", "is_named"),
    [
        ("Which offices pay a travel allowance?", ("Oslo",), True),
        ("Which offices pay a travel allowance?", ("Oslo", "Kyiv", "Lima"), False),
        ("Travel allowance of $30 vs $40 per day?", ("Oslo",), False),
    ],
)
async def test_documents_without_an_answer_are_named_if_most_have_one(
    question: str, others: Sequence[str], is_named: bool
) -> None:
    """Shows that a question that only sounds like a comparison does not list all other documents."""
    paying = {"Bern": "The travel allowance is $40 per day.", "Rome": "The travel allowance is $30 per day."}
    world = channel(**paying, **{name: f"Dogs are welcome in {name}." for name in others})
    answer = await world.answering().answer(world.question(question))
    first, *_ = answer.text.splitlines()
    assert (first == WORDS.nothing_in(documents="“Oslo”")) is is_named
    assert "Lima" not in answer.text
    assert {one.title for one in answer.citations} == set(paying)
