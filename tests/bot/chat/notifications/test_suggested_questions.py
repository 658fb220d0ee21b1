"""Suggested questions for a new document: headings that are questions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast
from uuid import UUID

from fakes.core import ASKED_AT
from harness.tables import for_each

from bot.chat.notifications.suggested_questions import (
    MAX_OFFERED,
    MAX_QUESTION_CHARS,
    plain_questions,
    suggested_questions,
)
from storage.chat_models import Notice
from storage.models import Chunk
from storage.queues.reading_repair import SelfHealingReadings

NOTICE = Notice(1, "live", ASKED_AT, 1, "it", None, version_id=7, reading_id=UUID(int=1), chunks=1)


@dataclass
class Reading:
    """A reading of chunks under these headings."""

    headings: tuple[str, ...]

    async def chunks_at(self, places: object) -> list[Chunk]:
        """Return all of them."""
        return [Chunk(0, "At two.", 1, (one,), (), ((0, 1),)) for one in self.headings]


async def suggested(*headings: str) -> tuple[str, ...]:
    """Return the questions suggested for a document with these headings."""
    return await suggested_questions(cast(SelfHealingReadings, Reading(headings)), NOTICE)


async def test_only_headings_that_are_questions_are_suggested() -> None:
    """Shows that no question is made from an ordinary heading."""
    heading = "How do I reset my password?"
    assert await suggested("Daily check of the tapes", "Contents", heading, heading) == (heading,)


async def test_suggested_questions_are_limited() -> None:
    """The first ones are suggested."""
    texts = [f"How long is the {word} part kept?" for word in ("first", "second", "third", "fourth")]
    assert await suggested(*texts) == tuple(texts[:MAX_OFFERED])


@for_each(
    "text",
    [
        "see https://evil.example/now for what?",
        "<!channel> who may look here?",
        "*bold* [link](x) or not?",
        "@everyone may read this?",
        "Really so?",
        "The tapes are kept.",
        "Who " * MAX_QUESTION_CHARS + "?",
    ],
)
def test_only_plain_questions_are_suggested(text: str) -> None:
    """Shows that text which a chat could take for a link, mention or markup is never suggested."""
    assert plain_questions([text]) == ()
