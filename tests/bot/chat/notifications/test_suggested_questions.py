"""Suggested questions for a new document: a model's, or question headings, if the document answers them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast
from uuid import UUID

from fakes.core import ASKED_AT, make_channel
from fakes.web_house import ScriptedAnswering
from harness.tables import for_each

from bot.chat.notifications.suggested_questions import (
    MAX_OFFERED,
    MAX_QUESTION_CHARS,
    MAX_TRIED,
    SuggestedQuestions,
    asking_headings,
    plain_questions,
)
from bot.core.errors import ModelUnavailable
from bot.core.models import Answer, AnswerState, Citation, Reply
from bot.core.ports import Generator
from storage.chat_models import Notice
from storage.models import Chunk
from storage.queues.reading_repair import SelfHealingReadings

VERSION = 7
NOTICE = Notice(1, "live", ASKED_AT, 1, "it", None, version_id=VERSION, reading_id=UUID(int=1), chunks=1)


def chunk(heading: str = "", text: str = "Backups run at two.") -> Chunk:
    """Return a chunk under a heading."""
    return Chunk(0, text, 1, (heading,) if heading else (), (), ((0, 1),))


@dataclass
class Reading:
    """A reading of these chunks."""

    chunks: list[Chunk]

    async def chunks_at(self, places: object) -> list[Chunk]:
        """Return all of them."""
        return self.chunks


@dataclass
class Author:
    """A model with a scripted reply."""

    reply: str | Exception
    requests: list[str] = field(default_factory=list)

    async def write(self, instructions: str, request: str, *, seconds: float, tokens: int) -> Reply:
        """Return the reply."""
        self.requests.append(request)
        if isinstance(self.reply, Exception):
            raise self.reply
        return Reply(self.reply, None)


def cites(version: int, state: AnswerState = AnswerState.GROUNDED) -> Answer:
    """Return an answer that cites a version."""
    return Answer(state, "[1]", (Citation(1, "A", "a.pdf", 1, "q", (), "", version_id=version),))


async def offered(answers: dict[str, Answer], author: Author | None, *chunks: Chunk) -> tuple[str, ...]:
    """Return the questions suggested for a document of these chunks, with scripted answers."""
    suggested = SuggestedQuestions(
        ScriptedAnswering(dict(answers)),
        cast(SelfHealingReadings, Reading(list(chunks) or [chunk()])),
        cast("Generator | None", author),
    )
    return await suggested.questions(make_channel(), NOTICE)


async def test_a_models_questions_are_suggested_if_answered() -> None:
    """Shows that other documents' answers do not count; also the model's prompt."""
    author = Author("1. When do backups run?\n- Who keeps the tapes?\nHow long are tapes kept?\n")
    answers = {"When do backups run?": cites(VERSION), "Who keeps the tapes?": cites(VERSION + 1)}
    assert await offered(answers, author) == ("When do backups run?",)
    assert "Backups run at two." in author.requests[0]


async def test_without_a_model_only_question_headings_are_suggested() -> None:
    """Shows that no question is made from an ordinary heading."""
    heading = "How do I reset my password?"
    chunks = (chunk("Daily check of the tapes"), chunk("Contents"), chunk(heading))
    assert await offered({heading: cites(VERSION, AnswerState.PASSAGES)}, None, *chunks) == (heading,)
    assert asking_headings(chunks[:2]) == []


async def test_a_model_that_fails_leaves_the_headings() -> None:
    """Shows that a receipt does not fail with the model."""
    heading = "How do I reset my password?"
    author = Author(ModelUnavailable("late"))
    assert await offered({heading: cites(VERSION)}, author, chunk(heading)) == (heading,)


async def test_tried_and_suggested_questions_are_limited() -> None:
    """Shows limits on the cost per document."""
    texts = [
        f"How long is the {word} part kept?"
        for word in "first second third fourth fifth sixth seventh".split()
    ]
    answering = ScriptedAnswering()
    reading = cast(SelfHealingReadings, Reading([chunk()]))
    author = cast(Generator, Author("\n".join(texts)))
    assert await SuggestedQuestions(answering, reading, author).questions(make_channel(), NOTICE) == ()
    assert len(answering.asked) == MAX_TRIED
    assert await offered({text: cites(VERSION) for text in texts}, Author("\n".join(texts))) == tuple(
        texts[:MAX_OFFERED]
    )


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
    assert plain_questions([text]) == []
