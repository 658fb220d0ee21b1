"""Takes settled files into the blob store and SQL: new documents, new versions, renames, returns."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping
from uuid import UUID

from ingestion.errors import NotAFile, NotSettled, Refused
from ingestion.settling import Settling
from ingestion.sources.port import Look, Scan, SeenFile, Source
from storage.blobs import Blobs
from storage.crash_points import reach
from storage.errors import BlobsUnavailable
from storage.folders import Arrival, Folder, Folders, KnownDocument

_log = logging.getLogger(__name__)


class Intake:
    """Takes files of any folder."""

    def __init__(self, folders: Folders, blobs: Blobs, max_bytes: int) -> None:
        """Refuse files of more than ``max_bytes``."""
        self._folders = folders
        self._blobs = blobs
        self._max_bytes = max_bytes

    async def take_settled(
        self,
        folder: Folder,
        scan: Scan,
        known: Mapping[str, KnownDocument],
        settling: Settling,
        *,
        sees_all: bool,
    ) -> tuple[dict[str, UUID], list[SeenFile]]:
        """Take every file that changed and has settled.

        Args:
            folder: where they lie.
            scan: what lies there.
            known: the folder's documents; a file that still looks as it did is not opened.
            settling: decides which files are finished.
            sees_all: the scan saw the whole folder, so a file that it did not see is gone.

        Returns:
            The documents taken or refused by file, and the files that are not finished yet.

        Raises:
            DatabaseUnavailable: the database does not work.
        """
        present = scan.files.keys() if sees_all and scan.problem is None else None
        taken: dict[str, UUID] = {}
        unfinished: list[SeenFile] = []
        for seen in scan.files.values():
            if _is_unchanged(seen, known.get(seen.file)):
                continue
            document = None
            if await asyncio.to_thread(settling.is_settled, seen):
                document = await self._take(folder, seen, settling, present)
            if document is None:
                unfinished.append(seen)
            else:
                taken[seen.file] = document
        settling.keep(scan.files.keys())
        return taken, unfinished

    async def _take(
        self, folder: Folder, seen: SeenFile, settling: Settling, present: Collection[str] | None
    ) -> UUID | None:
        try:
            return await self._store(folder, seen, settling.source, present)
        except (NotSettled, NotAFile):
            settling.start_again(seen)
            return None
        except BlobsUnavailable as error:
            settling.start_again(seen)
            _log.warning("folder=%d a file waits, the others go on: %s", folder.id, error)
            return None
        except Refused as refusal:
            document = await self._folders.refuse(folder, seen.file, seen.look._asdict(), str(refusal))
            _log.warning("document=%s outcome=refused", document)
            return document

    async def _store(
        self, folder: Folder, seen: SeenFile, source: Source, present: Collection[str] | None
    ) -> UUID:
        temporary = self._blobs.new_temporary()
        try:
            reach("before-copy")
            sha256 = await asyncio.to_thread(source.copy, seen, temporary, self._max_bytes)
            reach("after-copy")
            arrival = Arrival(folder, seen.file, seen.look._asdict(), sha256, seen.look.size)
            stored = await self._folders.store(arrival, lambda: self._blobs.adopt(temporary, sha256), present)
            reach("after-store")
        finally:
            temporary.unlink(missing_ok=True)
        _log.info("document=%s version=%d outcome=%s", stored.document, stored.version, stored.outcome)
        return stored.document


def _is_unchanged(seen: SeenFile, document: KnownDocument | None) -> bool:
    if document is None or document.is_deleted or document.look is None:
        return False
    return Look(**document.look) == seen.look
