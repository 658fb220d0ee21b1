"""Writes question records asynchronously: a full queue or a failing store never delays an answer."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable

from bot.answers.trace import QuestionRecord
from storage.chat.traces import QuestionRecords
from storage.errors import StorageError
from storage.task_group import cancel_and_wait

# Records in the queue; further ones are dropped.
MAX_QUEUED = 200
# How long shutdown waits for the queue.
DRAIN_SECONDS = 5.0

CountQuestion = Callable[[QuestionRecord], None]

log = logging.getLogger(__name__)


class TraceWriter:
    """Queues records and stores them one by one."""

    def __init__(self, store: QuestionRecords, count: CountQuestion | None = None) -> None:
        """Create the queue.

        ``count`` receives each record, stored or dropped, and must return immediately.
        """
        self._store = store
        self._count = count
        self._waiting: asyncio.Queue[QuestionRecord] = asyncio.Queue(MAX_QUEUED)

    def enqueue(self, record: QuestionRecord) -> None:
        """Queue a record for storage; returns immediately."""
        if self._count:
            self._count(record)
        try:
            self._waiting.put_nowait(record)
        except asyncio.QueueFull:
            log.warning("trace dropped: question=%s: queue full", record.question.id)

    async def run(self) -> None:
        """Store queued records until cancelled."""
        while True:
            record = await self._waiting.get()
            asked, state = record.question, record.answer.state.value
            try:
                value = await asyncio.to_thread(record.as_json)  # counting prompt tokens is CPU-bound
                await self._store.keep(asked.id, asked.conversation_channel.id, asked.asked_at, state, value)
            except StorageError as error:
                log.warning("trace not stored: question=%s: %s", asked.id, type(error).__name__)
            finally:
                self._waiting.task_done()

    async def drain(self) -> None:
        """Wait until every queued record is stored or dropped."""
        await self._waiting.join()


@contextlib.asynccontextmanager
async def writing_traces(
    store: QuestionRecords, count: CountQuestion | None = None
) -> AsyncIterator[TraceWriter]:
    """Yield a running trace writer; on exit, drain its queue for up to DRAIN_SECONDS."""
    trace_writer = TraceWriter(store, count)
    running = asyncio.create_task(trace_writer.run(), name="recording")
    try:
        yield trace_writer
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(trace_writer.drain(), DRAIN_SECONDS)
    finally:
        await cancel_and_wait(running)
