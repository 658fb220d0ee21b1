"""Paired timing: alternates two variants, so that a busy moment affects both."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from statistics import median

Step = Callable[[int], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class PairedTimings:
    """Milliseconds of each run, by variant."""

    ours: list[float]
    other: list[float]

    @property
    def ratio(self) -> float:
        """Median of the pairwise ratios, ours / other."""
        return median(one / another for one, another in zip(self.ours, self.other, strict=True))


async def alternate(ours: Step, other: Step, turns: int) -> PairedTimings:
    """Run both with each number below ``turns``, swapping the order every time."""
    spent: tuple[list[float], list[float]] = ([], [])
    for number in range(turns):
        for which in (0, 1) if number % 2 else (1, 0):
            started = time.perf_counter()
            await (ours, other)[which](number)
            spent[which].append(1000 * (time.perf_counter() - started))
    return PairedTimings(*spent)


def percentiles(milliseconds: Sequence[float]) -> str:
    """Return median and 95th percentile as text."""
    ordered = sorted(milliseconds)
    return f"p50 {median(ordered):.0f} ms, p95 {ordered[int(0.95 * (len(ordered) - 1))]:.0f} ms"
