"""Kill table: engine x database x crash point, with kills and faults."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields

SLOTS = ("kills", "lost", "duplicates", "orphans", "gaps")


@dataclass
class Tally:
    """Kills at one crash point, and the faults of the rounds that had them."""

    kills: int = 0
    # Files without their newest content live; missing chunks, vectors, blobs and readings.
    lost: int = 0
    # Duplicate chunks, documents or publications.
    duplicates: int = 0
    # Chunks, blobs and readings that belong to nothing.
    orphans: int = 0
    # Questions not answered by the old version, or answered by half a document or by two versions.
    gaps: int = 0

    def add(self, other: Tally) -> None:
        """Add another tally."""
        for slot in SLOTS:
            setattr(self, slot, getattr(self, slot) + getattr(other, slot))

    @property
    def faults(self) -> int:
        """Sum of all counts that must be 0."""
        return self.lost + self.duplicates + self.orphans + self.gaps


class Table:
    """Tallies by (engine x database, crash point)."""

    def __init__(self, rows: Iterable[dict[str, object]] = ()) -> None:
        self._tallies: dict[tuple[str, str], Tally] = {}
        for row in rows:
            numbers = {slot.name: int(str(row[slot.name])) for slot in fields(Tally)}
            self.add(str(row["pair"]), str(row["point"]), Tally(**numbers))

    def add(self, pair: str, point: str, tally: Tally) -> None:
        """Add the tally of a crash point."""
        self._tallies.setdefault((pair, point), Tally()).add(tally)

    def rows(self) -> list[dict[str, object]]:
        """Return the rows as JSON values."""
        return [
            {"pair": pair, "point": point, **asdict(tally)}
            for (pair, point), tally in sorted(self._tallies.items())
        ]

    def total(self, pair: str | None = None) -> Tally:
        """Return the total, or that of one pair."""
        total = Tally()
        for (of, _), tally in self._tallies.items():
            if pair in (None, of):
                total.add(tally)
        return total

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield _line("engine x database", "crash point", *SLOTS)
        for (pair, point), tally in sorted(self._tallies.items()):
            yield _line(pair, point, *(getattr(tally, slot) for slot in SLOTS))
        yield _line("all", "", *(getattr(self.total(), slot) for slot in SLOTS))


def _line(pair: str, point: str, *numbers: object) -> str:
    return f"{pair:<24}{point:<22}" + "".join(f"{number:>12}" for number in numbers)
