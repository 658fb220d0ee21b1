"""Intake: copies settled files into the blob store and SQL, once per file for all its channels.

Files that may have swapped names are grouped and stored together, all others one by one. For files that move
between folders, ``OtherFolders`` says which documents have left a channel's other folders.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

from ingestion.errors import FileChanged, FileRefused, NotAFile
from ingestion.jobs.threads import run_for
from ingestion.sources import scan_location
from ingestion.sources.base import FileStat, Scan, ScannedFile, Source
from ingestion.watch.known_files import KnownFolder
from ingestion.watch.settle import StabilityCheck
from storage.crash_points import reach
from storage.documents.arrivals import Arrivals, KnownContents, SameContentDocument, StoredArrival
from storage.documents.identity import Arrival, ScanContext
from storage.errors import BlobsUnavailable, SettingsError
from storage.files.blobs import Blobs
from storage.folders.folders import Folder
from storage.threads import run_in_thread

SCAN_SECONDS = 60.0
PORTION_FILES = 16
PORTION_BYTES = 16 << 20
_log = logging.getLogger(__name__)

# Union-find forest: file or size -> parent; the representative of a group has none.
_Links = dict[str | int, str | int]


class OtherFolders:
    """Scans other folders on demand, each at most once; make a new one for every scan."""

    def __init__(self) -> None:
        self._scans: dict[str, Scan] = {}

    async def gone(self, same_content_documents: Iterable[SameContentDocument]) -> frozenset[UUID]:
        """Return the documents whose files are certainly gone from their folders."""
        gone = set()
        for one in same_content_documents:
            if one.location not in self._scans:
                self._scans[one.location] = await _scan(one.location)
            seen = self._scans[one.location]
            if seen.problem is None and one.file not in seen.files:
                gone.add(one.document)
        return frozenset(gone)


async def _scan(location: str) -> Scan:
    try:
        async with asyncio.timeout(SCAN_SECONDS):
            return await run_in_thread(lambda: scan_location(location))
    except (SettingsError, TimeoutError):
        return Scan(problem="The folder does not answer.")


def group(
    arriving: Mapping[str, ScannedFile], present: Mapping[str, ScannedFile], folders: Iterable[KnownFolder]
) -> list[list[ScannedFile]]:
    """Group files that must be judged together; sizes say which may be renames of each other."""
    links: _Links = {}
    sizes = set()
    for file, size in _vacated(arriving, present, folders):
        sizes.add(size)
        if file in arriving:
            _join(links, file, size)
    for file, seen in arriving.items():
        if seen.stat.size in sizes:
            _join(links, file, seen.stat.size)
    groups: dict[str | int, list[ScannedFile]] = {}
    for file, seen in arriving.items():
        groups.setdefault(_root(links, file), []).append(seen)
    return list(groups.values())


def _vacated(
    arriving: Mapping[str, ScannedFile], present: Mapping[str, ScannedFile], folders: Iterable[KnownFolder]
) -> Iterator[tuple[str, int]]:
    """Yield (file, stored size) of every document whose file is missing or has another stat."""
    for folder in folders if arriving else ():
        for file, known in folder.documents.items():
            if known.stat is not None and (file in arriving or file not in present):
                yield file, known.stat.size


def batches_of(groups: Sequence[list[ScannedFile]]) -> Iterator[list[list[ScannedFile]]]:
    """Yield groups to store in one transaction: several small ones, or a single large one."""
    portion: list[list[ScannedFile]] = []
    files = size = 0
    for members in groups:
        files += len(members)
        size += sum(seen.stat.size for seen in members)
        if portion and (files > PORTION_FILES or size > PORTION_BYTES):
            yield portion
            portion, files, size = [], len(members), sum(seen.stat.size for seen in members)
        portion.append(members)
    if portion:
        yield portion


def _join(links: _Links, one: str | int, other: str | int) -> None:
    links[_root(links, one)] = _root(links, other)


def _root(links: _Links, one: str | int) -> str | int:
    """Return the representative of the group of ``one``."""
    root = one
    while (above := links.get(root, root)) != root:
        root = above
    # Path compression keeps later lookups short.
    while one != root:
        links[one], one = root, links.get(one, root)
    return root


@dataclass(slots=True)
class IntakeResult:
    """Outcome of one scan's files."""

    # Folder id -> file -> document that was stored or refused.
    documents: dict[int, dict[str, UUID]] = field(default_factory=dict)
    # Files that are still being written, or wait for others or for a disk.
    unfinished: dict[str, ScannedFile] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FetchedFile:
    """A file's copy on its way into the blob store, or why it was refused."""

    seen: ScannedFile
    # Path of the copy; missing if the blob store has the content already.
    temporary: Path
    sha256: str = ""
    refusal: str | None = None


class Intake:
    """Ingests files of any source."""

    def __init__(self, arrivals: Arrivals, blobs: Blobs, max_bytes: int) -> None:
        """Refuse files larger than ``max_bytes``."""
        self._arrivals = arrivals
        self._blobs = blobs
        self._max_bytes = max_bytes

    async def ingest_settled(
        self, folders: Sequence[KnownFolder], scan: Scan, stability: StabilityCheck, *, sees_all: bool
    ) -> IntakeResult:
        """Ingest all changed and settled files into every folder that does not have them yet.

        Args:
            folders: folders of the location, one per channel that it feeds; loaded.
            scan: files of the location; a file with the same stat is not opened.
            stability: decides which files are finished.
            sees_all: the whole location was scanned, so that renames can be told from copies.

        Raises:
            DatabaseUnavailable: the database does not work.
        """
        arriving = {
            file: seen
            for file, seen in scan.files.items()
            if not all(folder.is_unchanged(seen) for folder in folders)
        }
        settled = await run_for(stability.source, lambda: _settled(stability, arriving))
        result, ready = IntakeResult(), []
        for members in group(arriving, scan.files, folders):
            if all(seen.file in settled for seen in members):
                ready.append(members)
            else:
                result.unfinished |= {seen.file: seen for seen in members}
        other_folders = OtherFolders()
        for portion in batches_of(ready):
            await self._ingest_batch(
                folders, portion, stability, _IntakeContext(scan, sees_all, other_folders), result
            )
        return result

    async def _ingest_batch(
        self,
        folders: Sequence[KnownFolder],
        portion: Sequence[list[ScannedFile]],
        stability: StabilityCheck,
        context: _IntakeContext,
        result: IntakeResult,
    ) -> None:
        """Fetch a portion's groups, each completely or not at all, and store them."""
        files = [seen.file for members in portion for seen in members]
        known = await self._arrivals.known_contents(stability.source.location, files)
        fetched: list[FetchedFile] = []
        temporaries: list[Path] = []
        try:
            for members in portion:
                temporaries += (to := [self._blobs.new_temporary() for _ in members])
                if not await self._fetch(list(zip(members, to, strict=True)), stability, known, fetched):
                    result.unfinished |= {seen.file: seen for seen in members}
            whole = [one for one in fetched if one.seen.file not in result.unfinished]
            for folder in folders:
                stored = await self._store(folder, whole, context)
                result.documents.setdefault(folder.folder.id, {}).update(stored)
        except BlobsUnavailable as error:
            _log.warning("files postponed to the next scan: %s", error)
            result.unfinished |= {seen.file: seen for members in portion for seen in members}
        finally:
            await asyncio.to_thread(_remove, temporaries)

    async def _fetch(
        self,
        members: Sequence[tuple[ScannedFile, Path]],
        stability: StabilityCheck,
        known: KnownContents,
        fetched: list[FetchedFile],
    ) -> bool:
        """Fetch files that are judged together to their temporary paths; False if one has to wait."""
        for seen, temporary in members:
            try:
                stored = known.get(seen.file, ())
                fetched.append(await self._fetch_one(seen, temporary, stability.source, stored))
            except (FileChanged, NotAFile):
                stability.restart(seen)
                return False
            except BlobsUnavailable as error:
                stability.restart(seen)
                _log.warning("file postponed: %s", error)
                return False
        return True

    async def _fetch_one(
        self,
        seen: ScannedFile,
        temporary: Path,
        source: Source,
        known: Sequence[tuple[dict[str, Any], str]],
    ) -> FetchedFile:
        """Copy a file, unless the blob store has the content that it had with this stat."""
        for file_stat, sha256 in known:
            if FileStat(**file_stat) == seen.stat and await run_in_thread(
                partial(self._blobs.exists, sha256)
            ):
                return FetchedFile(seen, temporary, sha256)
        try:
            reach("before-copy")
            sha256 = await run_for(source, lambda: source.copy(seen, temporary, self._max_bytes))
            reach("after-copy")
            await run_in_thread(
                lambda: self._blobs.upload(temporary, sha256)
            )  # uploaded now, so that nothing has to wait for it later
        except FileRefused as refusal:
            return FetchedFile(seen, temporary, refusal=str(refusal))
        return FetchedFile(seen, temporary, sha256)

    async def _store(
        self, folder: KnownFolder, fetched: Sequence[FetchedFile], context: _IntakeContext
    ) -> dict[str, UUID]:
        """Store what is new to this folder, then record the refusals."""
        changed = [one for one in fetched if not folder.is_unchanged(one.seen)]
        coming = [one for one in changed if one.refusal is None]
        stored: list[StoredArrival] = []
        if coming:
            arrivals = [self._arrival(one) for one in coming]
            scan_context = await self._scan_context(folder.folder, arrivals, context)
            stored = await self._arrivals.store(folder.folder, arrivals, scan_context, owner=folder.owner)
            reach("after-store")
        for one in stored:
            _log.info("document=%s version=%d outcome=%s", one.document, one.version, one.outcome)
        for bad in changed:
            if bad.refusal is not None:
                file, file_stat = bad.seen.file, bad.seen.stat._asdict()
                document = await self._arrivals.refuse(folder.folder, file, file_stat, bad.refusal)
                _log.warning('document=%s outcome=refused file="%s"', document, file)
                stored.append(StoredArrival(file, document, 0, "refused"))
        folder.note(stored, context.scan.files)
        return {one.file: one.document for one in stored}

    async def _scan_context(
        self, folder: Folder, arrivals: Sequence[Arrival], context: _IntakeContext
    ) -> ScanContext | None:
        if not context.sees_all:
            return None
        same_content_documents = await self._arrivals.same_content_documents(
            folder, {one.sha256 for one in arrivals}
        )
        gone = await context.other_folders.gone(same_content_documents)
        return ScanContext(context.stat_of, context.scan.problem is None, gone)

    def _arrival(self, one: FetchedFile) -> Arrival:
        seen = one.seen
        return Arrival(seen.file, seen.stat._asdict(), one.sha256, seen.stat.size, lambda: self._keep(one))

    def _keep(self, one: FetchedFile) -> None:
        """Turn the copy into a blob, unless an earlier channel of the location has done so.

        Raises:
            BlobsUnavailable: the disk fails, or the content was purged a moment ago.
        """
        if one.temporary.exists():
            self._blobs.adopt(one.temporary, one.sha256)
        elif not self._blobs.exists(one.sha256):
            raise BlobsUnavailable("a content was purged while it came back")


@dataclass(frozen=True, slots=True)
class _IntakeContext:
    """Data of the scan that storing needs."""

    scan: Scan
    sees_all: bool
    other_folders: OtherFolders

    def stat_of(self, file: str) -> Mapping[str, Any] | None:
        seen = self.scan.files.get(file)
        return seen.stat._asdict() if seen else None


def _remove(temporaries: Iterable[Path]) -> None:
    """Delete copies that were not adopted as blobs."""
    for one in temporaries:
        one.unlink(missing_ok=True)


def _settled(stability: StabilityCheck, arriving: Mapping[str, ScannedFile]) -> set[str]:
    """Return the finished files; needed at every scan, since rest is measured over equal scans."""
    stability.retain_only(arriving.keys())
    return {file for file, seen in arriving.items() if stability.is_settled(seen)}
