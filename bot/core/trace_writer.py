"""Writes the records of questions asynchronously: a full queue or a failing store never delays an answer."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable

from bot.core.trace import QuestionRecord
from storage.chat.traces import QuestionRecords
from storage.errors import StorageError
from storage.task_group import cancel_and_wait

# Records that wait to be kept; further ones are let go.
MAX_QUEUED = 200
# How long the end waits for those that are not kept yet.
DRAIN_SECONDS = 5.0

CountQuestion = Callable[[QuestionRecord], None]

log = logging.getLogger(__name__)


class TraceWriter:
    """Takes records and has them kept one after the other."""

    def __init__(self, store: QuestionRecords, count: CountQuestion | None = None) -> None:
        """``count`` gets each record as it is taken, kept or not; it must return at once."""
        self._store = store
        self._count = count
        self._waiting: asyncio.Queue[QuestionRecord] = asyncio.Queue(MAX_QUEUED)

    def take(self, record: QuestionRecord) -> None:
        """Have a record kept soon; returns at once."""
        if self._count:
            self._count(record)
        try:
            self._waiting.put_nowait(record)
        except asyncio.QueueFull:
            log.warning("question=%s leaves no record: too many wait", record.question.id)

    async def run(self) -> None:
        """Keep what is taken, until cancelled."""
        while True:
            record = await self._waiting.get()
            asked, state = record.question, record.answer.state.value
            try:
                value = await asyncio.to_thread(record.as_json)  # counting the tokens of prompts takes long
                await self._store.keep(asked.id, asked.asked_in.id, asked.asked_at, state, value)
            except StorageError as error:
                log.warning("question=%s leaves no record: %s", asked.id, type(error).__name__)
            finally:
                self._waiting.task_done()

    async def drained(self) -> None:
        """Wait until all that was taken is kept, or let go of."""
        await self._waiting.join()


@contextlib.asynccontextmanager
async def writing_traces(
    store: QuestionRecords, count: CountQuestion | None = None
) -> AsyncIterator[TraceWriter]:
    """Yield a recorder that works until the context ends, and then a little longer for what still waits."""
    trace_writer = TraceWriter(store, count)
    running = asyncio.create_task(trace_writer.run(), name="recording")
    try:
        yield trace_writer
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(trace_writer.drained(), DRAIN_SECONDS)
    finally:
        await cancel_and_wait(running)
