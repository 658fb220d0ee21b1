"""Verification of a model's sentences: facts by rules, meaning by a judge in one call per answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fakes.core import ask, make_evidence, make_passage
from harness.tables import for_each

from bot.answers.generation.sentence_verifier import NOT_SUPPORTED, SentenceVerifier
from bot.answers.verification.claims import VerifiedDraft
from bot.core.errors import ModelUnavailable
from bot.core.models import (
    AnalyzedQuestion,
    Claim,
    Draft,
    Evidence,
    Judgement,
    Language,
    Quote,
    QuotedSentence,
)

TEXT = (
    "The ferry leaves the island at 0745 CET. Bicycles cost $4.50 each. A crossing takes 90 minutes.\n\n"
    "Not carried:\n- Gas bottles\n- Horses\n\n"
    "Tea weighs 25-50g. Tickets are valid from 1 May 2024 to 15 May 2024. Season passes are 1,250 kroner. "
    "Contact the harbour office by phone."
)
QUESTION = "What do I need to know about the ferry?"


class LabelledJudge:
    """Accepts sentences that contain one of its words, and records the requests."""

    def __init__(self, *words: str, missing: str = "", error: Exception | None = None) -> None:
        self.words = words
        self.missing = missing
        self.error = error
        self.asked: list[Sequence[QuotedSentence]] = []

    async def judge(self, question: AnalyzedQuestion, sentences: Sequence[QuotedSentence]) -> Judgement:
        self.asked.append(sentences)
        if self.error:
            raise self.error
        return Judgement([any(word in one.text for word in self.words) for one in sentences], self.missing)


def evidence() -> list[Evidence]:
    return make_evidence(
        make_passage(TEXT, title="Timetable", file="2024/ferry.pdf", heading_path=("Ferry",))
    )


async def verify(judge: LabelledJudge, *claims: Claim, question: str = QUESTION) -> VerifiedDraft:
    return await SentenceVerifier(ask(question, TEXT), evidence(), judge).verify(Draft(claims))


def claim(text: str, *quotes: str) -> Claim:
    return Claim(text, tuple(Quote(1, quote) for quote in quotes))


RIDE = claim("The ride is an hour and a half long.", "A crossing takes 90 minutes")
BIKE = claim("Taking your bike along is four and a half dollars.", "Bicycles cost $4.50 each")


async def test_paraphrases_are_judged_and_supported_ones_shown() -> None:
    """All sentences are in a single call, in order, each with the full sentences of its quotes."""
    judge = LabelledJudge("ride")
    verified = await verify(judge, RIDE, BIKE)
    assert [one.text for one in verified.claims] == [RIDE.text]
    assert verified.faults == (NOT_SUPPORTED,)
    ((first, second),) = judge.asked
    assert first.sources[0].text == "A crossing takes 90 minutes."
    assert first.sources[0].names == ("Timetable", "ferry.pdf", "Ferry")
    assert second.text == BIKE.text


async def test_a_list_is_judged_as_a_whole_and_quotes_stay() -> None:
    """A list's lead means nothing without its items."""
    judge = LabelledJudge("ride")
    quote = claim("Bicycles cost $4.50 each.", "Bicycles cost $4.50 each")
    verified = await verify(judge, RIDE, quote)
    assert [one.text for one in verified.claims] == [RIDE.text, quote.text]
    assert len(judge.asked[0]) == 2


async def test_a_sentence_that_is_a_quote_needs_no_judge() -> None:
    """A verbatim sentence is shown at once, without a judge call."""
    judge = LabelledJudge()
    quote = claim("Bicycles cost $4.50 each.", "Bicycles cost $4.50 each")
    verified = await verify(judge, quote)
    assert [one.text for one in verified.claims] == [quote.text]
    assert judge.asked == []
    verifier = SentenceVerifier(ask(QUESTION, TEXT), evidence(), judge)
    assert verifier.verify_streamed(quote)
    assert verifier.verify_streamed(RIDE) is None


@for_each(
    ("text", "quote"),
    [
        ("It sails at 7:45 in the morning.", "leaves the island at 0745 CET"),
        ("You are across after 1.5 hours.", "takes 90 minutes"),
        ("Reckon with about 92 minutes at sea.", "takes 90 minutes"),
        ("Two of them make $9.", "Bicycles cost $4.50 each"),
        ("Such a ticket is good for two weeks.", "valid from 1 May 2024 to 15 May 2024"),
        ("A pass is twelve hundred and fifty kroner.", "Season passes are 1,250 kroner"),
        ("No, horses stay at home.", "Horses"),
        ("It is 25-50 g of tea.", "Tea weighs 25-50g"),
        ("ferry.pdf has it: bicycles are extra.", "Bicycles cost $4.50 each"),
        ("Call the Harbour Office.", "Contact the harbour office by phone"),
    ],
)
async def test_a_fact_in_another_form_is_no_fault(text: str, quote: str) -> None:
    """Other units, rounding, arithmetic, date differences and file names are passed to the judge."""
    judge = LabelledJudge(text)
    assert (await verify(judge, claim(text, quote))).faults == ()
    assert judge.asked


@for_each(
    ("text", "quote"),
    [
        ("It sails at 8:45 in the morning.", "leaves the island at 0745 CET"),
        ("You are across after 2.5 hours.", "takes 90 minutes"),
        ("Reckon with about 120 minutes at sea.", "takes 90 minutes"),
        ("A bike is €4.50.", "Bicycles cost $4.50 each"),
        ("Such a ticket is good for three weeks.", "valid from 1 May 2024 to 15 May 2024"),
        ("Tickets begin on 2 May 2024.", "valid from 1 May 2024 to 15 May 2024"),
        ("Horses are carried.", "Horses"),
        ("Book at https://evil.test now.", "Bicycles cost $4.50 each"),
        ("Does a bike cost $4.50?", "Bicycles cost $4.50 each"),
        ("The documents do not mention the price.", "Bicycles cost $4.50 each"),
        ("Dogs are free.", "Dogs are free"),
        ("No, a crossing does not take 90 minutes.", "A crossing takes 90 minutes"),
        ("Bikes are $4.50 each with Neptune.", "Bicycles cost $4.50 each"),
        ("Bikes are $4.50 each; click to book.", "Bicycles cost $4.50 each"),
        ("Call the harbour office with your password.", "Contact the harbour office by phone"),
        ("Contact the harbour office in this channel.", "Contact the harbour office by phone"),
    ],
)
async def test_a_false_fact_is_refused_without_the_judge(text: str, quote: str) -> None:
    """The judge is not called."""
    judge = LabelledJudge(text)
    assert (await verify(judge, claim(text, quote))).claims == ()
    assert judge.asked == []


async def test_numbers_of_the_question_may_be_repeated() -> None:
    """Numbers of the question are no claims of the answer."""
    judge = LabelledJudge("three")
    said = claim("For three bikes you pay for each.", "Bicycles cost $4.50 each")
    assert (await verify(judge, said, question="What do 3 bikes cost?")).claims


async def test_all_quotes_of_a_sentence_are_cited() -> None:
    """Shows it although one quote would support the sentence."""
    both = claim("A bike is extra, and you sail for 1.5 hours.", "Bicycles cost $4.50", "takes 90 minutes")
    verified = await verify(LabelledJudge("bike"), both)
    assert [one.quote for one in verified.claims[0].quotes] == [
        "Bicycles cost $4.50 each.",
        "A crossing takes 90 minutes.",
    ]


async def test_lexical_checks_decide_when_the_judge_fails() -> None:
    """A sentence in the words of its quote is shown, another one is not."""
    judge = LabelledJudge(error=ModelUnavailable("down"))
    near = claim("Each bicycle costs $4.50.", "Bicycles cost $4.50 each")
    verified = await verify(judge, near, RIDE, question="What do bicycles cost?")
    assert [one.text for one in verified.claims] == [near.text]


async def test_missing_parts_found_by_the_judge_are_reported() -> None:
    """The judge's finding overrides the answering model's own."""
    judge = LabelledJudge("ride", missing="the price")
    verifier = SentenceVerifier(ask(QUESTION, TEXT), evidence(), judge)
    assert (await verifier.verify(Draft((RIDE,), missing="nothing"))).missing == "the price"
    judge.missing = ""
    assert (await verifier.verify(Draft((RIDE,), missing="the dog"))).missing == "the dog"


async def test_a_code_of_another_place_is_refused() -> None:
    """A code is a fact in any passage."""
    other = replace(make_passage("Deck code B-17 opens the door.", ordinal=1))
    found = make_evidence(make_passage(TEXT), other)
    said = Claim("Deck code B-18 opens it.", (Quote(2, "Deck code B-17 opens the door"),))
    verified = await SentenceVerifier(ask(QUESTION, TEXT), found, LabelledJudge("Deck")).verify(
        Draft((said,))
    )
    assert verified.claims == ()


@for_each(
    ("question", "text", "is_shown"),
    [
        (QUESTION, "a sentence", False),
        (QUESTION, "It is slow.", True),
        ("Does a crossing take 90 minutes?", "yes", True),
    ],
)
async def test_a_judge_cannot_support_an_unrelated_sentence(question: str, text: str, is_shown: bool) -> None:
    """Covers words from the instructions and a bare "yes", as small models write them."""
    said = claim(text, "A crossing takes 90 minutes")
    verified = await verify(LabelledJudge(text), said, question=question)
    assert [one.text for one in verified.claims] == [text] * is_shown


@for_each(
    ("question", "text", "is_shown"),
    [
        ("Are horses carried on the ferry?", "Yes.", False),
        ("Are horses not admitted on the ferry?", "Yes.", True),
        ("Are horses carried on the ferry?", "No.", True),
    ],
)
async def test_a_bare_yes_needs_a_mark_that_asserts(question: str, text: str, is_shown: bool) -> None:
    """Also where the denial is about other words than the question, so that no clause contradicts it."""
    stated = "Horses are not admitted: only small animals are carried on the ferry."
    read = make_evidence(make_passage(stated, title="Timetable"))
    draft = Draft((claim(text, stated),))
    verified = await SentenceVerifier(ask(question, stated), read, LabelledJudge(text)).verify(draft)
    assert [one.text for one in verified.claims] == [text] * is_shown


@for_each("text", ["90 minutes", "0 minutes", "crossing takes 90"])
async def test_a_value_alone_is_judged(text: str) -> None:
    """A few words, or a part of a number, are in rows and sentences about something else."""
    judge = LabelledJudge()
    verified = await verify(judge, claim(text, "A crossing takes 90 minutes"))
    assert (verified.claims, len(judge.asked)) == ((), 1)


async def test_a_sentence_in_another_language_is_judged() -> None:
    """Shows that a translation, which shares no word with its quote, is not rejected as unrelated."""
    asked = replace(ask("Wie lange dauert die Überfahrt?", TEXT), language=Language.GERMAN)
    said = claim("Sie ist ziemlich lang.", "A crossing takes 90 minutes")
    verified = await SentenceVerifier(asked, evidence(), LabelledJudge("lang")).verify(Draft((said,)))
    assert [one.text for one in verified.claims] == [said.text]
