"""What an ingestion reports: how far it is, and what became of it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from storage.models import Rung
from storage.standing import Standing


@dataclass(frozen=True, slots=True)
class IngestProgress:
    """How far an ingestion is on its way to one rung."""

    files: int
    files_done: int
    """Files that answer at this rung, or never will."""
    pages_done: int
    pages_per_second: float
    seconds_left: float | None
    """None while nothing is known yet."""
    rung: Rung
    quarantined: int


@dataclass(frozen=True, slots=True)
class IngestResult:
    """What became of an ingestion."""

    files: int
    live: int
    """Files that answer."""
    pages: int
    """Pages that answer."""
    quarantined: tuple[tuple[str, str], ...]
    """(file, sentence for an admin) of every file that could not be read."""
    skipped: tuple[str, ...] = ()
    """Loose PDFs that no channel was named for."""


class Pace:
    """Turns standings into progress: measured since it was made, in bytes, for pages are known late."""

    def __init__(self, rung: Rung) -> None:
        self._rung = rung
        self._started = time.monotonic()
        self._at_first: tuple[int, int] | None = None
        """(pages, bytes) that were done before we began: they say nothing about our speed."""

    def progress(self, standings: Sequence[Standing], unfinished: int) -> IngestProgress:
        """Progress of these documents, and of so many files that are not taken yet."""
        done = [one for one in standings if one.has_reached(self._rung)]
        pages, size = sum(one.pages for one in done), sum(one.size for one in done)
        first_pages, first_size = self._at_first = self._at_first or (pages, size)
        seconds = time.monotonic() - self._started
        left = sum(one.size for one in standings) - size
        return IngestProgress(
            files=len(standings) + unfinished,
            files_done=len(done),
            pages_done=pages,
            pages_per_second=(pages - first_pages) / seconds if seconds > 0 else 0.0,
            seconds_left=0.0 if left + unfinished == 0 else _seconds_left(seconds, left, size - first_size),
            rung=self._rung,
            quarantined=sum(one.reason is not None for one in standings),
        )


def _seconds_left(seconds: float, left: int, done: int) -> float | None:
    return seconds * left / done if left > 0 and done > 0 else None


def result_of(standings: Sequence[Standing]) -> IngestResult:
    """What became of these documents."""
    return IngestResult(
        files=len(standings),
        live=sum(one.rung is not None for one in standings),
        pages=sum(one.pages for one in standings),
        quarantined=tuple((one.file, one.reason) for one in standings if one.reason is not None),
    )
