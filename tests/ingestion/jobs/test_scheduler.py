"""Scheduler: keeps its interval through clock changes and never overlaps ticks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
from harness.clocks import shift_wall_clock
from harness.waiting import PATIENCE

from ingestion.jobs.scheduler import JitteredInterval, Scheduler


class Ticks:
    """Records the times of its ticks."""

    def __init__(self) -> None:
        self.at: list[float] = []

    async def tick(self) -> None:
        """Record a tick."""
        self.at.append(time.monotonic())

    async def until(self, number: int, seconds: float = PATIENCE) -> None:
        """Wait for a number of ticks; fail when they do not occur in time."""
        end = time.monotonic() + seconds
        while len(self.at) < number:
            assert time.monotonic() < end, "it did not tick"
            await asyncio.sleep(0.02)


@pytest.fixture
async def schedule() -> AsyncIterator[Scheduler]:
    """A running scheduler."""
    started = Scheduler()
    started.start()
    yield started
    await started.stop()


async def test_a_clock_set_back_delays_no_tick(schedule: Scheduler) -> None:
    """Shows that ticks scheduled by a clock an hour ahead do not wait for an hour."""
    ticks = Ticks()
    with shift_wall_clock(timedelta(hours=1)):
        schedule.every(0.1, "a", ticks.tick)
    await ticks.until(5)


def test_a_clock_set_forward_causes_no_catch_up() -> None:
    """Shows that the next tick is counted from now, not stepped from the last one."""
    rhythm = JitteredInterval(1.0)
    then = datetime(1970, 1, 1, tzinfo=UTC)
    now = then + timedelta(days=20_000)
    following = rhythm.get_next_fire_time(then, now)
    assert timedelta(seconds=1) <= following - now <= timedelta(seconds=1.1)
    assert following <= rhythm.latest(now)


async def test_a_tick_longer_than_its_interval_never_overlaps(schedule: Scheduler) -> None:
    """Shows that missed ticks are skipped."""
    running = most = ended = 0

    async def tick() -> None:
        nonlocal running, most, ended
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.5)
        running -= 1
        ended += 1

    schedule.every(0.05, "slow", tick)
    begun = time.monotonic()
    while ended < 3:
        await asyncio.sleep(0.05)
    assert most == 1
    assert time.monotonic() - begun >= 1.5


async def test_a_tick_can_be_brought_forward_but_not_delayed(schedule: Scheduler) -> None:
    ticks = Ticks()
    schedule.every(3600, "rare", ticks.tick)
    await ticks.until(1)
    schedule.bring_forward("rare", 0.2)
    schedule.bring_forward("rare", 1800)
    schedule.bring_forward("nobody", 0.2)
    await ticks.until(2)


async def test_a_failed_tick_is_followed_by_the_next(
    schedule: Scheduler, caplog: pytest.LogCaptureFixture
) -> None:
    """Shows that the error's location is logged and its message is not."""
    ticks = Ticks()

    async def tick() -> None:
        await ticks.tick()
        raise ValueError("the salary of Ms Smith")

    schedule.every(0.05, "bad", tick)
    await ticks.until(3)
    assert "bad: ValueError at " in caplog.text
    assert "Smith" not in caplog.text
