"""Deduplication of repeated events, during the first one's storage and afterwards."""

from __future__ import annotations

import asyncio

import pytest

from bot.chat.conversation.event_deduplication import EventDeduplicator
from storage.errors import DatabaseUnavailable


class SlowDatabase:
    """A gated fake database that counts calls."""

    def __init__(self) -> None:
        self.works = asyncio.Event()
        self.calls = 0
        self.fails = False

    async def keep(self) -> bool:
        """Wait for the gate, then return or fail."""
        self.calls += 1
        await self.works.wait()
        if self.fails:
            raise DatabaseUnavailable("the disk is full")
        return True


async def test_repetitions_wait_for_the_first_without_extra_work() -> None:
    """Shows that no repetition is acknowledged before the first one is stored, and each one afterwards."""
    events, database = EventDeduplicator(), SlowDatabase()
    tasks = [asyncio.create_task(events.store_once("e1", database.keep)) for _ in range(100)]
    await asyncio.sleep(0.01)
    assert not any(task.done() for task in tasks)
    tasks[1].cancel()  # its platform timed out, which must not affect the others
    database.works.set()
    first, _, *others = await asyncio.gather(*tasks, return_exceptions=True)
    assert (first, set(others), database.calls) == (True, {False}, 1)
    assert await events.store_once("e1", database.keep) is False
    assert database.calls == 1


async def test_an_event_that_failed_is_stored_on_repetition() -> None:
    """Shows that no repetition is acknowledged if the first one failed or was cancelled."""
    events, database = EventDeduplicator(), SlowDatabase()
    database.fails = True
    tasks = [asyncio.create_task(events.store_once("e1", database.keep)) for _ in range(3)]
    await asyncio.sleep(0.01)
    database.works.set()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(one) for one in outcomes] == [DatabaseUnavailable] * 3
    database.fails = False
    database.works.clear()
    broken_off, waiting = (asyncio.create_task(events.store_once("e1", database.keep)) for _ in range(2))
    await asyncio.sleep(0.01)
    broken_off.cancel()
    with pytest.raises(DatabaseUnavailable):
        await waiting
    database.works.set()
    assert await events.store_once("e1", database.keep) is True


async def test_only_the_last_events_are_remembered() -> None:
    """Shows that memory is bounded: an older event is looked up in the database again."""
    events, database = EventDeduplicator(most=2), SlowDatabase()
    database.works.set()
    for event in ("e1", "e2", "e3"):
        await events.store_once(event, database.keep)
    assert await events.store_once("e3", database.keep) is False
    assert database.calls == 3
    assert await events.store_once("e1", database.keep) is True
