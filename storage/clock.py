"""The time of day, always in UTC; the only place that asks the machine for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

_ahead = timedelta()


def utc_now() -> datetime:
    """Now, in UTC and with its zone."""
    return datetime.now(UTC) + _ahead


@contextmanager
def clock_ahead(by: timedelta) -> Iterator[None]:
    """Let this process's clock be wrong by so much: to show that a clock that jumps does no harm."""
    global _ahead  # noqa: PLW0603 - a process has one clock
    before, _ahead = _ahead, _ahead + by
    try:
        yield
    finally:
        _ahead = before
