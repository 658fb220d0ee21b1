"""Ingest status: progress of the newest version of each document of a folder."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import case, exists, func, tuple_
from sqlmodel import col

from storage.models import Rung
from storage.queues.planner import Generations
from storage.sql.database import Database
from storage.sql.document_state import (
    document_state,
    has_reading,
    is_newest_live,
    live_reading,
    newest,
    newest_size,
    of_newest,
)
from storage.sql.tables import DocumentRow, PublicationRow, ReadingRow


@dataclass(frozen=True, slots=True)
class IngestStatus:
    """Progress of a document's newest version."""

    document: UUID
    file: str
    # Bytes.
    size: int
    # Live rung; None if the version is not live.
    rung: Rung | None
    # Live pages.
    pages: int
    # Final error, a sentence for an admin; None if progress is still possible.
    reason: str | None
    # The quick reading found no text: only a full one, by OCR, may.
    is_silent: bool
    # Another reading, or the publication, is pending.
    is_underway: bool

    @property
    def waits_for_ocr(self) -> bool:
        """True if nothing is live before OCR has read it."""
        return self.is_silent and self.rung is None and self.reason is None

    def has_reached(self, rung: Rung) -> bool:
        """True if it has reached this rung, or never will."""
        if self.reason is not None or (rung is Rung.QUICK and self.waits_for_ocr):
            return True
        if rung is Rung.FULL and self.is_underway:
            return False
        return self.rung in (rung, Rung.FULL)


async def ingest_statuses(database: Database, folder_id: int, generations: Generations) -> list[IngestStatus]:
    """Return the status of each undeleted document of a folder, by file."""
    kinds = tuple_(col(ReadingRow.generation), col(ReadingRow.rung)).in_(generations.pairs())
    quick = (col(ReadingRow.generation) == generations.quick) & (col(ReadingRow.rung) == Rung.QUICK.value)
    why_failed = of_newest(func.coalesce(ReadingRow.reason, ""), "failed", also=kinds)
    awaited = exists().where(  # a finished reading whose publication is pending
        col(PublicationRow.reading_id) == ReadingRow.id,
        col(PublicationRow.version_id) == newest.id,
        col(PublicationRow.state) == "pending",
    )
    to_publish = has_reading("waiting", "done", "failed", also=kinds & awaited.correlate(ReadingRow, newest))
    query = (
        document_state.add_columns(
            col(DocumentRow.id),
            col(DocumentRow.file),
            func.coalesce(newest_size(), 0),
            case((is_newest_live, live_reading.rung)),
            case((is_newest_live, live_reading.pages), else_=0),
            func.coalesce(DocumentRow.reason, why_failed),
            has_reading("done", also=quick & (col(ReadingRow.chunks) == 0)),
            has_reading("waiting", also=kinds) | to_publish,
        )
        .where(col(DocumentRow.folder_id) == folder_id, col(DocumentRow.state) != "deleted")
        .order_by(col(DocumentRow.file))
    )
    async with database.snapshot() as session:
        rows = (await session.execute(query)).all()
    return [
        IngestStatus(
            document, file, size, Rung(rung) if rung else None, pages, reason, is_silent, is_underway
        )
        for document, file, size, rung, pages, reason, is_silent, is_underway in rows
    ]
