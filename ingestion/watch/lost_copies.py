"""Lost copies: restores blobs that the store lost from files that still exist.

The next scan of a watched folder does the same. But a service on another machine checks SQL for lost copies
only now and then, and a folder ingested by hand has no next scan.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from dataclasses import replace

from ingestion.jobs.threads import run_for
from ingestion.settings import IngestionSettings
from ingestion.sources import open_source
from ingestion.watch.intake import Intake
from ingestion.watch.known_files import KnownFolder
from ingestion.watch.settle import StabilityCheck, stability_check_of
from storage.errors import SettingsError
from storage.folders.folders import Folder, Folders
from storage.queues.inventory import Inventory

SCAN_SECONDS = 0.25
# Wait one minute for a file that is being written.
MAX_SCANS = 240


class LostCopies:
    """Restores lost blobs that the reconciler has recorded."""

    def __init__(
        self, inventory: Inventory, folders: Folders, intake: Intake, settings: IngestionSettings
    ) -> None:
        self._inventory = inventory
        self._folders = folders
        self._intake = intake
        self._settings = settings

    async def copy(self, on_progress: Callable[[int, int], None]) -> tuple[int, int]:
        """Copy lost files that still exist; ingest nothing else of their folders, and delete nothing.

        Args:
            on_progress: called with (tried, total) documents.

        Returns:
            (documents with a copy again, documents still without one as file or folder is missing).

        Raises:
            InfrastructureError: the database or the store's disk fails.
        """
        lost = await self._inventory.files_to_recopy()
        total, tried = sum(len(files) for _, files in lost), 0
        for folder, files in lost:
            await self._copy(folder, files)
            tried += len(files)
            on_progress(tried, total)
        left = sum(len(files) for _, files in await self._inventory.files_to_recopy())
        return max(0, total - left), left

    async def _copy(self, folder: Folder, files: Collection[str]) -> None:
        try:
            source = open_source(folder.location, follows_link=folder.origin != "inbox")
        except SettingsError:  # the package or password of a share is missing
            return
        try:
            stability = stability_check_of(source, self._settings, trusts_age=True)
            for _ in range(MAX_SCANS):  # a file that is still being written then is left to the next scan
                if not await self._has_unfinished(folder, files, stability):
                    return
                await asyncio.sleep(SCAN_SECONDS)
        finally:
            source.close()

    async def _has_unfinished(
        self, folder: Folder, files: Collection[str], stability: StabilityCheck
    ) -> bool:
        """Ingest lost files that have settled; return True if others are still being written."""
        scan = await run_for(stability.source, stability.source.scan)
        if scan.problem is not None:
            return False
        known = KnownFolder(folder, self._folders)
        await known.load()
        wanted = replace(scan, files={file: seen for file, seen in scan.files.items() if file in files})
        ingested = await self._intake.ingest_settled([known], wanted, stability, sees_all=False)
        return bool(ingested.unfinished)
