"""How far the newest version of each document of a folder has come: what an ingestion waits for."""

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
    """One document's newest version."""

    document: UUID
    file: str
    # Bytes.
    size: int
    # How it answers now; None while it does not.
    rung: Rung | None
    # Pages that answer.
    pages: int
    # Why it will not get any further, as a sentence for an admin; None when it may.
    reason: str | None
    # Its quick reading found no text: only the full one, by OCR, may.
    is_silent: bool
    # Another reading of it, or its publication, is on its way.
    is_underway: bool

    @property
    def waits_for_ocr(self) -> bool:
        """True if nothing of it answers before OCR has read it."""
        return self.is_silent and self.rung is None and self.reason is None

    def has_reached(self, rung: Rung) -> bool:
        """True if waiting for this rung is over: it answers so far, or never will."""
        if self.reason is not None or (rung is Rung.QUICK and self.waits_for_ocr):
            return True
        if rung is Rung.FULL and self.is_underway:
            return False
        return self.rung in (rung, Rung.FULL)


async def ingest_statuses(database: Database, folder_id: int, generations: Generations) -> list[IngestStatus]:
    """Return every document of a folder that is not deleted, by file."""
    kinds = tuple_(col(ReadingRow.generation), col(ReadingRow.rung)).in_(generations.pairs())
    quick = (col(ReadingRow.generation) == generations.quick) & (col(ReadingRow.rung) == Rung.QUICK.value)
    why_failed = of_newest(func.coalesce(ReadingRow.reason, ""), "failed", also=kinds)
    awaited = exists().where(  # what was read is not yet what answers
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
