"""Takes settled files into the blob store and SQL: each is copied once, however many channels it feeds."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

from ingestion.errors import NotAFile, NotSettled, Refused
from ingestion.sources.port import Look, Scan, SeenFile, Source
from ingestion.watch.elsewhere import Elsewhere
from ingestion.watch.groups import group, portions
from ingestion.watch.known import KnownFolder
from ingestion.watch.settling import Settling
from ingestion.work.aside import run_for
from storage.arrivals import Arrivals, KnownContents, Stored
from storage.blobs import Blobs
from storage.crash_points import reach
from storage.errors import BlobsUnavailable
from storage.folders import Folder
from storage.identity import Arrival, Sighting

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Taken:
    """What became of the files of one look."""

    documents: dict[int, dict[str, UUID]] = field(default_factory=dict)
    """Folder -> file -> the document that was stored or refused."""
    unfinished: dict[str, SeenFile] = field(default_factory=dict)
    """Files that are still being written, or have to wait for others or for a disk."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """A file's bytes on their way into the blob store, or why they cannot get there."""

    seen: SeenFile
    temporary: Path
    """Where they lie; nothing is there when the blob store has them already."""
    sha256: str = ""
    refusal: str | None = None


class Intake:
    """Takes files of any place."""

    def __init__(self, arrivals: Arrivals, blobs: Blobs, max_bytes: int) -> None:
        """Refuse files of more than ``max_bytes``."""
        self._arrivals = arrivals
        self._blobs = blobs
        self._max_bytes = max_bytes

    async def take_settled(
        self, folders: Sequence[KnownFolder], scan: Scan, settling: Settling, *, sees_all: bool
    ) -> Taken:
        """Take every file that changed and has settled into every folder that does not know it so.

        Args:
            folders: the folders of the place, one for each channel that it feeds; loaded.
            scan: what lies there; a file that still looks as it did is not opened.
            settling: decides which files are finished.
            sees_all: the whole place was looked at, so that renames can be told from copies.

        Raises:
            DatabaseUnavailable: the database does not work.
        """
        arriving = {
            file: seen
            for file, seen in scan.files.items()
            if not all(folder.is_unchanged(seen) for folder in folders)
        }
        settled = await run_for(settling.source, lambda: _settled(settling, arriving))
        taken, ready = Taken(), []
        for members in group(arriving, scan.files, folders):
            if all(seen.file in settled for seen in members):
                ready.append(members)
            else:
                taken.unfinished |= {seen.file: seen for seen in members}
        elsewhere = Elsewhere()
        for portion in portions(ready):
            await self._take(folders, portion, settling, _Surroundings(scan, sees_all, elsewhere), taken)
        return taken

    async def _take(
        self,
        folders: Sequence[KnownFolder],
        portion: Sequence[list[SeenFile]],
        settling: Settling,
        around: _Surroundings,
        taken: Taken,
    ) -> None:
        """Fetch a portion's groups, each whole or not at all, and store them."""
        files = [seen.file for members in portion for seen in members]
        known = await self._arrivals.known_contents(settling.source.location, files)
        fetched: list[Fetched] = []
        try:
            for members in portion:
                if not await self._fetch(members, settling, known, fetched):
                    taken.unfinished |= {seen.file: seen for seen in members}
            whole = [one for one in fetched if one.seen.file not in taken.unfinished]
            for folder in folders:
                stored = await self._store(folder, whole, around)
                taken.documents.setdefault(folder.folder.id, {}).update(stored)
        except BlobsUnavailable as error:
            _log.warning("some files wait for the next look: %s", error)
            taken.unfinished |= {seen.file: seen for members in portion for seen in members}
        finally:
            for one in fetched:
                one.temporary.unlink(missing_ok=True)

    async def _fetch(
        self, members: Sequence[SeenFile], settling: Settling, known: KnownContents, fetched: list[Fetched]
    ) -> bool:
        """Get the bytes of files that are judged together; False when one of them has to wait."""
        for seen in members:
            try:
                fetched.append(await self._fetch_one(seen, settling.source, known.get(seen.file, ())))
            except (NotSettled, NotAFile):
                settling.start_again(seen)
                return False
            except BlobsUnavailable as error:
                settling.start_again(seen)
                _log.warning("a file waits, the others go on: %s", error)
                return False
        return True

    async def _fetch_one(
        self, seen: SeenFile, source: Source, known: Sequence[tuple[dict[str, Any], str]]
    ) -> Fetched:
        """Copy a file, unless the blob store has what it held when it last looked like this."""
        temporary = self._blobs.new_temporary()
        for look, sha256 in known:
            if Look(**look) == seen.look and await asyncio.to_thread(self._blobs.path(sha256).exists):
                return Fetched(seen, temporary, sha256)
        try:
            reach("before-copy")
            sha256 = await run_for(source, lambda: source.copy(seen, temporary, self._max_bytes))
            reach("after-copy")
        except Refused as refusal:
            temporary.unlink(missing_ok=True)
            return Fetched(seen, temporary, refusal=str(refusal))
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        return Fetched(seen, temporary, sha256)

    async def _store(
        self, folder: KnownFolder, fetched: Sequence[Fetched], around: _Surroundings
    ) -> dict[str, UUID]:
        """Store what this folder does not know yet, then write down what was refused."""
        changed = [one for one in fetched if not folder.is_unchanged(one.seen)]
        coming = [one for one in changed if one.refusal is None]
        stored: list[Stored] = []
        if coming:
            arrivals = [self._arrival(one) for one in coming]
            sighting = await self._sighting(folder.folder, arrivals, around)
            stored = await self._arrivals.store(folder.folder, arrivals, sighting, owner=folder.owner)
            reach("after-store")
        for one in stored:
            _log.info("document=%s version=%d outcome=%s", one.document, one.version, one.outcome)
        for bad in changed:
            if bad.refusal is not None:
                stored.append(await self._refuse(folder.folder, bad.seen, bad.refusal))
        folder.note(stored, around.scan.files)
        return {one.file: one.document for one in stored}

    async def _refuse(self, folder: Folder, seen: SeenFile, reason: str) -> Stored:
        document = await self._arrivals.refuse(folder, seen.file, seen.look._asdict(), reason)
        _log.warning("document=%s outcome=refused", document)
        return Stored(seen.file, document, 0, "refused")

    async def _sighting(
        self, folder: Folder, arrivals: Sequence[Arrival], around: _Surroundings
    ) -> Sighting | None:
        if not around.sees_all:
            return None
        namesakes = await self._arrivals.namesakes(folder, {one.sha256 for one in arrivals})
        gone = await around.elsewhere.gone(namesakes)
        return Sighting(around.look_of, around.scan.problem is None, gone)

    def _arrival(self, one: Fetched) -> Arrival:
        seen = one.seen
        return Arrival(seen.file, seen.look._asdict(), one.sha256, seen.look.size, lambda: self._keep(one))

    def _keep(self, one: Fetched) -> None:
        """Make the bytes a blob; a place that feeds several channels has done so for the first of them.

        Raises:
            BlobsUnavailable: the disk does not work, or a purge took the content a moment ago.
        """
        if one.temporary.exists():
            self._blobs.adopt(one.temporary, one.sha256)
        elif not self._blobs.path(one.sha256).exists():
            raise BlobsUnavailable("a content was purged while it came back")


@dataclass(frozen=True, slots=True)
class _Surroundings:
    """What the look saw beside the files that are stored."""

    scan: Scan
    sees_all: bool
    elsewhere: Elsewhere

    def look_of(self, file: str) -> Mapping[str, Any] | None:
        seen = self.scan.files.get(file)
        return seen.look._asdict() if seen else None


def _settled(settling: Settling, arriving: Mapping[str, SeenFile]) -> set[str]:
    """The files that are finished; asked every look, for a rest is as long as looks were equal."""
    settling.keep(arriving.keys())
    return {file for file, seen in arriving.items() if settling.is_settled(seen)}
