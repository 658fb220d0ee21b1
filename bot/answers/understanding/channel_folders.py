"""Locates the folder for a channel's documents, as its admin sees the path."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from storage.folders.folders import Folders
from storage.models import Channel

# Timeout for creating a folder: the inbox may be on a network share, and those hang.
MAKING_SECONDS = 5.0

log = logging.getLogger(__name__)


class ChannelFolders:
    """The watched folders of channels; a channel without any has a folder in the inbox."""

    def __init__(self, folders: Folders, inbox: Path) -> None:
        self._folders = folders
        self._inbox = inbox
        self._offered: set[int] = set()

    async def location(self, channel: Channel) -> str:
        """Return the path or URL of the folder that feeds the channel, or would once it exists.

        Raises:
            storage.errors.DatabaseUnavailable: the database is unavailable.
        """
        watched = await self._folders.of_channel(channel.id)
        return watched[0] if watched else str(self._inbox / folder_name(channel))

    async def offer(self, channel: Channel) -> str:
        """Return ``location``; a chat channel that had the bot before ``serve`` ran gets its folder first."""
        if channel.is_local or channel.is_direct or channel.id in self._offered:
            return await self.location(channel)
        self._offered.add(channel.id)
        return await self.make(channel)

    async def make(self, channel: Channel) -> str:
        """Create the channel's folder in the inbox, unless another folder feeds it; return the location.

        A failure, as without an inbox, is only logged.

        Raises:
            storage.errors.DatabaseUnavailable: the database is unavailable.
        """
        if not await self._folders.of_channel(channel.id):
            folder = self._inbox / folder_name(channel)
            try:
                async with asyncio.timeout(MAKING_SECONDS):
                    await asyncio.to_thread(folder.mkdir, exist_ok=True)
                log.info("inbox folder created: channel=%d path=%s", channel.id, folder)
            except OSError as error:  # includes TimeoutError
                kind = type(error).__name__
                log.warning("could not create inbox folder: channel=%d path=%s: %s", channel.id, folder, kind)
        return await self.location(channel)


def folder_name(channel: Channel) -> str:
    """Return the name of the channel's folder in the inbox: a local channel's name, else the tenant.

    A library's name has a slash in it, so its folder is named after the tenant as well.
    """
    is_named = channel.is_local and not channel.is_library
    return channel.name if is_named else channel.tenant
