"""Access to chunks, pages, figures and sentence vectors that requeues damaged readings."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import TypeVar
from uuid import UUID

from sqlalchemy import select
from sqlmodel import col

from storage.embeddings.quantized_vectors import ChunkSentenceVectors, TextRange, Vector, by_span
from storage.errors import DatabaseUnavailable, LostReading
from storage.files.reading_files import ReadingFiles
from storage.models import Chunk, Figure, Page
from storage.queues.reading_queue import requeue_reading
from storage.sql.audit import AuditedAction, record_action
from storage.sql.database import Database
from storage.sql.document_state import newest_number
from storage.sql.tables import DocumentRow, ReadingRow, VersionRow

T = TypeVar("T")
_log = logging.getLogger(__name__)


class SelfHealingReadings:
    """Reads as ``ReadingFiles`` does, and requeues lost readings for ``serve`` to make again."""

    def __init__(self, files: ReadingFiles, database: Database) -> None:
        self._files = files
        self._database = database

    async def chunks_at(self, places: Sequence[tuple[UUID, int]]) -> list[Chunk]:
        """Return the chunk of each (reading, ordinal).

        Raises:
            LookupError: a reading has no chunk of this number.
            LostReading: its files are gone or corrupt, and are made again for later questions.
            BlobsUnavailable: they cannot be reached.
        """
        try:
            return await self._files.chunks_at(places)
        except LostReading:
            return await self._chunks_one_by_one(places)

    async def _chunks_one_by_one(self, places: Sequence[tuple[UUID, int]]) -> list[Chunk]:
        """Requeue every lost reading, then raise the first loss."""
        chunks, losses = [], []
        for place in places:
            try:
                chunks += await self._repair(place[0], self._files.chunks_at([place]))
            except LostReading as error:
                losses.append(error)
        if losses:
            raise losses[0]
        return chunks

    async def chunks(self, reading_id: UUID) -> list[Chunk]:
        """Return all chunks in order; raise as ``chunks_at``."""
        return await self._repair(reading_id, self._files.chunks(reading_id))

    async def page(self, reading_id: UUID, number: int) -> Page:
        """Return a page, counted from 1; raise as ``chunks_at``."""
        return await self._repair(reading_id, self._files.page(reading_id, number))

    async def page_texts(self, reading_id: UUID) -> list[str]:
        """Return the text of every page, in order; raise as ``chunks_at``."""
        return await self._repair(reading_id, self._files.page_texts(reading_id))

    async def sections(self, reading_id: UUID) -> list[tuple[tuple[str, ...], int]]:
        """Return (headings, first page) of every section, in order; raise as ``chunks_at``."""
        return await self._repair(reading_id, self._files.sections(reading_id))

    async def figure(self, reading_id: UUID, number: int) -> Figure:
        """Return a figure, counted from 0; raise as ``chunks_at``."""
        return await self._repair(reading_id, self._files.figure(reading_id, number))

    async def sentences(self, places: Sequence[tuple[UUID, int]]) -> list[ChunkSentenceVectors | None]:
        """Return the quotable sentences and vectors of each (reading, ordinal); None if missing or lost.

        Raises:
            BlobsUnavailable: the files cannot be reached.
        """
        try:
            return await self._files.sentences(places)
        except LostReading:
            return [await self._sentences_unless_lost(place) for place in places]

    async def _sentences_unless_lost(self, place: tuple[UUID, int]) -> ChunkSentenceVectors | None:
        with suppress(LostReading):
            (found,) = await self._repair(place[0], self._files.sentences([place]))
            return found
        return None

    async def _repair(self, reading_id: UUID, reads: Awaitable[T]) -> T:
        try:
            return await reads
        except LostReading:
            with suppress(DatabaseUnavailable):
                async with self._database.transaction() as session:
                    if await requeue_reading(session, reading_id):
                        _log.warning("reading lost or corrupt, requeued: reading=%s", reading_id)
            raise


async def retry_failed(database: Database, documents: Collection[UUID], action: AuditedAction) -> int:
    """Requeue failed documents; return their number.

    Bytes that could not be stored are copied again by the next scan of their folder.

    Raises:
        DatabaseUnavailable: nothing was changed.
    """
    failed = (
        select(ReadingRow, col(VersionRow.document_id))
        .join(VersionRow, col(VersionRow.sha256) == ReadingRow.sha256)
        .where(col(VersionRow.document_id).in_(documents), col(ReadingRow.state) == "failed")
        .where(col(VersionRow.number) == newest_number(VersionRow))
        .order_by(col(ReadingRow.created_at))
    )
    refused = select(DocumentRow).where(
        col(DocumentRow.id).in_(documents),
        col(DocumentRow.state) != "deleted",
        col(DocumentRow.reason).is_not(None),
    )
    async with database.transaction() as session:
        rows = (await session.execute(failed)).all()
        found = {document for _, document in rows}
        # the last generation of each rung is ours: no one makes readings of earlier ones any more
        for reading in {(row.sha256, row.rung): row for row, _ in rows}.values():
            reading.state, reading.locked, reading.attempts = "waiting", False, 0
            reading.reason = reading.details = reading.next_attempt_at = None
        # Without a stat, the next scan opens the file again.
        for row in await session.scalars(refused):
            row.stat = None
            found.add(row.id)
        if found:
            await record_action(session, action)
    return len(found)


class SentenceVectorStore:
    """Looks up sentence vectors; missing or unsuitable ones are omitted."""

    def __init__(self, readings: SelfHealingReadings, space: str) -> None:
        """Look up vectors of ``space``, in which all questions are embedded."""
        self._readings = readings
        self._space = space

    async def vectors(self, chunks: Sequence[tuple[UUID, int, str]]) -> list[Mapping[TextRange, Vector]]:
        """Return (start, end) -> unit vector of each quotable text, per (reading, ordinal, text).

        Empty for a reading without vectors (a quick one, or one older than they are), of another embedder, or
        of a text other than the chunk's, and if the disk corrupted them.

        Raises:
            BlobsUnavailable: the files of readings cannot be reached.
        """
        kept = await self._readings.sentences([(reading_id, ordinal) for reading_id, ordinal, _ in chunks])
        fitting = [
            one if one and one.matches(self._space, text) else None
            for one, (_, _, text) in zip(kept, chunks, strict=True)
        ]
        return by_span(fitting)
