"""Translation of channel ids that Slack changed: a private channel is shared, a workspace joins a grid.

Folder, documents, threads, links and buttons keep the id under which a channel was first stored. Ids are
translated at the boundary in both directions, so history before and after the change belongs to one channel.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any

from slack_bolt.context.async_context import AsyncBoltContext
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bot.platforms.slack.address import SLACK
from bot.platforms.slack.events import SLACK_ID, event_of, installation_of
from storage.clock import monotonic_seconds
from storage.errors import StorageError
from storage.models import ChannelKey, TenantName

CHANGED = "channel_id_changed"
# Cache TTL: another process may have received a change.
CACHE_TTL_SECONDS = 1.0
# An id as a whole value, or in a channel mention within a text.
_ID = re.compile(r"^[A-Z0-9]{2,24}$|(?<=<#)[A-Z0-9]{2,24}(?=[|>])")

Json = Mapping[str, Any]
# Reads (old tenant, new tenant) of moved channels, newest last; raises ``DatabaseUnavailable``.
ReadMoves = Callable[[], Awaitable[Sequence[tuple[TenantName, TenantName]]]]


class ChannelIdMap:
    """Caches changed channel ids, per installation.

    A workspace could claim any id to have changed, so its changes never apply to another installation.
    """

    def __init__(self, read: ReadMoves) -> None:
        self._read = read
        self._known_until = 0.0
        self._moves: Sequence[tuple[ChannelKey, ChannelKey]] = ()

    async def refresh(self) -> None:
        """Reload the changes once the cache has expired.

        Raises:
            storage.errors.DatabaseUnavailable: the changes cannot be read.
        """
        if monotonic_seconds() < self._known_until:
            return
        self._moves = [(_key(ours), _key(theirs)) for ours, theirs in await self._read()]
        self._known_until = monotonic_seconds() + CACHE_TTL_SECONDS

    def invalidate(self) -> None:
        """Invalidate the cache."""
        self._known_until = 0.0

    def to_stored(self, said: Any, installation: str | None) -> Any:
        """Return a payload from Slack with current ids replaced by the stored ones.

        Args:
            said: any JSON value of the payload.
            installation: owner of the channels; None: the only installation there is.
        """
        return _translated(said, {theirs: ours for ours, theirs in self._of(installation)})

    def to_current(self, said: Any, installation: str | None) -> Any:
        """Return arguments for Slack with stored ids replaced by the current ones; Args as ``to_stored``."""
        return _translated(said, dict(self._of(installation)))

    async def map_payload(
        self, body: dict[str, Any], context: AsyncBoltContext, next_: Callable[[], Awaitable[Any]]
    ) -> None:
        """Bolt middleware: map ids in a payload to those under which the channels were first stored."""
        # channel_id_changed itself has to keep both ids.
        if read_move(body) is None:
            await self.refresh()
            names = ("is_enterprise_install", "enterprise_id", "team_id")
            said = {name: context.get(name) for name in names}
            installation = installation_of((body.get("authorizations") or [said])[0])
            body.update(self.to_stored(body, installation))
        await next_()

    def _of(self, installation: str | None) -> Iterator[tuple[str, str]]:
        """Yield (stored id, current id)."""
        for ours, theirs in self._moves:
            if installation in (None, ours.installation) and ours.installation == theirs.installation:
                yield ours.conversation, theirs.conversation


class TranslatingClient(AsyncWebClient):
    """Web API client that sends current channel ids and returns replies with the stored ones."""

    channel_ids: ChannelIdMap | None = None
    # Owner of the token; None: the only installation there is.
    installation: str | None = None

    async def api_call(self, api_method: str, **given: Any) -> AsyncSlackResponse:
        """Call the Web API with translated ids."""
        if self.channel_ids is None:
            return await super().api_call(api_method, **given)
        try:
            await self.channel_ids.refresh()
        except StorageError:  # database down: use the changes cached before
            pass
        for part in ("json", "params", "data"):
            if isinstance(given.get(part), Mapping):
                given[part] = self.channel_ids.to_current(given[part], self.installation)
        reply = await super().api_call(api_method, **given)
        reply.data = self.channel_ids.to_stored(reply.data, self.installation)
        return reply


def read_move(envelope: Json) -> tuple[ChannelKey, ChannelKey] | None:
    """Parse ``channel_id_changed`` into (old channel, new channel); None for other events."""
    event, authorization = event_of(envelope)
    if event.get("type") != CHANGED:
        return None
    installation = installation_of(authorization)
    ids = [str(event.get(name) or "") for name in ("old_channel_id", "new_channel_id")]
    if not all(map(SLACK_ID.fullmatch, (installation, *ids))):
        return None
    old, new = (ChannelKey(SLACK, installation, one) for one in ids)
    return old, new


def _key(tenant: str) -> ChannelKey:
    _, installation, conversation = tenant.split("_")
    return ChannelKey(SLACK, installation, conversation)


def _translated(value: Any, ids: Mapping[str, str]) -> Any:
    if not ids:
        return value
    if isinstance(value, str):
        return _ID.sub(lambda found: ids.get(found[0], found[0]), value)
    if isinstance(value, Mapping):
        return {key: _translated(child, ids) for key, child in value.items()}
    return [_translated(child, ids) for child in value] if isinstance(value, list | tuple) else value
