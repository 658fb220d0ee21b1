"""Who is in which channel, as Slack says at that very moment; nothing is remembered."""

from __future__ import annotations

import asyncio
import logging

import aiohttp
from slack_sdk.errors import SlackClientError

from bot.slack.events import SLACK_ID
from bot.slack.web_api import WebClients
from storage.models import ChannelKey, Platform, TenantName

PAGE_SIZE = 200
MAX_PAGES = 10
"""Pages of a person's channels that are read: who is in more is in some of them."""
TYPES = "public_channel,private_channel"
CLICK_SECONDS = 2.0
"""Longest wait for Slack to say where a person who clicks is: a click wants an answer within three."""

log = logging.getLogger(__name__)


class Memberships:
    """Asks Slack for the channels of people: public ones, and private ones that the bot is in, too."""

    def __init__(self, clients: WebClients) -> None:
        self._clients = clients

    async def channels_of(self, installation: str, user: str) -> dict[TenantName, str]:
        """The channels that this person is in, with their names there.

        Raises:
            SlackClientError: Slack refused.
            aiohttp.ClientError: it could not be reached; a TimeoutError: in time.
        """
        client = await self._clients.of(installation)
        found: dict[TenantName, str] = {}
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            reply = await client.users_conversations(
                user=user, types=TYPES, exclude_archived=True, limit=PAGE_SIZE, cursor=cursor
            )
            for channel in reply.get("channels") or ():
                if SLACK_ID.fullmatch(conversation := str(channel.get("id") or "")):
                    tenant = ChannelKey(Platform.SLACK, installation, conversation).tenant
                    found[tenant] = f"#{channel.get('name') or conversation}"
            cursor = (reply.get("response_metadata") or {}).get("next_cursor")
            if not cursor:
                break
        return found

    async def has(self, key: ChannelKey, user: str) -> bool:
        """Whether Slack says in time for a click that a person is in a channel; False where it does not.

        The two people of a direct conversation never change: whoever clicks in one is one of them.
        """
        if key.conversation.startswith("D"):
            return True
        try:
            async with asyncio.timeout(CLICK_SECONDS):
                return key.tenant in await self.channels_of(key.installation, user)
        except (SlackClientError, aiohttp.ClientError, TimeoutError) as error:
            log.warning("Slack does not say who is in a channel: %s", type(error).__name__)
            return False
