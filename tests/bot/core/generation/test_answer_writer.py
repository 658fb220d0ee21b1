"""Who waits sees proven sentences as they come, and finds all of them again in the answer."""

from __future__ import annotations

import pytest
from fakes.core import WORDS, BrokenOff, Looker, Scripted, World

from bot.core.errors import ModelUnavailable
from bot.core.models import AnswerState, Claim, Draft, Quote

DAILY = Claim("Backups run at 2 AM every day.", (Quote(1, "Backups run daily at 2:00 AM"),))
REPEATED = Claim("A failed one is repeated within 4 hours.", (Quote(1, "repeated within 4 hours"),))
FORGED = Claim("Backups run hourly.", (Quote(1, "Backups run every hour"),))
FIRST, SECOND = f"{DAILY.text} [1]", f"{REPEATED.text} [2]"
QUESTION = "When do backups run?"


async def test_proven_sentences_are_shown_one_by_one_and_others_never(world: World) -> None:
    """A forged sentence between two good ones is not seen at any time; its repair says nothing new."""
    looker = Looker()
    model = Scripted(Draft((DAILY, FORGED, REPEATED)), Draft((DAILY, FORGED)))
    answer = await world.answering(model).answer(world.question(QUESTION), looker)
    assert looker.seen == [FIRST, f"{FIRST} {SECOND}"]
    assert answer.state is AnswerState.PARTIAL
    assert answer.text == f"{FIRST} {SECOND}\n{WORDS.dropped(1)}"


@pytest.mark.parametrize(
    ("turns", "state"),
    [
        ([Draft((DAILY, FORGED)), Draft((REPEATED,))], AnswerState.GROUNDED),
        ([Draft((DAILY, FORGED)), Draft((FORGED,))], AnswerState.PARTIAL),
        ([Draft((DAILY, FORGED)), Draft(())], AnswerState.PARTIAL),
        ([Draft((DAILY, FORGED)), BrokenOff(REPEATED)], AnswerState.PARTIAL),
        ([Draft((DAILY, FORGED)), ModelUnavailable("gone")], AnswerState.PARTIAL),
        ([BrokenOff(DAILY, FORGED)], AnswerState.PARTIAL),
        ([BrokenOff(DAILY, REPEATED)], AnswerState.PARTIAL),
    ],
)
async def test_what_was_shown_is_how_the_answer_begins(
    world: World, turns: list[Draft | Exception], state: AnswerState
) -> None:
    """Neither a repair, nor its failure, nor a reply that breaks off takes a sentence back."""
    looker = Looker()
    answer = await world.answering(Scripted(*turns)).answer(world.question(QUESTION), looker)
    assert looker.seen[0] == FIRST
    assert all(answer.text.startswith(seen) for seen in looker.seen)
    assert answer.state is state
    assert "hourly" not in answer.text


async def test_a_reply_that_breaks_off_is_said_so_and_quotes_follow(world: World) -> None:
    """Half an answer is never passed off as a whole one; what it was marked at keeps its number."""
    answer = await world.answering(Scripted(BrokenOff(DAILY))).answer(world.question(QUESTION), Looker())
    begun, excuse, place, *quotes = answer.text.splitlines()
    assert begun == FIRST
    assert excuse == WORDS.model_broke_off
    assert place == "Backup and Recovery, p. 1"
    assert quotes[0].endswith(" [1]")
    assert [citation.number for citation in answer.citations] == list(range(1, len(quotes) + 1))


async def test_a_second_model_goes_on_where_the_first_broke_off(world: World) -> None:
    """It is told what stands, and adds the rest; then nothing is missing and nothing is said twice."""
    second = Scripted(Draft((DAILY, REPEATED)))
    looker = Looker()
    answer = await world.answering(Scripted(BrokenOff(DAILY)), second).answer(
        world.question(QUESTION), looker
    )
    assert second.stood == [(DAILY.text,)]
    assert looker.seen == [FIRST, f"{FIRST} {SECOND}"]
    assert (answer.state, answer.text) == (AnswerState.GROUNDED, f"{FIRST} {SECOND}")


async def test_a_reply_that_breaks_off_unseen_leaves_nothing(world: World) -> None:
    """Nobody waited for it, so its sentences were not taken: the quotes stand alone."""
    answer = await world.answering(Scripted(BrokenOff(DAILY))).answer(world.question(QUESTION))
    assert answer.text.startswith(WORDS.model_unusable)
    assert DAILY.text not in answer.text


async def test_quotes_are_not_shown_before_they_are_an_answer(world: World) -> None:
    """They take no time."""
    looker = Looker()
    await world.answering().answer(world.question(QUESTION), looker)
    assert looker.seen == []
