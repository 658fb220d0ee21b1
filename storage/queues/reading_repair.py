"""Chunks, pages, figures and sentence vectors of readings; one that is found damaged is made again."""

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
from storage.queues.reading_queue import lose_reading
from storage.sql.audit import AuditedAction, record_action
from storage.sql.database import Database
from storage.sql.document_state import newest_number
from storage.sql.tables import DocumentRow, ReadingRow, VersionRow

T = TypeVar("T")
_log = logging.getLogger(__name__)


class RepairingReadings:
    """Reads as ``ReadingFiles`` does, and has ``serve`` make again what turns out to be lost."""

    def __init__(self, files: ReadingFiles, database: Database) -> None:
        self._files = files
        self._database = database

    async def chunks_at(self, places: Sequence[tuple[UUID, int]]) -> list[Chunk]:
        """Return the chunk of each (reading, ordinal).

        Raises:
            LookupError: a reading has no chunk of this number.
            LostReading: its files are gone or damaged; the next question may find them made again.
            BlobsUnavailable: they cannot be reached.
        """
        try:
            return await self._files.chunks_at(places)
        except LostReading:
            return await self._chunks_one_by_one(places)

    async def _chunks_one_by_one(self, places: Sequence[tuple[UUID, int]]) -> list[Chunk]:
        """Has each reading that is lost made again before the first loss is raised."""
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
        """Return all chunks in order; raises as ``chunks_at``."""
        return await self._repair(reading_id, self._files.chunks(reading_id))

    async def page(self, reading_id: UUID, number: int) -> Page:
        """One page, counted from 1; raises as ``chunks_at``."""
        return await self._repair(reading_id, self._files.page(reading_id, number))

    async def page_texts(self, reading_id: UUID) -> list[str]:
        """Return the text of every page, in order; raises as ``chunks_at``."""
        return await self._repair(reading_id, self._files.page_texts(reading_id))

    async def sections(self, reading_id: UUID) -> list[tuple[tuple[str, ...], int]]:
        """(headings, page where it begins) of every section, in order; raises as ``chunks_at``."""
        return await self._repair(reading_id, self._files.sections(reading_id))

    async def figure(self, reading_id: UUID, number: int) -> Figure:
        """One figure, counted from 0; raises as ``chunks_at``."""
        return await self._repair(reading_id, self._files.figure(reading_id, number))

    async def sentences(self, places: Sequence[tuple[UUID, int]]) -> list[ChunkSentenceVectors | None]:
        """What may be quoted from each (reading, ordinal), with vectors; None for a reading without or lost.

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
                    if await lose_reading(session, reading_id):
                        _log.warning("reading=%s is lost or damaged: it is made again", reading_id)
            raise


async def retry_failed(database: Database, documents: Collection[UUID], action: AuditedAction) -> int:
    """Have documents read anew that could not be; returns how many there are.

    Bytes that could not even be stored are taken from their folder again by its next scan.

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
        # of each rung the last generation, which is ours: nobody makes readings of earlier ones any more
        for reading in {(row.sha256, row.rung): row for row, _ in rows}.values():
            reading.state, reading.locked, reading.attempts = "waiting", False, 0
            reading.reason = reading.details = reading.next_attempt_at = None
        for row in await session.scalars(refused):
            row.stat = None
            found.add(row.id)
        if found:
            await record_action(session, action)
    return len(found)


class SentenceVectorStore:
    """Looks vectors up; whatever has none, or none that fits, is simply not there."""

    def __init__(self, readings: RepairingReadings, space: str) -> None:
        """``space`` is where the vectors of all questions lie."""
        self._readings = readings
        self._space = space

    async def vectors(self, chunks: Sequence[tuple[UUID, int, str]]) -> list[Mapping[TextRange, Vector]]:
        """(start, end) -> vector, of length one, of what may be quoted from each (reading, ordinal, text).

        Empty for a reading without them (a quick one, or one made before there were any), for one made
        by another embedder, for another text than the chunk's, and where the disk damaged them.

        Raises:
            BlobsUnavailable: the files of readings cannot be reached.
        """
        kept = await self._readings.sentences([(reading_id, ordinal) for reading_id, ordinal, _ in chunks])
        fitting = [
            one if one and one.is_of(self._space, text) else None
            for one, (_, _, text) in zip(kept, chunks, strict=True)
        ]
        return by_span(fitting)
