"""Readiness: whether questions can be answered now, else which part is not ready and why.

A reason is one of the sentences here or a database error's: other error messages may name a password.
"""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace

from storage.chat_models import Outage
from storage.clock import monotonic_seconds, utc_now
from storage.errors import DatabaseUnavailable, raised_at
from storage.task_group import cancel_and_wait

# Timeout of a check; a slower part is not ready.
READY_SECONDS = 3.0

# Part -> default reason.
DEFAULT_REASONS = {
    "sql": "the database does not answer",
    "index": "the index does not answer",
    "tenants": "the index has lost a channel and is rebuilding it",
    "blobs": "stored files cannot be written",
    "keys": "the link signing keys cannot be read",
}
# Interval of the checks for admin notifications.
CHECK_INTERVAL_SECONDS = 15.0
# Admins are notified of outages that last this long.
OUTAGE_SECONDS = 60.0
_FULL = "the disk is full"
_DISK_FULL = {errno.ENOSPC, errno.EDQUOT}

# Checks one part; raises or returns False if it does not work.
Check = Callable[[], Awaitable[bool | None]]
# Signature of ``storage.chat.notification_events.Outages.keep``.
KeepOutages = Callable[[Mapping[str, Outage | None], Sequence[Outage]], Awaitable[None]]

_log = logging.getLogger(__name__)


class Readiness:
    """Concurrent checks of the parts that answering needs.

    A late check is not started again before it has finished.
    """

    def __init__(
        self,
        checks: Mapping[str, Check],
        seconds: float = READY_SECONDS,
        *,
        reasons: Mapping[str, str] | None = None,
    ) -> None:
        """Run these ``checks`` by part; ``reasons``: default reasons of parts not in DEFAULT_REASONS."""
        self._checks = checks
        self._default_reasons = {**DEFAULT_REASONS, **(reasons or {})}
        self._seconds = seconds
        self._running: dict[str, asyncio.Task[str]] = {}
        self._failing: dict[str, str] = {}

    async def not_ready(self) -> list[str]:
        """Return the names of parts that fail or do not answer in time; empty if all work."""
        return list(await self.reasons())

    async def reasons(self) -> dict[str, str]:
        """Return part -> reason for each part that does not work; empty if all work."""
        for name, check in self._checks.items():
            if name not in self._running:
                self._running[name] = asyncio.create_task(
                    self._failure_of(name, check), name=f"readiness-{name}"
                )
        asked = {name: self._running[name] for name in self._checks}
        done, _ = await asyncio.wait(asked.values(), timeout=self._seconds)
        for name, task in asked.items():
            if task in done and self._running.get(name) is task:
                del self._running[name]
        late = f"no answer within {self._seconds:g} s"
        faults = {name: task.result() if task in done else late for name, task in asked.items()}
        failing = {name: fault for name, fault in faults.items() if fault}
        if failing.keys() != self._failing.keys():
            told = "; ".join(f"{name}: {failing[name]}" for name in sorted(failing))
            _log.warning("not ready: %s", told or "recovered")
        self._failing = failing
        return failing

    async def aclose(self) -> None:
        """Cancel running checks."""
        await cancel_and_wait(*self._running.values())

    async def _failure_of(self, name: str, check: Check) -> str:
        """Return why a part does not work, '' if it works."""
        reason = self._default_reasons.get(name, "it does not work")
        try:
            return reason if await check() is False else ""
        except DatabaseUnavailable as error:
            return str(error)
        except Exception as error:  # whatever it is, the part does not work; it may name a password
            _log.info("%s does not work: %s", name, raised_at(error))
            return _FULL if _is_disk_full(error) else reason


class OutageWatch:
    """Notification of admins about parts that have failed for a minute, and about their recovery.

    Events that cannot be stored, as while SQL itself is down, are stored once it is back.
    """

    def __init__(
        self, readiness: Readiness, keep: KeepOutages | None, seconds: float = OUTAGE_SECONDS
    ) -> None:
        """Pass outages of at least ``seconds`` to ``keep``, if given; readiness logs changes in any case."""
        self._readiness = readiness
        self._store_outages = keep
        self._seconds = seconds
        # Failing part -> (monotonic seconds of its start, outage).
        self._begun: dict[str, tuple[float, Outage]] = {}
        # Part -> ended outage that is not stored yet.
        self._ended: dict[str, Outage] = {}

    async def tick(self) -> None:
        """Check all parts and store outages that began, last or ended.

        Raises:
            DatabaseUnavailable: they could not be stored; the next tick stores them with later ones.
        """
        reasons, moment, now = await self._readiness.reasons(), monotonic_seconds(), utc_now()
        for part, reason in reasons.items():
            begun, outage = self._begun.get(part) or (moment, Outage(part, reason, now))
            self._begun[part] = begun, replace(outage, reason=reason)
        for part in self._begun.keys() - reasons.keys():
            begun, outage = self._begun.pop(part)
            if moment - begun >= self._seconds:
                first = self._ended.get(part, outage)
                self._ended[part] = replace(outage, since=first.since, until=now)
        failing = {
            part: outage if moment - begun >= self._seconds else None
            for part, (begun, outage) in self._begun.items()
        }
        if self._store_outages:
            await self._store_outages(failing, [*self._ended.values()])
        self._ended.clear()


def _is_disk_full(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, OSError) and error.errno in _DISK_FULL:
            return True
        error = error.__cause__ or error.__context__
    return False
