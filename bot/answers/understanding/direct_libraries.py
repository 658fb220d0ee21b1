"""Resolves the library that direct chats search, if an admin named one for the installation."""

from __future__ import annotations

from collections.abc import Collection

from storage.chat.channels import Channels
from storage.models import Channel, Platform


class DirectLibraries:
    """Resolves the library of an installation: a Slack workspace or a Teams tenant."""

    def __init__(self, channels: Channels, shared: Collection[Platform] = ()) -> None:
        """Create the resolver.

        Args:
            channels: stores the library, and the installations that an admin named for it.
            shared: platforms where anyone may install the bot: only named installations get the library.
        """
        self._channels = channels
        self._shared = shared

    async def library_for(self, platform: Platform, installation: str) -> Channel | None:
        """Return the library's channel; None if there is none, or none for this installation.

        Raises:
            DatabaseUnavailable: the database is unavailable.
        """
        library = await self._channels.direct_library()
        if library is None or (platform in self._shared and installation not in library.installations):
            return None
        return library.channel
