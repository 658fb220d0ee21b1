"""The time of day, always in UTC, and seconds that only grow: whoever compares moments asks here."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

_ahead = timedelta()
_passed = 0.0


def utc_now() -> datetime:
    """Now, in UTC and with its zone."""
    return datetime.now(UTC) + _ahead


def steady_seconds() -> float:
    """Seconds that only grow, counted from no known moment: for how long something rests or is trusted."""
    return time.monotonic() + _passed


@contextmanager
def clock_ahead(by: timedelta) -> Iterator[None]:
    """Let this process's clock be wrong by so much: to show that a clock that jumps does no harm."""
    global _ahead  # noqa: PLW0603 - a process has one clock
    before, _ahead = _ahead, _ahead + by
    try:
        yield
    finally:
        _ahead = before


@contextmanager
def time_passed(by: timedelta) -> Iterator[None]:
    """Let so much time have gone by for this process, on both clocks: to show what waiting leads to."""
    global _passed  # noqa: PLW0603 - a process has one clock
    before, _passed = _passed, _passed + by.total_seconds()
    try:
        with clock_ahead(by):
            yield
    finally:
        _passed = before
