"""Which library a direct chat asks: the one that an admin names, where the installation may have it."""

from __future__ import annotations

from collections.abc import Collection

from storage.chat.channels import Channels
from storage.models import Channel, Platform


class DirectLibraries:
    """Answers for each installation, a workspace of Slack or a tenant of Teams."""

    def __init__(self, channels: Channels, shared: Collection[Platform] = ()) -> None:
        """Nothing is asked yet.

        Args:
            channels: know the library, and the installations that an admin named for it.
            shared: platforms where anybody may install the bot: there only named installations get it.
        """
        self._channels = channels
        self._shared = shared

    async def of(self, platform: Platform, installation: str) -> Channel | None:
        """Return the library's own channel; None: there is none, or it is not for this installation.

        Raises:
            DatabaseUnavailable: nobody knows just now.
        """
        library = await self._channels.direct_library()
        if library is None or (platform in self._shared and installation not in library.installations):
            return None
        return library.channel
