"""Estimate of the time that reading still takes: usual seconds of the work left, at this machine's speed.

The usual seconds say how kinds of work compare, the speed how this machine compares with a usual one. It is
measured over the last seconds, and begins at 1: a start of engines is no speed.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

# Shorter spans give meaningless numbers of pages per second.
MIN_SECONDS = 1.0
# A quick reading, per file and per byte; large files are mostly pictures, which are quick.
QUICK_FILE_SECONDS = 0.3
QUICK_BYTES_PER_SECOND = 500_000
MAX_QUICK_BYTES = 5_000_000


class Window(NamedTuple):
    """Time over which a rung's speed is measured: a few files, and short enough to follow changes."""

    seconds: float
    # Seconds of usual work that count as done in that time, so that a short measurement says little.
    prior: float
    # Seconds of which no work is reported yet, as a step is reported at its end.
    unreported: float = 0.0


class Span(NamedTuple):
    """Time and amount of one reading's work."""

    start: datetime
    end: datetime
    pages: int
    # Usual seconds of what was done.
    work: float

    def share_after(self, moment: datetime) -> float:
        """Return the fraction of the work done after a moment; work without duration happened at its end."""
        if self.start < self.end:
            return max(0.0, (self.end - max(self.start, moment)) / (self.end - self.start))
        return float(self.end > moment)


class Speed(NamedTuple):
    """Throughput of a rung within its window."""

    pages_per_second: float
    # Usual seconds of work per second.
    work: float


def measure_speed(spans: Sequence[Span], window: Window, now: datetime) -> Speed:
    """Return the throughput of finished and running readings within the window that ends now."""
    since = max(now - timedelta(seconds=window.seconds), min((one.start for one in spans), default=now))
    seconds = max(0.0, (now - since).total_seconds())
    shares = [(one, one.share_after(since)) for one in spans]
    pages = sum(one.pages * share for one, share in shares)
    work = sum(one.work * share for one, share in shares)
    measured = max(0.0, seconds - window.unreported)
    speed = (work + window.prior) / (measured + window.prior)
    return Speed(pages / seconds if seconds >= MIN_SECONDS else 0.0, speed)


def without_start(spans: Sequence[Span]) -> list[Span]:
    """Return what was read since the first of these readings ended, which waited for engines to start."""
    since = min((one.end for one in spans), default=datetime.max)
    return [
        Span(max(one.start, since), one.end, one.pages, one.work * one.share_after(since))
        for one in spans
        if one.end > since
    ]
