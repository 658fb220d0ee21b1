"""What the rounds of a pair came to, the table of all pairs, and how memory grew."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median

# Of the memory of one process, from the second fifth of its life to the last.
MAX_GROWTH = 0.05
FIFTHS = 5
# Of a life, one a second: a shorter one says nothing about growth.
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
    """Rounds of one pair; sums, but for ``longest`` and ``growths``."""

    minutes: float = 0.0
    # Of ``serve`` and of the index's server.
    kills: int = 0
    # Questions of Slack that were acknowledged.
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
    # Hostile files that ended as they must not, or whose hidden words are found.
    harmed: int = 0
    # Of the share: its server killed or hanging, its folder away.
    outages: int = 0
    full_disks: int = 0
    # Of the clock of ``serve``.
    jumps: int = 0
    # Seconds from the first acknowledgement of a question to its answer.
    longest: float = 0.0
    # Of the memory of the process that lived longest, one a round.
    growths: list[float] = field(default_factory=list)

    def add(self, other: ChaosTally) -> None:
        """Take another round."""
        for name, value in asdict(other).items():
            old = getattr(self, name)
            setattr(self, name, max(old, value) if name == "longest" else old + value)

    @property
    def growth(self) -> float | None:
        """The median of all rounds; None: no process lived long enough."""
        return median(self.growths) if self.growths else None


def growth(samples: Sequence[float]) -> float | None:
    """By how much memory grew, as a share: from the median of the second fifth to that of the last.

    The first fifth is the warm-up. None: too few samples.
    """
    if len(samples) < FEWEST_SAMPLES:
        return None
    size = len(samples) // FIFTHS
    return median(samples[-size:]) / median(samples[size : 2 * size]) - 1


def grown(pair: str, tally: ChaosTally) -> list[str]:
    """Return the fault of a pair whose processes grow."""
    if tally.growth is None or tally.growth <= MAX_GROWTH:
        return []
    return [f"{pair}: memory grows by {tally.growth:.1%}, of {MAX_GROWTH:.0%} at most"]


def table(tallies: Mapping[str, ChaosTally]) -> str:
    """One row for each pair."""
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
