"""What became of an ingestion: the last thing that ``footnote ingest`` says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from storage.standing import IngestStatus


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
    waiting_for_ocr: tuple[str, ...] = ()
    """Files that answer once OCR has read them."""
    skipped: tuple[str, ...] = ()
    """Loose PDFs that no channel was named for."""


def result_of(statuses: Sequence[IngestStatus]) -> IngestResult:
    """What became of these documents."""
    return IngestResult(
        files=len(statuses),
        live=sum(one.rung is not None for one in statuses),
        pages=sum(one.pages for one in statuses),
        quarantined=tuple((one.file, one.reason) for one in statuses if one.reason is not None),
        waiting_for_ocr=tuple(one.file for one in statuses if one.waits_for_ocr),
    )
