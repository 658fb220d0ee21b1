"""One-time ingestion of a folder or file: never deletes; a second run adds and replaces."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from uuid import UUID

from ingestion.settings import IngestionSettings
from ingestion.sources import open_source
from ingestion.sources.scan_report import safe_name, skip_reason
from ingestion.watch.intake import Intake
from ingestion.watch.known_files import KnownFolder
from ingestion.watch.settle import StabilityCheck, stability_check_of
from storage.documents.ingest_status import IngestStatus, ingest_statuses
from storage.documents.progress import Progress, in_folder, measure_progress
from storage.errors import BlobsUnavailable, SettingsError
from storage.folders.folders import Folder, Folders
from storage.models import Channel, Rung
from storage.queues.planner import Generations
from storage.sql.database import Database

SCAN_SECONDS = 0.25
# Pause after each status query, as a multiple of its duration: for 10,000 documents a query takes 1 s of CPU
# time that reading needs.
PAUSE_PER_SCAN = 4


@dataclass(slots=True)
class FolderBatch:
    """Files of one folder to ingest into one channel."""

    folder: Folder
    # Name of the only file to ingest; None for all files.
    only: str | None
    stability: StabilityCheck
    documents: set[UUID] = field(default_factory=set)
    # Files still being written at the last scan.
    unfinished: int = 0
    # Of these, new files, which have no document yet.
    arriving: int = 0


class BatchIngest:
    """Ingests batches of files and waits until they have reached a rung."""

    def __init__(
        self,
        database: Database,
        folders: Folders,
        intake: Intake,
        generations: Generations,
        settings: IngestionSettings,
    ) -> None:
        self._database = database
        self._folders = folders
        self._intake = intake
        self._generations = generations
        self._settings = settings

    async def batch(self, path: Path, channel: Channel) -> FolderBatch:
        """Return the batch of a folder, or of a single file, for a channel.

        Raises:
            SettingsError: the file's name is not that of a readable file.
        """
        root, only = await asyncio.to_thread(_place, path)
        folder = await self._folders.ensure(channel.id, str(root), watched=False)
        return FolderBatch(
            folder, only, stability_check_of(open_source(str(root)), self._settings, trusts_age=True)
        )

    async def finish(
        self,
        batches: list[FolderBatch],
        wait: Rung,
        on_progress: Callable[[Progress], None],
        wake: Callable[[], None],
    ) -> list[IngestStatus]:
        """Ingest all files; return their statuses once each has reached ``wait`` or never will.

        Raises:
            InfrastructureError: the folder or a disk fails.
        """
        is_first = True
        while True:
            for batch in batches:
                if is_first or batch.unfinished:
                    await self._ingest_folder(batch)
                    wake()
            is_first, began = False, time.monotonic()
            found = [
                one
                for batch in batches
                for one in await ingest_statuses(self._database, batch.folder.id, self._generations)
                if one.document in batch.documents
            ]
            on_progress(await self._progress(batches))
            if not any(batch.unfinished for batch in batches) and all(one.has_reached(wait) for one in found):
                return found
            await asyncio.sleep(max(SCAN_SECONDS, PAUSE_PER_SCAN * (time.monotonic() - began)))

    async def _ingest_folder(self, batch: FolderBatch) -> None:
        source = batch.stability.source
        scan = source.scan if batch.only is None else partial(source.scan_file, batch.only)
        seen = await asyncio.to_thread(scan)
        if seen.problem is not None:
            raise BlobsUnavailable(seen.problem)
        known = KnownFolder(batch.folder, self._folders)
        await known.load()
        ingested = await self._intake.ingest_settled(
            [known], seen, batch.stability, sees_all=batch.only is None
        )
        documents = ingested.documents.get(batch.folder.id, {})
        unchanged = seen.files.keys() - documents.keys() - ingested.unfinished.keys()
        await known.load()
        batch.documents.update(documents.values(), (known.documents[file].document for file in unchanged))
        batch.unfinished = len(ingested.unfinished)
        batch.arriving = sum(file not in known.documents for file in ingested.unfinished)

    async def _progress(self, batches: list[FolderBatch]) -> Progress:
        scopes = [in_folder(batch.folder.id, batch.only) for batch in batches]
        async with self._database.snapshot() as session:
            progress = await measure_progress(
                session, scopes, Rung.FULL if self._generations.full else Rung.QUICK
            )
        return progress.with_arriving(sum(batch.arriving for batch in batches))


def _place(path: Path) -> tuple[Path, str | None]:
    """Return (folder, name of the only file to ingest, or None for all)."""
    path = path.resolve()
    if not path.is_file():
        return path, None
    if reason := skip_reason(path.name):
        raise SettingsError(f"{safe_name((path.name,))} {reason}")
    return path.parent, path.name
