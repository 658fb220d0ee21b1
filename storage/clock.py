"""Wall clock in UTC and monotonic seconds; tests can shift both."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

_ahead = timedelta()
_passed = 0.0


def utc_now() -> datetime:
    """Return the current time, timezone-aware in UTC."""
    return datetime.now(UTC) + _ahead


def monotonic_seconds() -> float:
    """Return monotonic seconds from an arbitrary origin, for timeouts, TTLs and backoff."""
    return time.monotonic() + _passed


@contextmanager
def shift_wall_clock(by: timedelta) -> Iterator[None]:
    """Shift this process's wall clock, to test that clock jumps do no harm."""
    global _ahead  # noqa: PLW0603 - a process has one clock
    before, _ahead = _ahead, _ahead + by
    try:
        yield
    finally:
        _ahead = before


@contextmanager
def advance_clocks(by: timedelta) -> Iterator[None]:
    """Advance both clocks of this process, to test what happens after a wait."""
    global _passed  # noqa: PLW0603 - a process has one clock
    before, _passed = _passed, _passed + by.total_seconds()
    try:
        with shift_wall_clock(by):
            yield
    finally:
        _passed = before
