"""Conversations that Slack gave another id: a private channel that is shared, a workspace that joins a grid.

Everything here goes by the id that a channel was first known by: folder, documents, threads, links, buttons.
Ids are translated at the door, in both directions, so that what was said before and after is of one channel.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bot.core.ports import ReadMoves
from bot.slack.events import SLACK_ID, installation_of
from storage.clock import steady_seconds
from storage.errors import StorageError
from storage.models import ChannelKey, Platform

CHANGED = "channel_id_changed"
# Another process may have heard of a change; what is known is read again after so long.
KNOWN_SECONDS = 1.0
# A whole value, or a mention within a text.
_ID = re.compile(r"^[A-Z0-9]{2,24}$|(?<=<#)[A-Z0-9]{2,24}(?=[|>])")

Json = Mapping[str, Any]


class MovedChannels:
    """Knows the ids of channels that changed, those of each installation by themselves.

    Any workspace may say that any id has changed: what one says is nothing to another.
    """

    def __init__(self, read: ReadMoves) -> None:
        self._read = read
        self._known_until = 0.0
        self._moves: Sequence[tuple[ChannelKey, ChannelKey]] = ()

    async def refresh(self) -> None:
        """Read what changed.

        Raises:
            storage.errors.DatabaseUnavailable: nobody knows just now.
        """
        if steady_seconds() < self._known_until:
            return
        self._moves = [(_key(ours), _key(theirs)) for ours, theirs in await self._read()]
        self._known_until = steady_seconds() + KNOWN_SECONDS

    def forget(self) -> None:
        """Read again at the next turn."""
        self._known_until = 0.0

    def inward(self, said: Any, installation: str | None) -> Any:
        """Return what Slack says of an installation with the ids that channels were first known by.

        Args:
            said: any part of what came.
            installation: whose channels it names; None: those of the only one that there is.
        """
        return _translated(said, {theirs: ours for ours, theirs in self._of(installation)})

    def outward(self, said: Any, installation: str | None) -> Any:
        """Return what is said to Slack with the ids that channels have now; arguments as of ``inward``."""
        return _translated(said, dict(self._of(installation)))

    def _of(self, installation: str | None) -> Iterator[tuple[str, str]]:
        """(first id, id now)."""
        for ours, theirs in self._moves:
            if installation in (None, ours.installation) and ours.installation == theirs.installation:
                yield ours.conversation, theirs.conversation


class TranslatingClient(AsyncWebClient):
    """Calls Slack by the ids that channels have now, and hands back replies with those that we know."""

    moved: MovedChannels | None = None
    # Whose token it has; None: of the only installation that there is.
    installation: str | None = None

    async def api_call(self, api_method: str, **given: Any) -> AsyncSlackResponse:
        """One call; while the database is away, with the changes that are known."""
        if self.moved is None:
            return await super().api_call(api_method, **given)
        try:
            await self.moved.refresh()
        except StorageError:
            pass
        for part in ("json", "params", "data"):
            if isinstance(given.get(part), Mapping):
                given[part] = self.moved.outward(given[part], self.installation)
        reply = await super().api_call(api_method, **given)
        reply.data = self.moved.inward(reply.data, self.installation)
        return reply


def read_move(envelope: Json) -> tuple[ChannelKey, ChannelKey] | None:
    """(what a channel was, what it is from now on); None for anything else that happens."""
    event: Json = envelope.get("event") or {}
    if event.get("type") != CHANGED:
        return None
    installation = installation_of((envelope.get("authorizations") or [{}])[0])
    ids = [str(event.get(name) or "") for name in ("old_channel_id", "new_channel_id")]
    if not all(map(SLACK_ID.fullmatch, (installation, *ids))):
        return None
    old, new = (ChannelKey(Platform.SLACK, installation, one) for one in ids)
    return old, new


def _key(tenant: str) -> ChannelKey:
    _, installation, conversation = tenant.split("_")
    return ChannelKey(Platform.SLACK, installation, conversation)


def _translated(value: Any, ids: Mapping[str, str]) -> Any:
    if not ids:
        return value
    if isinstance(value, str):
        return _ID.sub(lambda found: ids.get(found[0], found[0]), value)
    if isinstance(value, Mapping):
        return {key: _translated(child, ids) for key, child in value.items()}
    return [_translated(child, ids) for child in value] if isinstance(value, list | tuple) else value
