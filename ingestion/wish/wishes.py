"""Everything that is to be watched: the folders of the inbox, and those of the map."""

from __future__ import annotations

from collections.abc import Iterable

from ingestion.wish.channel_folders import WatchedInbox
from ingestion.wish.mapped import FolderMap, WatchTarget
from ingestion.wish.mapping_checks import FolderMapEntry
from storage.folders import Folder


class WatchList:
    """What the admins want, as of the last look at the inbox and the map."""

    def __init__(self, inbox: WatchedInbox, mapped: FolderMap | None) -> None:
        """Follow an inbox and, where there is one, a map."""
        self._inbox = inbox
        self._mapped = mapped
        self._in_inbox: list[WatchTarget] = []

    async def begin(self) -> list[WatchTarget]:
        """What is wanted at the start.

        Raises:
            DatabaseUnavailable: the database does not work.
            OSError: the inbox is new and cannot be made.
        """
        self._in_inbox = _plainly(await self._inbox.known())
        if not self._in_inbox:
            await self._inbox.make()
        if self._mapped is not None:
            await self._mapped.begin()
        return self._all()

    async def follow(self) -> list[WatchTarget] | None:
        """What is wanted now; None when nothing has changed.

        Raises:
            DatabaseUnavailable: the database does not work; the next call tries again.
        """
        new, forgotten = await self._inbox.follow()
        kept = [one for one in self._in_inbox if one.folder.id not in forgotten]
        self._in_inbox = kept + _plainly(new)
        has_changed = self._mapped is not None and await self._mapped.follow()
        return self._all() if new or forgotten or has_changed else None

    def _all(self) -> list[WatchTarget]:
        return self._in_inbox + (self._mapped.targets if self._mapped else [])


def _plainly(folders: Iterable[Folder]) -> list[WatchTarget]:
    """Folders of the inbox, watched as the settings say."""
    return [WatchTarget(folder, FolderMapEntry(folder.location, "")) for folder in folders]
