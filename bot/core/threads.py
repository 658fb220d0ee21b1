"""Lets a question know what its thread said before, and keeps what its thread should remember of it."""

from __future__ import annotations

import logging
from dataclasses import replace

from bot.core.models import Answer, AnswerState, Question
from bot.core.plaintext import mend, shorten
from bot.core.thread_ports import ThreadMemoryPort
from storage.errors import DatabaseUnavailable
from storage.memory_models import NewTurn

REMEMBERED = {AnswerState.GROUNDED, AnswerState.PARTIAL, AnswerState.NOT_FOUND}
"""A greeting or a failure is nothing that the next question leans on."""
QUESTION, ANSWER = 500, 800
"""Characters kept of a question and of an answer."""

log = logging.getLogger(__name__)


class Threads:
    """Threads of doors where somebody waits for the answer; chats keep a turn together with its answer."""

    def __init__(self, memory: ThreadMemoryPort) -> None:
        self._memory = memory

    async def recall(self, question: Question, thread: str | None) -> Question:
        """The question with what was said before it; without a thread it stands alone.

        Raises:
            storage.errors.DatabaseUnavailable: nothing can be recalled just now.
        """
        if thread is None:
            return question
        history = await self._memory.recall(question.channel.id, thread, question.asked_at)
        return replace(question, history=history)

    async def keep(self, question: Question, thread: str | None, answer: Answer) -> None:
        """Remember the turn; an answer that is there is not lost because that fails."""
        turn = None if thread is None else turn_of(question, thread, answer)
        if turn is None:
            return
        try:
            await self._memory.keep(turn)
        except DatabaseUnavailable:
            log.warning("question=%s is not remembered by its thread", question.id)


def turn_of(question: Question, thread: str, answer: Answer) -> NewTurn | None:
    """What a thread remembers of a question; None when that is nothing."""
    if answer.state not in REMEMBERED:
        return None
    return NewTurn(
        key=question.id,
        channel_id=question.channel.id,
        thread=thread,
        question=shorten(mend(question.text), QUESTION),
        standalone=shorten(mend(answer.standalone or question.text), QUESTION),
        answer=shorten(mend(answer.text), ANSWER),
        versions=tuple(sorted({citation.version_id for citation in answer.citations})),
        asked_at=question.asked_at,
    )
