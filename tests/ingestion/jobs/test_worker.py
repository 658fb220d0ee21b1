"""Worker: lease renewal during steps, and logging of unexpected errors."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

import pytest
from harness.ingestion_home import Home
from harness.waiting import PATIENCE

from ingestion.jobs.worker import Lane, Worker
from storage.sql.leased_queue import Lease, LeasedQueue
from storage.sql.tables import ReadingRow


class SlowLease(Lease):
    """Lease whose renewals hang; records when a renewal has ended."""

    is_renewing = asyncio.Event()
    has_ended = False

    async def renew(self) -> None:
        """Hang until cancelled."""
        self.is_renewing.set()
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.05)  # like a statement in flight when it is cancelled
            SlowLease.has_ended = True


@dataclass
class Step:
    """A claimed step."""

    lease: Lease


async def ignore(*_: object) -> None:
    """Do nothing."""


async def test_no_renewal_is_in_flight_when_a_step_has_ended(home: Home) -> None:
    """Shows that the heartbeat of a lease is awaited, so that it never overlaps the next statement."""
    rows = LeasedQueue(home.database, ReadingRow, "worker", 0.03)
    lease = SlowLease(rows, 1, "waiting", 1)
    steps = [Step(lease)]

    async def claim() -> Step | None:
        return steps.pop() if steps else None

    async def run(_: Step) -> None:
        await lease.is_renewing.wait()

    lane = Lane("read", claim, run, ignore, ignore, slots=1, is_background=False)
    worker = Worker([lane], asyncio.Event())
    assert await worker.drain() == 1
    assert lease.has_ended


async def test_an_unexpected_error_is_logged_without_its_message(caplog: pytest.LogCaptureFixture) -> None:
    """Shows that its location is in the log, and document text is not."""
    caplog.set_level(logging.ERROR)

    async def claim() -> Step | None:
        raise ValueError("the salary of Ms Smith")

    lane = Lane("read", claim, ignore, ignore, ignore, slots=1, is_background=False)
    worker = Worker([lane], asyncio.Event())
    worker.start()
    async with asyncio.timeout(PATIENCE):
        while not caplog.records:
            await asyncio.sleep(0.01)
    await worker.stop()
    assert "ValueError at " in caplog.text
    assert "Smith" not in caplog.text


async def test_cancelling_the_wait_for_a_stopping_worker_cancels() -> None:
    """Shows that waiting for the worker's end does not swallow the caller's cancellation."""
    is_claiming, is_ending = asyncio.Event(), asyncio.Event()

    async def claim() -> Step | None:
        try:
            is_claiming.set()
            await asyncio.Event().wait()
        finally:
            is_ending.set()
            await asyncio.sleep(0.05)  # like a statement in flight when it is cancelled
        return None

    lane = Lane("read", claim, ignore, ignore, ignore, slots=1, is_background=False)
    worker = Worker([lane], asyncio.Event())
    worker.start()
    await is_claiming.wait()
    stopping = asyncio.create_task(worker.stop())
    await is_ending.wait()
    stopping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopping
