"""Scheduler: APScheduler triggers our ticks; which work is due is decided in SQL, never here."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.base import BaseTrigger

from ingestion.errors import IngestionError
from storage.clock import utc_now
from storage.errors import StorageError, raised_at

JITTER_SHARE = 0.1
STOP_SECONDS = 5.0
CLOCK_SECONDS = 1.0
_CHANCE = random.SystemRandom()
_log = logging.getLogger(__name__)

# A tick that is skipped because the last one still runs is no reason for a warning.
logging.getLogger("apscheduler").setLevel(logging.ERROR)


class JitteredInterval(BaseTrigger):
    """Interval with jitter, counted from now.

    APScheduler's own interval counts from the previous tick, one interval at a time: after a clock jump of
    years, or a long sleep, it would loop practically forever.
    """

    def __init__(self, seconds: float) -> None:
        """Fire every ``seconds`` seconds, plus up to ``JITTER_SHARE`` at random."""
        self._seconds = seconds

    def get_next_fire_time(self, _previous: datetime | None, now: datetime) -> datetime:
        """Return the next fire time after ``now``."""
        return now + timedelta(seconds=self._seconds * (1 + _CHANCE.uniform(0, JITTER_SHARE)))

    def latest(self, now: datetime) -> datetime:
        """Return the latest possible fire time; a later one shows that the clock was put back."""
        return now + timedelta(seconds=self._seconds * (1 + JITTER_SHARE))


class Scheduler:
    """In-memory scheduler of periodic ticks: missed ticks are coalesced, and a tick never overlaps itself."""

    def __init__(self) -> None:
        self._scheduler = AsyncIOScheduler(
            timezone=UTC, job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None}
        )
        self._running: set[asyncio.Task[Any]] = set()
        self._clock: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Start ticking."""
        self._scheduler.start()
        self._on_clock_jump()

    def every(self, seconds: float, name: str, tick: Callable[[], Awaitable[object]]) -> None:
        """Call ``tick`` at once, and then every ``seconds`` seconds with jitter."""
        self._scheduler.add_job(
            self._guard,
            JitteredInterval(seconds),
            args=(name, tick),
            id=name,
            next_run_time=utc_now(),
            replace_existing=True,
        )

    def bring_forward(self, name: str, seconds: float) -> None:
        """Run the next tick of this name in at most ``seconds`` seconds."""
        soon, job = utc_now() + timedelta(seconds=seconds), self._scheduler.get_job(name)
        if job is not None and job.next_run_time > soon:
            job.modify(next_run_time=soon)

    def remove(self, name: str) -> None:
        """Remove a tick; a running one may finish."""
        self._scheduler.remove_job(name)

    async def stop(self) -> None:
        """Stop ticking; running ticks get ``STOP_SECONDS`` to finish."""
        if self._clock is not None:
            self._clock.cancel()
        if not self._scheduler.running:
            return
        self._scheduler.pause()
        if self._running:
            await asyncio.wait(self._running, timeout=STOP_SECONDS)
        self._scheduler.shutdown(wait=False)

    def _on_clock_jump(self) -> None:
        """Run jobs at once after the wall clock, which APScheduler uses, was put back."""
        now = utc_now()
        for job in self._scheduler.get_jobs():
            if job.next_run_time > job.trigger.latest(now):
                job.modify(next_run_time=now)
        self._clock = asyncio.get_running_loop().call_later(CLOCK_SECONDS, self._on_clock_jump)

    async def _guard(self, name: str, tick: Callable[[], Awaitable[object]]) -> None:
        """Run one tick and log its errors, so that the next one follows."""
        task = asyncio.ensure_future(tick())
        self._running.add(task)
        try:
            await task
        except (StorageError, IngestionError) as error:
            _log.warning("%s: %s", name, error)
        except Exception as error:
            _log.error("%s: %s", name, raised_at(error))
        finally:
            self._running.discard(task)
