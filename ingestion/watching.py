"""Watches one folder: every look takes what has settled and deletes what is surely gone."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from ingestion.intake import Intake
from ingestion.settings import IngestionSettings
from ingestion.settling import settling_of
from ingestion.sources import Scan, SeenFile, open_source
from storage.folders import Folder, Folders, KnownDocument

_log = logging.getLogger(__name__)


class FolderWatch:
    """One watched folder and what its last look left open."""

    def __init__(self, folder: Folder, folders: Folders, intake: Intake, settings: IngestionSettings) -> None:
        self.folder = folder
        self._folders = folders
        self._intake = intake
        self._most_deleted = settings.ask_before_deleting_share
        self._source = open_source(folder.location)
        self._settling = settling_of(self._source, settings)
        self._problem = folder.problem
        self._missed: set[str] = set()
        self._settled_as: dict[str, SeenFile] | None = None

    async def look(self) -> bool:
        """Make SQL equal to the folder as far as that is safe; returns whether anything was taken.

        A folder that looks as after the last complete look costs one scan and nothing else.

        Raises:
            InfrastructureError: the database, or one of the disks, does not work.
        """
        seen = await asyncio.to_thread(self._source.scan)
        if seen.problem is None and self._problem is None and seen.files == self._settled_as:
            return False
        self._settled_as = None
        known = await self._folders.documents(self.folder.id)
        taken, unfinished = await self._intake.take_settled(
            self.folder, seen, known, self._settling, sees_all=True
        )
        if taken:
            known = await self._folders.documents(self.folder.id)
        problem = seen.problem or await self._delete_gone(seen, known, unfinished)
        await self._report(problem)
        if problem is None and not unfinished and not self._missed:
            self._settled_as = seen.files
        return bool(taken)

    async def _delete_gone(
        self, seen: Scan, known: Mapping[str, KnownDocument], unfinished: list[SeenFile]
    ) -> str | None:
        """Delete documents whose file two looks in a row missed; returns why that has to wait, if so.

        A file of the same size that has not settled yet may be the missing one under a new name.
        """
        present = {file: document for file, document in known.items() if not document.is_deleted}
        missing = present.keys() - seen.files.keys()
        arriving = {file.look.size for file in unfinished}
        gone = {
            present[file].id
            for file in missing & self._missed
            if (present[file].look or {}).get("size") not in arriving
        }
        self._missed = set(missing)
        if not gone:
            return None
        if not seen.files or len(missing) > self._most_deleted * len(present):
            return _question(len(missing), len(present))
        await self._folders.delete(gone)
        self._missed -= {file for file in missing if present[file].id in gone}
        for document in gone:
            _log.info("document=%s outcome=deleted", document)
        return None

    async def _report(self, problem: str | None) -> None:
        if problem == self._problem:
            return
        await self._folders.report(self.folder.id, problem)
        self._problem = problem
        if problem is None:
            _log.info("folder=%d is well again", self.folder.id)
        else:
            _log.warning("folder=%d %s", self.folder.id, problem)


def _question(missing: int, present: int) -> str:
    return (
        f"{missing} of {present} files vanished from the folder at once, so nothing was deleted. "
        "Put them back; if they are to go, take away fewer at a time."
    )
