"""Inbox: a folder whose first-level folders each feed the channel of their name."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable
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
    "The inbox is elsewhere now, where the channel has a folder of this name too: nobody looks into this "
    "one. Move its files over, or start with the inbox that it lies in (FOOTNOTE_INBOX)."
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
        self._strangers: dict[str, str] | None = None
        self._is_well = True
        self._watchdog = Watchdog(TIMEOUT_SECONDS)
        self._asked_at = monotonic_seconds()

    async def known(self) -> list[Folder]:
        """Return the folders watched before; a missing one counts as an outage, not as a deletion.

        Folders of another inbox, as after a move of the home, are now expected in this one.
        """
        watched = [await self._here(folder) for folder in await self._folders.watched(origin="inbox")]
        here = [folder for folder in watched if folder is not None]
        self._known = {Path(folder.location).name: folder.id for folder in here}
        return here

    async def _here(self, folder: Folder) -> Folder | None:
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
            _log.warning("folder=%d is looked for in this inbox from now on; it was in another", folder.id)
        return moved

    async def make(self) -> None:
        """Create the inbox, so that people find it.

        Raises:
            OSError: it cannot be created.
        """
        await asyncio.to_thread(self._root.mkdir, parents=True, exist_ok=True)

    async def follow(self) -> tuple[list[Folder], set[int]]:
        """Return (folders that are new since the last scan, ids of folders that were dropped).

        A folder is dropped when it was deleted and none of its documents is searchable any more.
        """
        try:
            (names, loose), strangers = await run_in_thread(
                lambda: self._watchdog.call(
                    lambda _heartbeat: (first_level(self._root), loose_files(self._root))
                )
            )
        except (ShareTimeout, OSError) as error:
            why = f": {error.strerror}" if isinstance(error, OSError) else f". {error}"
            self._say(f"the inbox cannot be listed{why}", is_well=False)
            return [], set()
        self._say("the inbox can be listed again", is_well=True)
        self._report_loose(loose)
        if strangers != self._strangers:
            await self._folders.record_unsupported_files(None, strangers)
            self._strangers = strangers
        forgotten = await self._forget_with_others()
        found = [await self._watch(name) for name in names if name not in self._known]
        forgotten |= await self._forget_without(names)
        return [folder for folder in found if folder is not None], forgotten

    async def _forget_with_others(self) -> set[int]:
        """Drop folders that another process has dropped; checked rarely. A folder that returns is new."""
        if monotonic_seconds() - self._asked_at < REMEMBERED_SECONDS:
            return set()
        self._asked_at = monotonic_seconds()
        watched = {folder.id for folder in await self._folders.watched()}
        forgotten = {id for id in self._known.values() if id is not None and id not in watched}
        self._known = {name: id for name, id in self._known.items() if id not in forgotten}
        return forgotten

    async def _forget_without(self, names: Collection[str]) -> set[int]:
        missing = {id: name for name, id in self._known.items() if id is not None and name not in names}
        forgotten = await self._folders.unwatch_empty(missing) if missing else set()
        for folder in forgotten:
            del self._known[missing[folder]]
            _log.info("folder=%d was removed from the inbox and is forgotten", folder)
        return forgotten

    async def _watch(self, name: str) -> Folder | None:
        channel = await channel_of_folder(self._channels, name)
        if channel is None:
            _log.warning("a folder of the inbox is passed over: no channel can have its name")
            self._known[name] = None
            return None
        folder = await self._folders.ensure(channel.id, str(self._root / name), watched=True, origin="inbox")
        self._known[name] = folder.id
        return folder

    def _report_loose(self, loose: Iterable[str]) -> None:
        if new := set(loose) - set(self._loose):
            _log.warning(
                "%d PDFs lie loose in the inbox, where nobody reads them: move them into a channel's folder",
                len(new),
            )
        self._loose = list(loose)

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
