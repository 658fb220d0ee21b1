"""Chunks, pages and figures for those who ask: a reading that is found damaged is made again meanwhile."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from typing import TypeVar
from uuid import UUID

from storage.database import Database
from storage.errors import DatabaseUnavailable, LostReading
from storage.figure_models import Figure
from storage.models import Chunk, Page
from storage.reading_work import lose_reading
from storage.readings import ReadingFiles
from storage.sentence_vectors import ChunkSentenceVectors

T = TypeVar("T")
_log = logging.getLogger(__name__)


class RepairingReadings:
    """Reads as ``ReadingFiles`` does, and has ``serve`` make again what turns out to be lost."""

    def __init__(self, files: ReadingFiles, database: Database) -> None:
        self._files = files
        self._database = database

    async def chunks_at(self, places: Sequence[tuple[UUID, int]]) -> list[Chunk]:
        """The chunk of each (reading, ordinal).

        Raises:
            LookupError: a reading has no chunk of this number.
            LostReading: its files are gone or damaged; the next question may find them made again.
            BlobsUnavailable: they cannot be reached.
        """
        try:
            return await self._files.chunks_at(places)
        except LostReading:
            alone = (self._repair(place[0], self._files.chunks_at([place])) for place in places)
            return [chunk for (chunk,) in await asyncio.gather(*alone)]

    async def page(self, reading_id: UUID, number: int) -> Page:
        """One page, counted from 1; raises as ``chunks_at``."""
        return await self._repair(reading_id, self._files.page(reading_id, number))

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
