"""Wall clock in UTC and monotonic seconds; a process may run ahead of both."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta


@dataclass(slots=True)
class ClockOffsets:
    """Offsets from the system's clocks: none, unless a later time is simulated."""

    wall: timedelta = timedelta()
    monotonic: float = 0.0

    def add(self, wall: timedelta, monotonic: float = 0.0) -> None:
        """Run ahead by this much more."""
        self.wall += wall
        self.monotonic += monotonic


OFFSETS = ClockOffsets()


def utc_now() -> datetime:
    """Return the current time, timezone-aware in UTC."""
    return datetime.now(UTC) + OFFSETS.wall


def monotonic_seconds() -> float:
    """Return monotonic seconds from an arbitrary origin, for timeouts, TTLs and backoff."""
    return time.monotonic() + OFFSETS.monotonic
