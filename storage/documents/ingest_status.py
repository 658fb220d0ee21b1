"""How far the newest version of each document of a folder has come: what an ingestion waits for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, ScalarSelect, Subquery, exists, func, select, tuple_
from sqlalchemy.orm import aliased
from sqlmodel import col

from storage.models import Rung
from storage.queues.planner import Generations
from storage.sql.database import Database
from storage.sql.tables import BlobRow, DocumentRow, PublicationRow, ReadingRow, VersionRow


@dataclass(frozen=True, slots=True)
class IngestStatus:
    """One document's newest version."""

    document: UUID
    file: str
    size: int
    """Bytes."""
    rung: Rung | None
    """How it answers now; None while it does not."""
    pages: int
    """Pages that answer."""
    reason: str | None
    """Why it will not get any further, as a sentence for an admin; None when it may."""
    is_silent: bool
    """Its quick reading found no text: only the full one, by OCR, may."""
    is_underway: bool
    """Another reading of it, or its publication, is on its way."""

    @property
    def waits_for_ocr(self) -> bool:
        """Whether nothing of it answers before OCR has read it."""
        return self.is_silent and self.rung is None and self.reason is None

    def has_reached(self, rung: Rung) -> bool:
        """Whether waiting for this rung is over: it answers so far, or never will."""
        if self.reason is not None or (rung is Rung.QUICK and self.waits_for_ocr):
            return True
        if rung is Rung.FULL and self.is_underway:
            return False
        return self.rung in (rung, Rung.FULL)


async def ingest_statuses(database: Database, folder_id: int, generations: Generations) -> list[IngestStatus]:
    """Every document of a folder that is not deleted, by file."""
    newest, live = _newest(), _live()
    query = (
        select(
            col(DocumentRow.id),
            col(DocumentRow.file),
            func.coalesce(BlobRow.size, 0),
            live.c.rung,
            func.coalesce(live.c.pages, 0),
            func.coalesce(DocumentRow.reason, _failure(newest, generations)),
            _is_silent(newest, generations),
            _is_underway(newest, generations),
        )
        .outerjoin(newest, newest.c.document_id == DocumentRow.id)
        .outerjoin(BlobRow, col(BlobRow.sha256) == newest.c.sha256)
        .outerjoin(live, live.c.version_id == newest.c.id)
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


def _newest() -> Subquery:
    other = aliased(VersionRow)
    last = select(func.max(other.number)).where(col(other.document_id) == VersionRow.document_id)
    query = select(col(VersionRow.id), col(VersionRow.document_id), col(VersionRow.sha256))
    return query.where(col(VersionRow.number) == last.correlate(VersionRow).scalar_subquery()).subquery()


def _live() -> Subquery:
    return (
        select(col(PublicationRow.version_id), col(ReadingRow.rung), col(ReadingRow.pages))
        .join(ReadingRow, col(ReadingRow.id) == PublicationRow.reading_id)
        .where(col(PublicationRow.state) == "live")
        .subquery()
    )


def _failure(newest: Subquery, generations: Generations) -> ScalarSelect[Any]:
    return (
        select(func.coalesce(ReadingRow.reason, ""))
        .where(col(ReadingRow.sha256) == newest.c.sha256, col(ReadingRow.state) == "failed")
        .where(tuple_(col(ReadingRow.generation), col(ReadingRow.rung)).in_(generations.pairs()))
        .limit(1)
        .correlate(newest)
        .scalar_subquery()
    )


def _is_silent(newest: Subquery, generations: Generations) -> ColumnElement[bool]:
    return exists().where(
        col(ReadingRow.sha256) == newest.c.sha256,
        col(ReadingRow.generation) == generations.quick,
        col(ReadingRow.rung) == Rung.QUICK.value,
        col(ReadingRow.state) == "done",
        col(ReadingRow.chunks) == 0,
    )


def _is_underway(newest: Subquery, generations: Generations) -> ColumnElement[bool]:
    """While it is read, quickly first, and while what was read is not yet what answers."""
    reading, publication = aliased(ReadingRow), aliased(PublicationRow)
    ours = (
        col(reading.sha256) == newest.c.sha256,
        tuple_(col(reading.generation), col(reading.rung)).in_(generations.pairs()),
    )
    made = exists().where(*ours, col(reading.state) == "waiting")
    placed = exists().where(
        *ours,
        col(publication.reading_id) == reading.id,
        col(publication.version_id) == newest.c.id,
        col(publication.state) == "pending",
    )
    return made | placed
