"""Tallies of chaos rounds by pair, their table, and memory growth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median

# Maximum memory growth of a process, from the second to the last fifth of its life.
MAX_GROWTH = 0.05
FIFTHS = 5
# Minimum samples, one a second: a shorter life says nothing about growth.
FEWEST_SAMPLES = 100
COLUMNS = {
    "minutes": "minutes",
    "kills": "kills",
    "events": "events",
    "unanswered": "lost answers",
    "doubled": "doubled",
    "lost": "lost files",
    "duplicates": "duplicates",
    "orphans": "orphans",
    "gaps": "gaps",
    "hostile": "hostile",
    "harmed": "harmed",
    "outages": "share away",
    "full_disks": "disk full",
    "jumps": "clock jumps",
    "longest": "longest ask",
}


@dataclass
class ChaosTally:
    """Tally of one pair's rounds; sums, except for ``longest`` and ``growths``."""

    minutes: float = 0.0
    # Kills of ``serve`` and of the index server.
    kills: int = 0
    # Slack questions that were acknowledged.
    events: int = 0
    unanswered: int = 0
    # Questions with more than one message.
    doubled: int = 0
    lost: int = 0
    duplicates: int = 0
    orphans: int = 0
    # As in the kill table.
    gaps: int = 0
    hostile: int = 0
    # Hostile files with a wrong outcome, or with hidden text that is found.
    harmed: int = 0
    # Outages of the share: server killed or paused, folder removed.
    outages: int = 0
    full_disks: int = 0
    # Clock jumps of ``serve``.
    jumps: int = 0
    # Longest time from the first acknowledgement of a question to its answer, in seconds.
    longest: float = 0.0
    # Memory growth of the process that lived longest, one per round.
    growths: list[float] = field(default_factory=list)

    def add(self, other: ChaosTally) -> None:
        """Add another round."""
        for name, value in asdict(other).items():
            old = getattr(self, name)
            setattr(self, name, max(old, value) if name == "longest" else old + value)

    @property
    def growth(self) -> float | None:
        """Median growth of all rounds; None if no process lived long enough."""
        return median(self.growths) if self.growths else None


def growth(samples: Sequence[float]) -> float | None:
    """Return the memory growth as a fraction, from the median of the second fifth to that of the last.

    The first fifth is warm-up. None if there are too few samples.
    """
    if len(samples) < FEWEST_SAMPLES:
        return None
    size = len(samples) // FIFTHS
    return median(samples[-size:]) / median(samples[size : 2 * size]) - 1


def grown(pair: str, tally: ChaosTally) -> list[str]:
    """Return the fault of a pair whose processes grow, if they do."""
    if tally.growth is None or tally.growth <= MAX_GROWTH:
        return []
    return [f"{pair}: memory grows by {tally.growth:.1%}, of {MAX_GROWTH:.0%} at most"]


def table(tallies: Mapping[str, ChaosTally]) -> str:
    """Return the table, with a row per pair."""
    return "\n".join(_lines(tallies))


def _lines(tallies: Mapping[str, ChaosTally]) -> Iterator[str]:
    yield _line("engine x database", [*COLUMNS.values(), "memory"])
    for pair, tally in tallies.items():
        row = asdict(tally)
        numbers = [f"{row[name]:.1f}" if isinstance(row[name], float) else row[name] for name in COLUMNS]
        yield _line(pair, [*numbers, "short" if tally.growth is None else f"{tally.growth:+.1%}"])


def _line(pair: str, cells: Sequence[object]) -> str:
    widths = [len(title) + 2 for title in (*COLUMNS.values(), "memory")]
    return f"{pair:<19}" + "".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
