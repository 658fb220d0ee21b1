"""Watch list: the folders of the inbox, and those of the ``folders.toml`` in force.

Every valid change of the file is applied, an invalid one never.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ingestion.folder_map.folder_map import FolderMapEntry, read_map
from ingestion.folder_map.inbox import WatchedInbox
from storage.chat.channels import Channels, DirectLibrary
from storage.config_file import AdminFile, InvalidFile, Mistake
from storage.errors import StorageError
from storage.folders.folders import Folder, Folders
from storage.threads import run_in_thread

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WatchTarget:
    """A folder to watch, with its options."""

    folder: Folder
    entry: FolderMapEntry


class _Saved(NamedTuple):
    """A saved map and its entries."""

    text: str
    entries: list[FolderMapEntry]


class FolderMap:
    """Folder map in force."""

    def __init__(self, path: Path, inbox: Path, channels: Channels, folders: Folders) -> None:
        """Follow the map at ``path``, which may not overlap the inbox."""
        self._path = path
        self._inbox = inbox
        self._channels = channels
        self._folders = folders
        self._file = AdminFile(
            path,
            self._saved,
            what="the folder map",
            check_command="footnote folders --check",
            equal_scans=2,
        )
        # Targets of the map in force.
        self.targets: list[WatchTarget] = []

    async def begin(self) -> None:
        """Apply the file; if it is invalid, the last valid map.

        Raises:
            DatabaseUnavailable: the database does not work.
        """
        known = await self._folders.watched(origin="map")
        self.targets = [WatchTarget(one, FolderMapEntry(one.location, "")) for one in known]
        await run_in_thread(self._file.reload_if_changed)
        if not await self.refresh():  # restores pauses, scan intervals and shares, too
            kept = (await self._folders.stored_map() or "").encode()
            with suppress(InvalidFile):
                await self._apply((await run_in_thread(lambda: self._saved(kept))).entries)

    async def refresh(self) -> bool:
        """Apply changes once two reads of the file were equal; return whether there were any.

        Raises:
            DatabaseUnavailable: the database does not work; the next call retries.
        """
        saved = await run_in_thread(self._file.reload_if_changed)
        if saved is None:
            return False
        try:
            await self._folders.store_map(saved.text)
            await self._apply(saved.entries)
        except StorageError:
            self._file.invalidate()
            raise
        return True

    def _saved(self, data: bytes) -> _Saved:
        if not data.strip() and self.targets:
            sentence = (
                "the file is missing or empty, so nothing was changed; to unmap all, keep a comment in it"
            )
            raise InvalidFile([Mistake(1, sentence, self._path.name)])
        return _Saved(data.decode(), read_map(data, self._path.parent, self._inbox))

    async def _apply(self, entries: list[FolderMapEntry]) -> None:
        targets = []
        direct_library = None
        for entry in entries:
            if entry.library is None:
                channel = await self._channels.ensure_named(entry.channel, entry.name)
            else:
                channel = await self._channels.ensure_library(entry.library)
                direct_library = DirectLibrary(channel, entry.installations)
            folder = await self._folders.ensure(
                channel.id, entry.location, watched=True, origin="map", passwords=entry.passwords
            )
            targets.append(WatchTarget(folder, entry))
        await self._channels.set_direct_library(direct_library)
        before = {one.id for one in await self._folders.watched(origin="map")}
        known = {one.folder.id for one in self.targets}
        self.targets = targets
        for one in targets:
            if one.folder.id not in known:
                _log.info("folder=%d is mapped to channel=%d", one.folder.id, one.folder.channel_id)
        for unmapped in sorted(before - {one.folder.id for one in targets}):
            deleted = await self._folders.unmap([unmapped])
            _log.info("folder=%d unmapped; %d documents deleted", unmapped, deleted)


class WatchList:
    """Watch targets as of the last scan of the inbox and the map."""

    def __init__(self, inbox: WatchedInbox, mapped: FolderMap | None) -> None:
        """Follow an inbox and, if given, a map."""
        self._inbox = inbox
        self._mapped = mapped
        self._in_inbox: list[WatchTarget] = []

    async def begin(self) -> list[WatchTarget]:
        """Return the initial targets.

        Raises:
            DatabaseUnavailable: the database does not work.
            OSError: the inbox is new and cannot be created.
        """
        self._in_inbox = _default_targets(await self._inbox.load())
        if not self._in_inbox:
            await self._inbox.create()
        if self._mapped is not None:
            await self._mapped.begin()
        return self._all()

    async def refresh(self) -> list[WatchTarget] | None:
        """Return the current targets; None if nothing has changed.

        Raises:
            DatabaseUnavailable: the database does not work; the next call retries.
        """
        new, dropped = await self._inbox.refresh()
        kept = [one for one in self._in_inbox if one.folder.id not in dropped]
        self._in_inbox = kept + _default_targets(new)
        has_changed = self._mapped is not None and await self._mapped.refresh()
        return self._all() if new or dropped or has_changed else None

    def _all(self) -> list[WatchTarget]:
        return self._in_inbox + (self._mapped.targets if self._mapped else [])


def _default_targets(folders: Iterable[Folder]) -> list[WatchTarget]:
    """Return targets for folders of the inbox, with the settings' options."""
    return [WatchTarget(folder, FolderMapEntry(folder.location, "")) for folder in folders]
