"""Access of programs: a token opens one channel or all, and never a direct chat."""

from __future__ import annotations

from dataclasses import dataclass

from aiohttp import web

from bot.core.models import LOCAL_ASKER
from bot.web.api.problems import ApiError
from storage.chat.channels import Channels
from storage.errors import UnknownChannel
from storage.installations.api_tokens import ApiTokens
from storage.models import Channel

# Prefix of an actor in the audit log, in the format of FOOTNOTE_ADMINS: platform, installation, user.
ACTOR = "api:token:"
# Key of the caller in the scope of an ASGI request.
ACCESS_KEY = "footnote.access"
UNNAMED = "Name a channel: the token opens several."


@dataclass(frozen=True, slots=True)
class Access:
    """Verified caller, and the channels that it may use."""

    # In the format of FOOTNOTE_ADMINS.
    actor: str
    # None: all channels.
    channel_id: int | None = None

    @property
    def person(self) -> tuple[str, str]:
        """(installation, user) as in the audit log, for feedback."""
        _, installation, user = self.actor.split(":", 2)
        return installation, user

    def opens(self, channel: Channel) -> bool:
        """True if the caller may use this channel."""
        return not channel.is_direct and self.channel_id in (None, channel.id)


# Caller of the command line, who can read the home anyway.
LOCAL_ACCESS = Access(LOCAL_ASKER)


class AccessControl:
    """Verifies tokens and resolves the channel that a request means."""

    def __init__(self, tokens: ApiTokens, channels: Channels) -> None:
        self._tokens = tokens
        self._channels = channels

    async def require(self, request: web.Request) -> Access:
        """Return the caller whose bearer token a request has; cookies are ignored.

        Raises:
            ApiError: 401 for no valid token; 404 while there is no token at all, so that the API is off.
        """
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        found = await self._tokens.find(token.strip()) if scheme.lower() == "bearer" else None
        if found is None:
            await self.require_enabled()
            raise ApiError(401)
        return Access(f"{ACTOR}{found.id}", found.channel_id)

    async def require_enabled(self) -> None:
        """Reject a request while no token exists.

        Raises:
            ApiError: 404.
        """
        if not await self._tokens.has_any():
            raise ApiError(404)

    async def channel(self, access: Access, name: str | None) -> Channel:
        """Return the channel that a request names, or the only one that the caller may use.

        Raises:
            ApiError: 404 for another channel, as for one that does not exist; 422 if none is named.
        """
        try:
            if name is not None:
                channel = await self._channels.by_name(name)
            elif access.channel_id is not None:
                channel = await self._channels.get(access.channel_id)
            else:
                channel = await self._only()
        except UnknownChannel:
            raise ApiError(404) from None
        if not access.opens(channel):
            raise ApiError(404)
        return channel

    async def _only(self) -> Channel:
        channels = [one for one in await self._channels.all() if not one.is_direct]
        if len(channels) != 1:
            raise ApiError(422, UNNAMED) if channels else ApiError(404)
        return channels[0]
