"""The ticker: APScheduler calls our steps now and then; what is due is written in SQL, never here."""

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

# A tick that comes while the last one still runs is left out; that is no news worth a warning.
logging.getLogger("apscheduler").setLevel(logging.ERROR)


class JitteredInterval(BaseTrigger):
    """Fires now and then, each time counted from now.

    APScheduler's own interval counts from the tick before, one interval at a time: for a clock that was put
    forward by years, or after a long sleep, it would count until the end of all patience.
    """

    def __init__(self, seconds: float) -> None:
        """Fire every ``seconds`` seconds, a little later by chance."""
        self._seconds = seconds

    def get_next_fire_time(self, _previous: datetime | None, now: datetime) -> datetime:
        """When to fire after ``now``."""
        return now + timedelta(seconds=self._seconds * (1 + _CHANCE.uniform(0, JITTER_SHARE)))

    def latest(self, now: datetime) -> datetime:
        """No fire time that was ever returned lies after this one, unless the clock was put back since."""
        return now + timedelta(seconds=self._seconds * (1 + JITTER_SHARE))


class Scheduler:
    """Repeating ticks in memory: missed ones are made up for by a single one, none overlaps itself."""

    def __init__(self) -> None:
        self._scheduler = AsyncIOScheduler(
            timezone=UTC, job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None}
        )
        self._running: set[asyncio.Task[Any]] = set()
        self._clock: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begin ticking."""
        self._scheduler.start()
        self._on_clock_jump()

    def every(self, seconds: float, name: str, tick: Callable[[], Awaitable[object]]) -> None:
        """Call ``tick`` now and then every ``seconds`` seconds, a little spread by chance."""
        self._scheduler.add_job(
            self._guard,
            JitteredInterval(seconds),
            args=(name, tick),
            id=name,
            next_run_time=utc_now(),
            replace_existing=True,
        )

    def bring_forward(self, name: str, seconds: float) -> None:
        """Let the next tick of this name come in so many seconds, unless it comes sooner anyway."""
        soon, job = utc_now() + timedelta(seconds=seconds), self._scheduler.get_job(name)
        if job is not None and job.next_run_time > soon:
            job.modify(next_run_time=soon)

    def drop(self, name: str) -> None:
        """Never call this tick again; one that runs may end."""
        self._scheduler.remove_job(name)

    async def stop(self) -> None:
        """Tick no more, once the ticks that run have ended or had their time."""
        if self._clock is not None:
            self._clock.cancel()
        if not self._scheduler.running:
            return
        self._scheduler.pause()
        if self._running:
            await asyncio.wait(self._running, timeout=STOP_SECONDS)
        self._scheduler.shutdown(wait=False)

    def _on_clock_jump(self) -> None:
        """Tick at once after the time of day, which APScheduler goes by, was put back."""
        now = utc_now()
        for job in self._scheduler.get_jobs():
            if job.next_run_time > job.trigger.latest(now):
                job.modify(next_run_time=now)
        self._clock = asyncio.get_running_loop().call_later(CLOCK_SECONDS, self._on_clock_jump)

    async def _guard(self, name: str, tick: Callable[[], Awaitable[object]]) -> None:
        """One tick; whatever goes wrong in it, the next one comes."""
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
