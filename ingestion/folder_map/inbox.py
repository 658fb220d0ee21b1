"""Inbox: a folder whose first-level folders each feed the channel of their name."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection
from pathlib import Path

from ingestion.settings import REMEMBERED_SECONDS
from ingestion.sources.local import first_level, loose_files
from ingestion.sources.watchdog import ShareTimeout, Watchdog
from storage.chat.channels import Channels
from storage.clock import monotonic_seconds
from storage.errors import UnknownChannel
from storage.folders.folder_leases import FolderLeases
from storage.folders.folders import Folder, Folders
from storage.models import Channel
from storage.threads import run_in_thread

# Timeout of listing the inbox: it may be on a network share, and shares hang.
TIMEOUT_SECONDS = 20.0
_LEFT_BEHIND = (
    "The inbox has moved, and the new one has a folder of this name, too: this one is no longer watched. "
    "Move its files over, or set FOOTNOTE_INBOX to the inbox that contains it."
)
_log = logging.getLogger(__name__)


class WatchedInbox:
    """An inbox; follows channel folders that appear and disappear."""

    def __init__(self, root: Path, channels: Channels, folders: Folders, leases: FolderLeases) -> None:
        self._root = root
        self._leases = leases
        self._channels = channels
        self._folders = folders
        # Folder name -> folder id; None if no channel can have the name.
        self._known: dict[str, int | None] = {}
        self._loose: list[str] = []
        self._unsupported_files: dict[str, str] | None = None
        self._is_well = True
        self._watchdog = Watchdog(TIMEOUT_SECONDS)
        self._asked_at = monotonic_seconds()

    async def load(self) -> list[Folder]:
        """Return the folders watched before; a missing one counts as an outage, not as a deletion.

        Folders of another inbox, as after a move of the home, are now expected in this one.
        """
        watched = [await self._moved_here(folder) for folder in await self._folders.watched(origin="inbox")]
        here = [folder for folder in watched if folder is not None]
        self._known = {Path(folder.location).name: folder.id for folder in here}
        return here

    async def _moved_here(self, folder: Folder) -> Folder | None:
        before = Path(folder.location)
        if before.parent == self._root:
            return folder
        if not await self._leases.acquire(folder.location):
            return None  # a live process watches another inbox of this home
        moved = await self._folders.move_to(folder.id, str(self._root / before.name))
        if moved is None:
            await self._leases.release(folder.location)
            await self._folders.report(folder.id, _LEFT_BEHIND)
        else:
            _log.warning("folder=%d moved to this inbox from another one", folder.id)
        return moved

    async def create(self) -> None:
        """Create the inbox, so that people find it.

        Raises:
            OSError: it cannot be created.
        """
        await asyncio.to_thread(self._root.mkdir, parents=True, exist_ok=True)

    async def refresh(self) -> tuple[list[Folder], set[int]]:
        """Return (folders that are new since the last scan, ids of folders that were dropped).

        A folder is dropped when it was deleted and none of its documents is searchable any more.
        """
        try:
            (names, loose), unsupported_files = await run_in_thread(
                lambda: self._watchdog.call(
                    lambda _heartbeat: (first_level(self._root), loose_files(self._root))
                )
            )
        except (ShareTimeout, OSError) as error:
            why = f": {error.strerror}" if isinstance(error, OSError) else f". {error}"
            self._say(f"inbox cannot be listed{why}", is_well=False)
            return [], set()
        self._say("inbox can be listed again", is_well=True)
        if new := set(loose) - set(self._loose):
            _log.warning(
                "%d PDFs directly in the inbox are not read: move them into a channel's folder", len(new)
            )
        self._loose = list(loose)
        if unsupported_files != self._unsupported_files:
            await self._folders.record_unsupported_files(None, unsupported_files)
            self._unsupported_files = unsupported_files
        dropped = await self._drop_removed_elsewhere()
        found = [await self._watch(name) for name in names if name not in self._known]
        dropped |= await self._drop_missing(names)
        return [folder for folder in found if folder is not None], dropped

    async def _drop_removed_elsewhere(self) -> set[int]:
        """Drop folders that another process has dropped; checked rarely. A folder that returns is new."""
        if monotonic_seconds() - self._asked_at < REMEMBERED_SECONDS:
            return set()
        self._asked_at = monotonic_seconds()
        watched = {folder.id for folder in await self._folders.watched()}
        dropped = {id for id in self._known.values() if id is not None and id not in watched}
        self._known = {name: id for name, id in self._known.items() if id not in dropped}
        return dropped

    async def _drop_missing(self, names: Collection[str]) -> set[int]:
        missing = {id: name for name, id in self._known.items() if id is not None and name not in names}
        dropped = await self._folders.unwatch_empty(missing) if missing else set()
        for folder in dropped:
            del self._known[missing[folder]]
            _log.info("folder=%d removed from the inbox: no longer watched", folder)
        return dropped

    async def _watch(self, name: str) -> Folder | None:
        channel = await channel_of_folder(self._channels, name)
        if channel is None:
            _log.warning("inbox folder skipped: no channel can have its name")
            self._known[name] = None
            return None
        folder = await self._folders.ensure(channel.id, str(self._root / name), watched=True, origin="inbox")
        self._known[name] = folder.id
        return folder

    def _say(self, sentence: str, *, is_well: bool) -> None:
        if is_well is not self._is_well:
            _log.warning(sentence)
        self._is_well = is_well


async def channel_of_folder(channels: Channels, name: str) -> Channel | None:
    """Return the channel that a folder of this name feeds: a Slack or Teams channel, else the local one.

    None if no channel can have the name.
    """
    try:
        return await channels.ensure_named(name)
    except UnknownChannel:
        return None
