"""Looks up channel names in the background, with a TTL cache."""

from __future__ import annotations

import asyncio
import logging

import aiohttp
from slack_sdk.errors import SlackClientError

from bot.chat.chat_service import ChatService
from bot.platforms.slack.web_api import WebClients
from storage.clock import monotonic_seconds
from storage.errors import StorageError
from storage.models import ChannelKey, TenantName
from storage.task_group import cancel_and_wait

# TTL of a name: people rename channels.
NAME_TTL_SECONDS = 3600.0
# Retry interval after a failed lookup.
RETRY_SECONDS = 300.0

log = logging.getLogger(__name__)


class ChannelNames:
    """Looks up a channel's name when an event arrives from it, at most once an hour.

    Answers and welcomes do not wait for it; they use the name stored before.
    """

    def __init__(self, clients: WebClients, service: ChatService) -> None:
        self._clients = clients
        self._service = service
        self._known_until: dict[TenantName, float] = {}
        self._asking: set[asyncio.Task[None]] = set()

    def refresh(self, key: ChannelKey) -> None:
        """Look up a channel's name in the background unless it is fresh; direct chats have none."""
        if key.conversation.startswith("D") or monotonic_seconds() < self._known_until.get(key.tenant, 0):
            return
        self._known_until[key.tenant] = monotonic_seconds() + RETRY_SECONDS
        asking = asyncio.create_task(self._ask(key), name="channel-name")
        self._asking.add(asking)
        asking.add_done_callback(self._asking.discard)

    async def aclose(self) -> None:
        """Cancel lookups in progress."""
        await cancel_and_wait(*self._asking)

    async def _ask(self, key: ChannelKey) -> None:
        try:
            client = await self._clients.client_for(key.installation)
            reply = await client.conversations_info(channel=key.conversation)
            channel = reply.get("channel") or {}
            if (name := channel.get("name")) and not channel.get("is_mpim"):
                await self._service.name_channel(key, f"#{name}")
            self._known_until[key.tenant] = monotonic_seconds() + NAME_TTL_SECONDS
        except (SlackClientError, aiohttp.ClientError, TimeoutError, StorageError) as error:
            log.warning("channel name lookup failed: %s", type(error).__name__)
