"""Where an admin puts the documents of a channel, as that admin sees the place."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from storage.folders.folders import Folders
from storage.models import Channel, Platform

# How long the inbox may take: it may lie on a share, and shares hang.
MAKING_SECONDS = 5.0

log = logging.getLogger(__name__)


class ChannelFolders:
    """The watched folders of channels; a channel without any has a place in the inbox."""

    def __init__(self, folders: Folders, inbox: Path) -> None:
        self._folders = folders
        self._inbox = inbox

    async def location(self, channel: Channel) -> str:
        """Return the path or URL of the folder that feeds the channel, or would once it is there.

        Raises:
            storage.errors.DatabaseUnavailable: nobody knows just now.
        """
        watched = await self._folders.of_channel(channel.id)
        return watched[0] if watched else str(self._inbox / folder_name(channel))

    async def make(self, channel: Channel) -> str:
        """Return the same; a channel that nothing feeds gets its folder in the inbox, if the inbox is there.

        Raises:
            storage.errors.DatabaseUnavailable: nobody knows just now.
        """
        if not await self._folders.of_channel(channel.id):
            folder = self._inbox / folder_name(channel)
            try:
                async with asyncio.timeout(MAKING_SECONDS):
                    await asyncio.to_thread(folder.mkdir, exist_ok=True)
                log.info("folder ready: channel=%d path=%s", channel.id, folder)
            except OSError as error:  # a TimeoutError is one, too
                kind = type(error).__name__
                log.warning("folder cannot be made: channel=%d path=%s: %s", channel.id, folder, kind)
        return await self.location(channel)


def folder_name(channel: Channel) -> str:
    """What the channel's folder in the inbox is called; a library's own name is none for a folder."""
    is_named = channel.platform is Platform.LOCAL and not channel.is_library
    return channel.name if is_named else channel.tenant
