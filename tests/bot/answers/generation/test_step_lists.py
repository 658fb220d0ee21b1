"""The list around a quoted step: complete, in order, and limited to the list."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fakes.core import WORDS, HashEmbedder, ask, make_evidence, make_passage, verify_quotes
from harness.tables import for_each

from bot.answers.generation.extractive import ExtractiveAnswerer
from bot.answers.generation.quote_selection import QuoteCandidate, RankedQuotes
from bot.answers.generation.step_lists import MAX_STEPS, whole_steps
from bot.core.models import AnalyzedQuestion, Draft, Evidence, Language
from storage.text.sentences import Quotable

RESTORE = (
    "Only operators restore.\n\n7.1 Open a ticket.\n7.2 Pick a backup\nof the week.\n7.2.1 No younger one.\n"
    "Warning: work is lost.\n7.3 Copy it.\n\nNobody else restores.\n\n8.1 Clean the robot."
)


def drafted(question: AnalyzedQuestion, *candidates: QuoteCandidate) -> Draft:
    """Return the draft quoted from the candidates."""
    ranked = RankedQuotes(candidates)
    return ranked.draft(question, ranked.chosen(question))


def listed(word: str, *items: Evidence) -> list[str]:
    """Return the texts of the list that contains a word."""
    (item,) = (one for one in items if word in one.passage.text)
    steps = whole_steps(item, item.passage.text.index(word), items)
    return [one.passage.text[start:end] for one, start, end in steps.parts] if steps else []


def test_a_list_is_complete_with_warnings_up_to_the_next_list() -> None:
    """Shows that substeps and text between steps are included, and neighbouring text is not."""
    [item] = make_evidence(make_passage(RESTORE))
    for word in ("ticket", "younger", "Copy"):
        assert listed(word, item) == [RESTORE[RESTORE.index("7.1") : RESTORE.index("\n\nNobody")]]
    assert listed("robot", item) == []
    assert listed("Only", item) == []


def test_a_list_continues_in_the_next_passage_and_page() -> None:
    """Shows one part per page, and that a passage that was not retrieved ends the list."""
    first, second, far = make_evidence(
        make_passage("1. Stop.\n2. Wait.", ordinal=4),
        make_passage("3. Look.\n4. Go.", ordinal=5, page=2),
        make_passage("5. Come back.", ordinal=7, page=2),
    )
    assert listed("Look", first, second, far) == ["1. Stop.\n2. Wait.", "3. Look.\n4. Go."]
    text = "1. Stop.\n2. Wait.\n3. Look."
    [turning] = make_evidence(make_passage(text), page_starts=((0, 1), (text.index("3."), 2)))
    assert listed("Wait", turning) == ["1. Stop.\n2. Wait.", "3. Look."]


def test_a_long_list_is_limited_to_the_requested_part() -> None:
    """Shows the maximum number of steps, and the first one shown."""
    [item] = make_evidence(make_passage("\n".join(f"{n}. Do thing{n}x." for n in range(1, 31))))
    begun, asked = (listed(word, item)[0].splitlines() for word in ("thing2x", "thing20x"))
    assert (begun[0], len(begun)) == ("1. Do thing1x.", MAX_STEPS)
    assert (asked[0], asked[-1]) == ("20. Do thing20x.", "30. Do thing30x.")


@pytest.mark.parametrize(
    ("most", "said"),
    [
        (MAX_STEPS + 3, "Steps 13–15 follow on page 2. [2]"),
        (MAX_STEPS + 1, "Step 13 follows on page 2. [2]"),
    ],
)
def test_the_place_of_a_lists_remainder_is_cited(most: int, said: str) -> None:
    """Shows that remaining steps are cited by a source of their own without being quoted."""
    first, second = make_evidence(
        make_passage("\n".join(f"{n}. Do thing{n}x." for n in range(1, 13)), ordinal=0),
        make_passage("\n".join(f"{n}. Do thing{n}x." for n in range(13, most + 1)), ordinal=1, page=2),
    )
    steps = whole_steps(first, first.passage.text.index("thing2x"), (first, second))
    assert steps
    verified = verify_quotes(Draft(tuple(steps.claims(Language.ENGLISH)), verbatim=True), (first, second))
    assert verified.text.splitlines()[-1] == said
    assert [one.quote for one in verified.cited][1:] == [second.passage.text]


VALUES = (
    "We strive for much.\n\nCompany values:\n1. Quality: our products last.\n2. Respect: we listen.\n\n"
    "Covered are:\n• Skiing\n• Diving\n\nNothing else is."
)


@for_each(
    ("question", "begin", "end", "listed"),
    [
        ("What are the values?", "Company", "last.", ("Company", "listen.")),
        ("What are the values?", "Company", "values:", ("Company", "listen.")),
        ("How do I live our values?", "Company", "values:", ("Company", "listen.")),
        ("What are the lessons?", "Covered", "Skiing", ("Covered", "Diving")),
        ("Is skiing covered?", "Covered", "Skiing", ("Covered", "Skiing")),
        ("What are the strivings?", "We", "much.", ("We", "much.")),
    ],
)
def test_a_question_for_a_list_gets_the_whole_list(
    question: str, begin: str, end: str, listed: tuple[str, str]
) -> None:
    """Shows the list with its lead, numbered or bulleted, and only for such questions."""
    [item] = make_evidence(make_passage(VALUES))
    start = VALUES.index(begin)
    stop = VALUES.index(end, start) + len(end)
    quote = QuoteCandidate(item, Quotable(start, stop, VALUES[start:stop], is_row=False), score=1.0)
    [claim] = drafted(ask(question), quote).claims
    first, last = listed
    assert claim.text == VALUES[VALUES.index(first) : VALUES.index(last) + len(last)]


def test_a_heading_with_a_number_is_no_step() -> None:
    """Shows that the section after a list does not continue it."""
    list_, section = make_evidence(
        make_passage("1. Stop.\n2. Wait.", ordinal=0),
        make_passage("3. Duties\nEverybody waits.", ordinal=1, heading_path=("3. Duties",)),
    )
    assert listed("Stop", list_, section) == ["1. Stop.\n2. Wait."]


def test_how_to_questions_get_the_list_and_others_the_step() -> None:
    """Shows that the list is quoted for how-to questions."""
    [item] = make_evidence(make_passage(RESTORE))
    rule, step = (
        QuoteCandidate(item, Quotable(at, at + len(text), text, is_row=False), score=score)
        for text, score in (("Only operators restore.", 9.0), ("7.3 Copy it.", 8.5))
        for at in [RESTORE.index(text)]
    )
    quotes = {
        question: [claim.text for claim in drafted(ask(question), rule, step).claims]
        for question in ("How do I restore a backup?", "Is it copied?")
    }
    (whole,), singles = quotes.values()
    assert whole.startswith("7.1 Open a ticket.")
    assert singles == ["Only operators restore.", "7.3 Copy it."]
    far = replace(step, score=7.5)
    assert len(drafted(ask("How do I restore a backup?"), rule, far).claims[0].text) < len(whole)


BOXED = (
    "6. Restore procedure\n\nWARNING\n\nNever restore in place. Work is lost.\n\n"
    "1. Open a ticket.\n\n2. Wait for approval.\n\nA file takes 4 hours."
)


async def test_a_warning_precedes_its_steps() -> None:
    """Shows the warning box above the first step, with its label on a line of its own."""
    [item] = make_evidence(make_passage(BOXED, heading_path=("6. Restore procedure", "WARNING")))
    asked = ask("Give me the steps to restore it", BOXED)
    ranked = await ExtractiveAnswerer(HashEmbedder()).rank(asked, [item])
    draft = ranked.draft(asked, ranked.chosen(asked))
    assert verify_quotes(draft, [item]).text == (
        "“WARNING\nNever restore in place. Work is lost.\n1. Open a ticket.\n2. Wait for approval.” [1]"
    )


async def test_all_callouts_before_the_steps_are_quoted() -> None:
    """Shows two boxes above a lead-in, and one before a step in the next passage; other notes stay out."""
    first, second = make_evidence(
        make_passage(
            "NOTE: Offices close at noon.\n\nSomebody else decides.\n\nWARNING\n\nWork is lost.\n\n"
            "NOTE: Keep the tape.\n\nTo restore a file:\n\n1. Open a ticket.\n\n2. Wait for approval.",
            ordinal=0,
        ),
        make_passage("CAUTION\nThe server is hot.\n\n3. Copy the file.\n\n4. Close it.", ordinal=1, page=2),
    )
    asked = ask("How do I restore a file?", first.passage.text, second.passage.text)
    ranked = await ExtractiveAnswerer(HashEmbedder()).rank(asked, [first, second])
    texts = [claim.text for claim in ranked.draft(asked, ranked.chosen(asked)).claims]
    assert texts == [first.passage.text[first.passage.text.index("WARNING") :], second.passage.text]


def test_a_partial_list_names_its_earlier_steps() -> None:
    """Covers earlier passages that were not retrieved, and a list that is too long."""
    cut = "\n".join(f"{n}. Switch off unit {n}." for n in range(26, 30))
    long = "\n".join(f"{n}. Switch off unit {n}." for n in range(1, 31))
    for text, word, before in ((cut, "unit 28.", "1–25"), (long, "unit 20.", "1–19")):
        [item] = make_evidence(make_passage(text))
        at = text.index(word)
        quote = QuoteCandidate(
            item, Quotable(at - 14, at + 8, text[at - 14 : at + 8], is_row=False), score=1.0
        )
        first, *_ = drafted(ask("How do I switch off unit 20?"), quote).claims
        assert first.text == WORDS.earlier_steps(25, steps=before)


CUT = (
    "Covered are:\n• Skiing\n• Diving, such as:\n– Wrecks",
    "Covered are:\n• Climbing\n• Riding\n\nNothing else.",
)


@for_each(
    ("place", "word"),
    [(0, "Covered"), (0, "• Skiing"), (1, "Covered"), (1, "• Riding")],
)
def test_bullets_continue_where_a_chunk_ends(place: int, word: str) -> None:
    """Shows a list in two chunks whole, its repeated lead-in once, from either of them."""
    items = make_evidence(*(make_passage(text, ordinal=n, page=n + 1) for n, text in enumerate(CUT)))
    item = items[place]
    start = item.passage.text.index(word)
    quote = QuoteCandidate(item, Quotable(start, start + len(word), word, is_row=False), score=1.0)
    ranked = RankedQuotes([quote], beside=[one for one in items if one is not item])
    texts = [claim.text for claim in ranked.draft(ask("What are the sports?"), [quote]).claims]
    assert texts == [CUT[0], "• Climbing\n• Riding"]


def test_the_place_of_more_bullets_is_cited() -> None:
    """Shows that a list of many chunks is not quoted whole, and ends with its section."""
    texts = ["Covered are:\n" + "\n".join(f"• Sport {n}{m}" for m in "abcdefg") for n in range(3)]
    items = make_evidence(
        *(make_passage(text, ordinal=n, page=n + 1) for n, text in enumerate(texts)),
        make_passage("Boats\n\nCovered are:\n• Hulls", ordinal=3, page=9, heading_path=("Boats",)),
    )
    quote = QuoteCandidate(items[0], Quotable(0, 12, "Covered are:", is_row=False), score=1.0)
    ranked = RankedQuotes([quote], beside=items[1:])
    *shown, rest = ranked.draft(ask("What are the sports?"), [quote]).claims
    assert [claim.text.splitlines()[-1] for claim in shown] == ["• Sport 0g", "• Sport 1e"]
    assert rest.text == WORDS.more_items(9, page=2)
    assert [one.passage for one in rest.quotes] == [2, 3]
