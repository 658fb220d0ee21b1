"""Evicts local copies of blobs and readings that live in object storage."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from uuid import UUID

from sqlalchemy import or_, select
from sqlmodel import col

from storage.files.blobs import Blobs
from storage.files.reading_files import ReadingFiles
from storage.queues.inventory import batches, has_reading
from storage.queues.purge import is_wanted
from storage.sql.database import Database
from storage.sql.tables import BlobRow, ReadingRow

# Eviction interval of each machine.
TICK_SECONDS = 60.0


class LocalCopies:
    """Copies of PDFs and readings, and images of pages, on this machine."""

    def __init__(self, database: Database, blobs: Blobs, files: ReadingFiles) -> None:
        self._database = database
        self._blobs = blobs
        self._files = files

    async def evict_unknown(self) -> None:
        """Evict copies of what any machine has purged or erased; do nothing if files are stored locally only.

        Raises:
            DatabaseUnavailable: the database does not work; the next tick continues.
            BlobsUnavailable: the disk does not work.
        """
        if self._files.archive is None:
            return
        copies = await asyncio.to_thread(self._blobs.cached)
        readings = await asyncio.to_thread(self._files.archive.cached)
        gone, lost = await self._unknown(copies, readings)
        if gone:
            await asyncio.to_thread(self._blobs.evict, gone)
        for reading in lost:
            await self._files.evict(reading)

    async def _unknown(
        self, copies: Collection[str], readings: Collection[UUID]
    ) -> tuple[set[str], set[UUID]]:
        wanted = select(col(BlobRow.sha256)).where(or_(is_wanted(BlobRow), has_reading()))
        gone, lost = set(copies), set(readings)
        async with self._database.snapshot() as session:
            for some in batches(copies):
                gone -= set(await session.scalars(wanted.where(col(BlobRow.sha256).in_(some))))
            known = select(col(ReadingRow.id))
            for ids in batches(readings):
                lost -= set(await session.scalars(known.where(col(ReadingRow.id).in_(ids))))
        return gone, lost
