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
        self._at_first: int | None = None
        """Bytes that were done before we began: they say nothing about our speed."""

    def progress(self, standings: Sequence[Standing], unfinished: int) -> IngestProgress:
        """Progress of these documents, and of so many files that are not taken yet."""
        done = [one for one in standings if one.has_reached(self._rung)]
        seconds = time.monotonic() - self._started
        pages = sum(one.pages for one in done)
        return IngestProgress(
            files=len(standings) + unfinished,
            files_done=len(done),
            pages_done=pages,
            pages_per_second=pages / seconds if seconds > 0 else 0.0,
            seconds_left=self._left(standings, done, seconds),
            rung=self._rung,
            quarantined=sum(one.reason is not None for one in standings),
        )

    def _left(self, standings: Sequence[Standing], done: Sequence[Standing], seconds: float) -> float | None:
        bytes_done = sum(one.size for one in done)
        if self._at_first is None:
            self._at_first = bytes_done
        left = sum(one.size for one in standings) - bytes_done
        ours = bytes_done - self._at_first
        if left == 0:
            return 0.0 if standings else None
        return seconds * left / ours if ours > 0 else None


def result_of(standings: Sequence[Standing]) -> IngestResult:
    """What became of these documents."""
    return IngestResult(
        files=len(standings),
        live=sum(one.rung is not None for one in standings),
        pages=sum(one.pages for one in standings),
        quarantined=tuple((one.file, one.reason) for one in standings if one.reason is not None),
    )
