"""Finds questions worth trying on a new document: made up from its text, asked, and only then offered."""

from __future__ import annotations

from collections.abc import Sequence

from bot.core.announcing_ports import ReceiptChunks
from bot.core.models import AnswerState, Question
from bot.core.ports import QuestionAnswering
from bot.core.suggesting import suggest_questions
from storage.clock import utc_now
from storage.models import Channel, Chunk
from storage.notice_models import Notice

MAX_OFFERED = 3
MAX_TRIED = 6
"""Questions asked for one document at most: each costs what a person's question costs."""
MAX_CHUNKS_READ = 12
"""Chunks looked at, evenly spread: the beginning of a long document is often a table of contents."""


class SuggestedQuestions:
    """Asks candidates in the document's own channel, as a person would."""

    def __init__(self, answering: QuestionAnswering, chunks: ReceiptChunks) -> None:
        self._answering = answering
        self._chunks = chunks

    async def questions(self, channel: Channel, notice: Notice) -> tuple[str, ...]:
        """At most three questions that this version answered a moment ago; fewer when fewer did.

        Raises:
            storage.errors.InfrastructureError: the reading cannot be reached.
        """
        passed: list[str] = []
        for text in suggest_questions(await self._sample(notice), notice.title, MAX_TRIED):
            if len(passed) < MAX_OFFERED and await self._is_answered(channel, notice, text):
                passed.append(text)
        return tuple(passed)

    async def _sample(self, notice: Notice) -> Sequence[Chunk]:
        if notice.reading_id is None:
            return []
        step = max(1, notice.chunks // MAX_CHUNKS_READ)
        ordinals = range(0, notice.chunks, step)[:MAX_CHUNKS_READ]
        return await self._chunks.chunks_at([(notice.reading_id, ordinal) for ordinal in ordinals])

    async def _is_answered(self, channel: Channel, notice: Notice, text: str) -> bool:
        question = Question(f"notice-{notice.id}", text, channel, utc_now(), is_trial=True)
        answer = await self._answering.answer(question)
        is_grounded = answer.state is AnswerState.GROUNDED
        return is_grounded and answer.citations[0].version_id == notice.version_id
