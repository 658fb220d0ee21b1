"""The ticker: APScheduler calls our steps now and then; what is due is written in SQL, never here."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

from apscheduler.schedulers.asyncio import AsyncIOScheduler

from ingestion.errors import IngestionError
from storage.errors import StorageError

JITTER_SHARE = 0.1
STOP_SECONDS = 5.0
_log = logging.getLogger(__name__)

# A tick that comes while the last one still runs is left out; that is no news worth a warning.
logging.getLogger("apscheduler").setLevel(logging.ERROR)


class Schedule:
    """Repeating ticks in memory: missed ones are made up for by a single one, none overlaps itself."""

    def __init__(self) -> None:
        self._scheduler = AsyncIOScheduler(
            timezone=UTC, job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None}
        )
        self._running: set[asyncio.Task[Any]] = set()

    def start(self) -> None:
        """Begin ticking."""
        self._scheduler.start()

    def every(self, seconds: float, name: str, tick: Callable[[], Awaitable[object]]) -> None:
        """Call ``tick`` now and then every ``seconds`` seconds, a little spread by chance."""
        self._scheduler.add_job(
            self._guard,
            "interval",
            args=(name, tick),
            id=name,
            seconds=seconds,
            jitter=seconds * JITTER_SHARE,
            next_run_time=datetime.now(UTC),
            replace_existing=True,
        )

    def drop(self, name: str) -> None:
        """Never call this tick again; one that runs may end."""
        self._scheduler.remove_job(name)

    async def stop(self) -> None:
        """Tick no more, once the ticks that run have ended or had their time."""
        if not self._scheduler.running:
            return
        self._scheduler.pause()
        if self._running:
            await asyncio.wait(self._running, timeout=STOP_SECONDS)
        self._scheduler.shutdown(wait=False)

    async def _guard(self, name: str, tick: Callable[[], Awaitable[object]]) -> None:
        """One tick; whatever goes wrong in it, the next one comes."""
        task = asyncio.ensure_future(tick())
        self._running.add(task)
        try:
            await task
        except (StorageError, IngestionError) as error:
            _log.warning("%s: %s", name, error)
        except Exception as error:
            _log.error("%s: %s", name, type(error).__name__)
        finally:
            self._running.discard(task)
