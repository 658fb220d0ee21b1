"""A chat whose answer to a question is the question itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from bot.chat.conversation.conversation import Conversation
from bot.core.models import Answer, AnswerState, Language, Question
from bot.core.ports import AnswerListener, RenewLease, SaveMessage

Json = dict[str, Any]


@dataclass
class EchoChat:
    """The platform and its messages."""

    texts: list[str] = field(default_factory=list)

    async def post_placeholder(
        self, address: Json, language: Language = Language.ENGLISH, *, queued: str = "", asked: str = ""
    ) -> Json:
        """Post a placeholder."""
        self.texts.append("…")
        return {"index": len(self.texts) - 1}

    async def find_placeholder(self, address: Json, others: Sequence[Json] = ()) -> Json | None:
        """Return None, so that a second placeholder is posted, which a test then counts."""
        return None

    async def show_partial(self, address: Json, message: Json, text: str) -> None:
        """Ignore partial text."""

    async def deliver(self, address: Json, message: Json, answer: Answer, save: SaveMessage) -> None:
        """Replace the placeholder by the answer."""
        self.texts[message["index"]] = answer.text

    async def attach_figures(self, address: Json, message: Json, answer: Answer, renew: RenewLease) -> None:
        """Attach no figures."""


class Echo:
    """Answers a question with its own text, once ``gate`` is open."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.gate = asyncio.Event()
        self.gate.set()

    async def answer(self, question: Question, listener: AnswerListener | None = None) -> Answer:
        """Record the question and echo it."""
        self.asked.append(question.text)
        await self.gate.wait()
        return Answer(AnswerState.CHAT, question.text)


@asynccontextmanager
async def answering(conversation: Conversation) -> AsyncIterator[None]:
    """Run the conversation in the background."""
    task = asyncio.create_task(conversation.run())
    try:
        yield
    finally:
        await conversation.drain(10)
        await task
