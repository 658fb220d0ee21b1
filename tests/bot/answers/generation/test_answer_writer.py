"""Streaming of verified sentences: shown as they come, and all part of the final answer."""

from __future__ import annotations

import pytest
from fakes.core import WORDS, BrokenOff, Looker, Scripted, World, ask, make_evidence, make_passage

from bot.answers.generation.answer_writer import put_fact_page_first
from bot.answers.verification.claims import VerifiedClaim, place
from bot.core.models import AnswerState, Claim, Draft, Quote

DAILY = Claim("Backups run at 2 AM every day.", (Quote(1, "Backups run daily at 2:00 AM"),))
REPEATED = Claim("A failed one is repeated within 4 hours.", (Quote(1, "repeated within 4 hours"),))
FORGED = Claim("Backups run hourly.", (Quote(1, "Backups run every hour"),))
BOTH = f"{DAILY.text} {REPEATED.text} [1]"
QUESTION = "When do backups run?"


async def test_only_verified_sentences_are_shown_one_by_one(world: World) -> None:
    """A forged sentence is never shown, nor any text after it until all is verified."""
    looker = Looker()
    model = Scripted(Draft((DAILY, FORGED, REPEATED)))
    answer = await world.answering(model).answer(world.question(QUESTION), looker)
    assert looker.seen == [DAILY.text]
    assert (answer.state, answer.text) == (AnswerState.PARTIAL, BOTH)


@pytest.mark.parametrize(
    ("turn", "state"),
    [
        (Draft((DAILY, REPEATED)), AnswerState.GROUNDED),
        (Draft((DAILY, FORGED)), AnswerState.PARTIAL),
        (BrokenOff(DAILY, FORGED), AnswerState.PARTIAL),
        (BrokenOff(DAILY, REPEATED), AnswerState.PARTIAL),
    ],
)
async def test_the_answer_begins_with_the_shown_sentences(
    world: World, turn: Draft | Exception, state: AnswerState
) -> None:
    """Neither an error nor a truncated reply takes a sentence back."""
    looker = Looker()
    answer = await world.answering(Scripted(turn)).answer(world.question(QUESTION), looker)
    assert looker.seen[0] == DAILY.text
    assert all(answer.text.startswith(seen) for seen in looker.seen)
    assert answer.state is state
    assert "hourly" not in answer.text


async def test_a_truncated_reply_is_reported_with_passages(world: World) -> None:
    """A partial answer is marked as such; its citation numbers do not change."""
    answer = await world.answering(Scripted(BrokenOff(DAILY))).answer(world.question(QUESTION), Looker())
    begun, excuse, *_ = filter(None, answer.text.splitlines())
    assert begun == f"{DAILY.text} [1]"
    assert excuse == WORDS.model_broke_off
    assert answer.text.endswith("[1]")
    assert [citation.number for citation in answer.citations] == [1]


async def test_a_second_model_continues_a_truncated_reply(world: World) -> None:
    """The second model gets the text written before and adds the rest; nothing is missing or repeated."""
    second = Scripted(Draft((DAILY, REPEATED)))
    looker = Looker()
    answer = await world.answering(Scripted(BrokenOff(DAILY)), second).answer(
        world.question(QUESTION), looker
    )
    assert second.stood == [(DAILY.text,)]
    assert looker.seen == [DAILY.text, f"{DAILY.text} {REPEATED.text}"]
    assert (answer.state, answer.text) == (AnswerState.GROUNDED, BOTH)


async def test_a_truncated_reply_without_listener_is_discarded(world: World) -> None:
    """Without a listener its sentences are discarded: only quotes are returned."""
    answer = await world.answering(Scripted(BrokenOff(DAILY))).answer(world.question(QUESTION))
    assert answer.text.startswith(WORDS.model_unusable)
    assert DAILY.text not in answer.text


async def test_quotes_are_not_shown_before_they_are_an_answer(world: World) -> None:
    """Quoting takes no time."""
    looker = Looker()
    await world.answering().answer(world.question(QUESTION), looker)
    assert looker.seen == []


@pytest.mark.parametrize(
    ("question", "page"),
    [
        ("For how many years does the archive keep contracts?", 1),
        ("Who supervises that contracts are destroyed?", 2),
    ],
)
def test_the_page_that_contains_the_answer_is_cited_first(question: str, page: int) -> None:
    """Shows it for a sentence across a page break, whichever page has more of it."""
    first = "The archive keeps contracts for 11 years after the"
    second = "end of the business year and destroys them while two sworn witnesses supervise all of it."
    (item,) = make_evidence(make_passage(f"{first}\n{second}"), page_starts=((0, 1), (len(first) + 1, 2)))
    whole = place(item, 0, len(item.passage.text))
    assert [one.page for one in whole.parts] == [2, 1]
    claim = put_fact_page_first(VerifiedClaim(whole.quote, (whole,)), ask(question, first, second))
    assert claim.quotes[0].parts[0].page == page
