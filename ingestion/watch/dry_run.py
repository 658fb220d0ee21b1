"""Dry run: previews a scan of a folder without writing rows, files or vectors."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import UUID

from ingestion.folder_map.folder_map import FolderMapEntry, read_map
from ingestion.sources import FileStat, Scan, ScannedFile, scan_location
from ingestion.sources.local import first_level
from ingestion.watch.deletions import needs_approval, pending_approvals
from ingestion.watch.known_files import KnownFile
from storage.chat.channels import is_folder_name, named_tenant
from storage.folders.folder_status import FolderStatus
from storage.folders.folders import Folders


@dataclass(frozen=True, slots=True)
class Preview:
    """Preview of ingesting one folder."""

    location: str
    # Local channel name or tenant name, as admins write it.
    channel: str
    # Why the folder cannot be trusted now; nothing would be deleted then.
    problem: str | None = None
    new: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    # (old name, new name), recognised by inode, size and time only: no file is opened.
    renamed: tuple[tuple[str, str], ...] = ()
    # Files over the size limit.
    refused: tuple[str, ...] = ()
    # Missing files whose documents would be deleted, if the folder is watched.
    vanished: tuple[str, ...] = ()
    # Missing files whose deletion needs approval.
    asked: tuple[str, ...] = ()
    unchanged: int = 0
    # Notices for an admin about single files, a sentence each.
    remarks: tuple[str, ...] = ()
    # If False, nothing is deleted: manual ingestion only adds and replaces.
    is_watched: bool = False


class Previewer:
    """Compares folders with SQL."""

    def __init__(self, folders: Folders, *, max_bytes: int, ask_from_share: float) -> None:
        """Use a size limit in bytes, and ``ask_from_share`` as in ``DeletionPolicy``."""
        self._folders = folders
        self._max_bytes = max_bytes
        self._ask_from_share = ask_from_share

    async def file_or_folder(self, path: Path, channel: str) -> Preview:
        """Preview ``footnote ingest PATH --channel``."""
        resolved = await asyncio.to_thread(path.resolve)
        if not await asyncio.to_thread(resolved.is_file):
            return await self._preview(FolderMapEntry(str(resolved), channel), is_watched=False)
        return await self._preview(
            FolderMapEntry(str(resolved.parent), channel), is_watched=False, only=resolved.name
        )

    async def root(self, root: Path, *, is_watched: bool = False) -> list[Preview]:
        """Preview ``footnote ingest ROOT``, or a scan of an inbox.

        Raises:
            OSError: the root cannot be listed.
        """
        resolved = await asyncio.to_thread(root.resolve)
        names, _ = await asyncio.to_thread(first_level, resolved)
        return [
            await self._preview(FolderMapEntry(str(resolved / name), name), is_watched=is_watched)
            for name in names
            if is_folder_name(name)
        ]

    async def mapped(self, folder_map: Path, inbox: Path) -> list[Preview]:
        """Preview a scan of everything watched: the inbox, and the map in its current state.

        Raises:
            InvalidFile: the map contains mistakes.
            OSError: the map or the inbox cannot be read.
        """
        previews = await self.root(inbox, is_watched=True) if await asyncio.to_thread(inbox.exists) else []
        if not await asyncio.to_thread(folder_map.exists):
            return previews
        data = await asyncio.to_thread(folder_map.read_bytes)
        entries = await asyncio.to_thread(read_map, data, folder_map.parent, inbox)
        previews += [await self._preview(entry, is_watched=True) for entry in entries if not entry.is_paused]
        return previews + await self._unmapped(entries)

    async def _unmapped(self, entries: list[FolderMapEntry]) -> list[Preview]:
        """Return previews of folders removed from the map; that edit counts as approval."""
        wanted = {(entry.location, str(named_tenant(entry.channel))) for entry in entries}
        return [
            Preview(
                status.location,
                status.channel_name,
                vanished=tuple(sorted(await self._folders.documents(status.id))),
                is_watched=True,
            )
            for status in await self._folders.status()
            if status.watched and status.origin == "map" and (status.location, status.channel) not in wanted
        ]

    async def _preview(self, entry: FolderMapEntry, *, is_watched: bool, only: str | None = None) -> Preview:
        scan = await asyncio.to_thread(scan_location, entry.location, only)
        tenant = str(named_tenant(entry.channel))
        here = [one for one in await self._folders.status() if one.channel == tenant]
        folder = next((one for one in here if one.location == entry.location), None)
        rows = await self._folders.documents(folder.id) if folder else {}
        known = {file: KnownFile.of(row) for file, row in rows.items()}
        preview = self._compare(entry, scan, known, is_watched=is_watched, sees_all=only is None)
        if folder is None or not is_watched:
            return preview
        answered = await self._folders.answered(folder.channel_id)
        asked = _asked(preview, known, folder, answered, entry.ask_from_share or self._ask_from_share)
        vanished = tuple(file for file in preview.vanished if file not in asked)
        return replace(preview, vanished=vanished, asked=tuple(sorted(asked)))

    def _compare(
        self,
        entry: FolderMapEntry,
        scan: Scan,
        known: Mapping[str, KnownFile],
        *,
        is_watched: bool,
        sees_all: bool,
    ) -> Preview:
        changed = [
            seen for file, seen in scan.files.items() if file not in known or known[file].stat != seen.stat
        ]
        refused = {seen.file for seen in changed if seen.stat.size > self._max_bytes}
        missing = known.keys() - scan.files.keys() if sees_all and scan.problem is None else set()
        arrived = [seen for seen in changed if seen.file not in known]
        renamed = dict(_renames(missing, arrived, known))
        not_new = {*refused, *renamed.values()}
        return Preview(
            entry.location,
            entry.channel,
            scan.problem,
            new=tuple(sorted(seen.file for seen in arrived if seen.file not in not_new)),
            replaced=tuple(sorted(s.file for s in changed if s.file in known and s.file not in refused)),
            renamed=tuple(sorted(renamed.items())),
            refused=tuple(sorted(refused)),
            vanished=tuple(sorted(missing - renamed.keys())),
            unchanged=len(scan.files) - len(changed),
            remarks=scan.remarks,
            is_watched=is_watched,
        )


def _asked(
    preview: Preview,
    known: Mapping[str, KnownFile],
    folder: FolderStatus,
    answered: Set[UUID],
    share: float,
) -> set[str]:
    """Return vanished files whose deletion needs approval, already or by this scan."""
    vanished = {known[file].document: file for file in preview.vanished}
    documents = {one.document for one in known.values()}
    asked = pending_approvals(
        {document for document, _ in folder.pending_deletions}, documents, vanished.keys()
    )
    waiting = asked & vanished.keys() & answered
    lost = (vanished.keys() & answered) - waiting
    of_folder = (documents & answered) - waiting
    is_too_much = needs_approval(len(lost), len(of_folder), len(answered - waiting), share)
    return {vanished[document] for document in (lost | waiting if is_too_much else waiting)}


def _renames(
    missing: set[str], arrived: list[ScannedFile], known: Mapping[str, KnownFile]
) -> Iterator[tuple[str, str]]:
    """Yield (old name, new name) of missing files that equal a new one in all but the change time."""
    by_face = {_face(file_stat): file for file in missing if (file_stat := known[file].stat) is not None}
    for seen in arrived:
        old = by_face.pop(_face(seen.stat), None)
        if old is not None:
            yield old, seen.file


def _face(file_stat: FileStat) -> tuple[int, int, int, str]:
    """Return the metadata that a rename preserves."""
    return file_stat.size, file_stat.modified_ns, file_stat.inode, file_stat.tag
