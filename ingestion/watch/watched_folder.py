"""Watched folder: each scan ingests settled files and deletes documents whose files are gone."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping

from ingestion.jobs.threads import run_for
from ingestion.settings import REMEMBERED_SECONDS, IngestionSettings
from ingestion.sources import Scan, ScannedFile, Source
from ingestion.watch.deletions import DeletionPolicy
from ingestion.watch.intake import Intake
from ingestion.watch.known_files import KnownFolder
from ingestion.watch.settle import stability_check_of
from storage.clock import monotonic_seconds
from storage.folders.folders import Folder, Folders

# How long to wait for a scan after its source was closed; scans of shares end at their next step.
CLOSE_SECONDS = 5.0
_log = logging.getLogger(__name__)


class WatchedFolder:
    """Documents of one location in one channel."""

    def __init__(
        self, folder: Folder, folders: Folders, ask_from_share: float, *, away_seconds: float
    ) -> None:
        """Ask for approval of deletions above the fraction ``ask_from_share`` of the channel.

        A file counts as gone after ``away_seconds``.
        """
        self.known = KnownFolder(folder, folders)
        self._deletion_policy = DeletionPolicy(self.known, folders, ask_from_share, away_seconds=away_seconds)
        self._folders = folders
        self._problem: str | None = folder.problem

    @property
    def is_settled(self) -> bool:
        """True if another equal scan would change nothing in SQL."""
        return self._problem is None and self._deletion_policy.is_settled

    @property
    def is_waiting(self) -> bool:
        """True if the next scan decides about files that the last one missed."""
        return self._problem is None and self._deletion_policy.is_waiting

    async def finish_scan(self, scan: Scan, arriving: Collection[int]) -> None:
        """Delete what is certainly gone, and record problems of the folder.

        Raises:
            DatabaseUnavailable: the database does not work.
        """
        before_scan, problem = (self._problem, self._deletion_policy.asked), scan.problem_text
        if scan.problem is None or scan.is_gone:
            await self.known.load()
        if scan.problem is None:
            problem = await self._deletion_policy.judge(scan, arriving)
        elif scan.is_gone:
            problem = await self._deletion_policy.judge_absence(scan.problem)
        if (problem, self._deletion_policy.asked) == before_scan:
            return
        await self._folders.report(self.known.folder.id, problem, self._deletion_policy.asked)
        if problem is not None and problem != self._problem:
            _log.warning("folder=%d %s", self.known.folder.id, scan.problem or problem)
        elif problem is None and self._problem is not None:
            _log.info("folder=%d recovered", self.known.folder.id)
        self._problem = problem

    async def record_unsupported(self, unsupported_files: Mapping[str, str]) -> None:
        """Record which files are not read, and why.

        Raises:
            DatabaseUnavailable: the database does not work.
        """
        await self._folders.record_unsupported_files(self.known.folder.id, unsupported_files)


class UnsupportedFileCheck:
    """Unsupported files that have stayed in a location for a while."""

    def __init__(self, rest_seconds: float, clock: Callable[[], float] = monotonic_seconds) -> None:
        """Wait ``rest_seconds`` for files newer than the first scan: they may yet be renamed."""
        self._rest_seconds = rest_seconds
        self._clock = clock
        self._since: dict[str, float] | None = None

    def settled(self, scan: Scan) -> dict[str, str]:
        """Return unsupported file -> why it is not read, for files that have rested."""
        now = self._clock()
        before, first = self._since or {}, now if self._since is not None else -math.inf
        self._since = {file: before.get(file, first) for file in scan.unsupported_files}
        return {
            file: reason
            for file, reason in scan.unsupported_files.items()
            if now - self._since[file] >= self._rest_seconds
        }


class LocationScanner:
    """Scans a location and copies its files once for all channels that it feeds."""

    def __init__(self, source: Source, intake: Intake, settings: IngestionSettings) -> None:
        """Prepare a source that feeds no folder yet."""
        self.is_remote = source.is_remote
        # Duration of the last scan.
        self.scan_seconds = 0.0
        # True if the last scan left files for the next one to ingest or to judge.
        self.is_waiting = False
        self._source = source
        self._intake = intake
        self._settings = settings
        self._stability = stability_check_of(source, settings)
        self._folders: list[WatchedFolder] = []
        self._unsupported_check = UnsupportedFileCheck(settings.rest_seconds)
        # The last scan; its thread keeps running even if the caller was cancelled.
        self._scanning: asyncio.Future[Scan] | None = None
        # As last recorded; None if unknown.
        self._unsupported_files: dict[str, str] | None = None
        self._settled_as: dict[str, ScannedFile] | None = None
        self._loaded_at = 0.0
        # Number of invalidations; one may happen during a scan.
        self._invalidations = 0

    def feed(self, folders: Iterable[WatchedFolder]) -> None:
        """Feed exactly these folders from the next scan on."""
        self._folders = list(folders)
        self.invalidate()

    def invalidate(self) -> None:
        """Invalidate all caches: the next scan asks SQL."""
        self._settled_as = self._unsupported_files = None
        self._invalidations += 1
        self._loaded_at = monotonic_seconds()
        for folder in self._folders:
            folder.known.invalidate()

    async def tick(self) -> bool:
        """Sync SQL with the location as far as that is safe; return True if anything was ingested.

        A location that is unchanged since the last complete pass costs one scan and nothing else.

        Raises:
            InfrastructureError: the database, or one of the disks, does not work.
        """
        if monotonic_seconds() - self._loaded_at > REMEMBERED_SECONDS:
            self.invalidate()
        begun = time.monotonic()
        self._scanning = asyncio.ensure_future(run_for(self._source, self._source.scan))
        scan = await asyncio.shield(self._scanning)
        self.scan_seconds = time.monotonic() - begun
        if self._source.is_remote != self.is_remote:
            self.is_remote = self._source.is_remote
            self._stability = stability_check_of(self._source, self._settings)
        await self._record_unsupported(scan)
        is_settled = scan.problem is None and all(folder.is_settled for folder in self._folders)
        if is_settled and scan.files == self._settled_as:
            return False
        self._settled_as = None
        begun, folders = self._invalidations, self._folders
        for folder in folders:
            await folder.known.load()
        known = [folder.known for folder in folders]
        ingested = await self._intake.ingest_settled(known, scan, self._stability, sees_all=True)
        arriving = {seen.stat.size for seen in ingested.unfinished.values()}
        for folder in folders:
            if folder in self._folders:  # otherwise it was paused or unmapped during the copying
                await folder.finish_scan(scan, arriving)
        self.is_waiting = bool(arriving) or any(folder.is_waiting for folder in folders)
        if scan.problem is None and not arriving and self._invalidations == begun:
            self._settled_as = scan.files
        return any(ingested.documents.values())

    async def _record_unsupported(self, scan: Scan) -> None:
        unsupported_files = (
            self._unsupported_check.settled(scan) if scan.problem is None else self._unsupported_files
        )
        if unsupported_files is None or unsupported_files == self._unsupported_files:
            return
        for folder in self._folders:
            await folder.record_unsupported(unsupported_files)
        self._unsupported_files = unsupported_files

    async def close(self) -> bool:
        """Close the source; return whether its last scan has ended within ``CLOSE_SECONDS``."""
        self._source.close()
        if self._scanning is not None:
            await asyncio.wait((self._scanning,), timeout=CLOSE_SECONDS)
        return self._scanning is None or self._scanning.done()
