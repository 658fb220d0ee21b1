"""Copies again, at once, what the blob store lost and what still lies in its folder.

The next scan of a watched folder does the same, but a service that runs elsewhere asks SQL for what was lost
only now and then, and a folder that was ingested by hand has no next scan.
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
# For a minute a file is waited for that somebody is writing just now.
MAX_SCANS = 240


class LostCopies:
    """Documents whose stored copy was lost, as the comparison wrote them down."""

    def __init__(
        self, inventory: Inventory, folders: Folders, intake: Intake, settings: IngestionSettings
    ) -> None:
        self._inventory = inventory
        self._folders = folders
        self._intake = intake
        self._settings = settings

    async def copy(self, on_progress: Callable[[int, int], None]) -> tuple[int, int]:
        """Copy what still lies where it came from; nothing else of a folder is taken, and nothing deleted.

        Args:
            on_progress: is told how many of how many documents were tried.

        Returns:
            (documents that have their copy again, those that have not: their file or their folder is away).

        Raises:
            InfrastructureError: the database, or the disk of the store, does not work.
        """
        lost = await self._inventory.lost_copies()
        total, tried = sum(len(files) for _, files in lost), 0
        for folder, files in lost:
            await self._copy(folder, files)
            tried += len(files)
            on_progress(tried, total)
        left = sum(len(files) for _, files in await self._inventory.lost_copies())
        return max(0, total - left), left

    async def _copy(self, folder: Folder, files: Collection[str]) -> None:
        try:
            source = open_source(folder.location, follows_link=folder.origin != "inbox")
        except SettingsError:  # of a share whose package or password is gone
            return
        try:
            stability = stability_check_of(source, self._settings, trusts_age=True)
            for _ in range(MAX_SCANS):  # what is still being written then is left to the next scan
                if not await self._has_unfinished(folder, files, stability):
                    return
                await asyncio.sleep(SCAN_SECONDS)
        finally:
            source.close()

    async def _has_unfinished(
        self, folder: Folder, files: Collection[str], stability: StabilityCheck
    ) -> bool:
        """Take the lost files that rest; whether others are still being written."""
        scan = await run_for(stability.source, stability.source.scan)
        if scan.problem is not None:
            return False
        known = KnownFolder(folder, self._folders)
        await known.load()
        wanted = replace(scan, files={file: seen for file, seen in scan.files.items() if file in files})
        taken = await self._intake.take_settled([known], wanted, stability, sees_all=False)
        return bool(taken.unfinished)
