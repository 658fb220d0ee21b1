"""Membership checks against Slack's Web API (users.conversations); results are never cached."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping
from typing import Any

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError

from bot.core.errors import MembershipsUnknown
from bot.core.ports import StoredAnswer
from bot.platforms.slack.address import SLACK, SlackAddress
from bot.platforms.slack.events import SLACK_ID
from bot.platforms.slack.web_api import WebClients
from storage.models import ChannelKey, TenantName

PAGE_SIZE = 200
# Pages read per person; channels beyond them count as not joined.
MAX_PAGES = 10
TYPES = "public_channel,private_channel"
# Timeout of a lookup for a question.
QUESTION_SECONDS = 8.0
# Timeout of a lookup for a click, which Slack wants acknowledged within three seconds.
CLICK_SECONDS = 2.0

log = logging.getLogger(__name__)


class Memberships:
    """Reads a person's channels: public ones, and private ones that the bot is also in."""

    def __init__(self, clients: WebClients) -> None:
        self._clients = clients

    async def channels_of(self, installation: str, user: str) -> dict[TenantName, str]:
        """Return tenant -> name of the channels that a person is a member of.

        Raises:
            SlackClientError: Slack refused.
            aiohttp.ClientError: Slack could not be reached.
            TimeoutError: Slack did not answer in time.
        """
        client = await self._clients.client_for(installation)
        found: dict[TenantName, str] = {}
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            reply = await client.users_conversations(
                user=user, types=TYPES, exclude_archived=True, limit=PAGE_SIZE, cursor=cursor
            )
            for channel in reply.get("channels") or ():
                if SLACK_ID.fullmatch(conversation := str(channel.get("id") or "")):
                    tenant = ChannelKey(SLACK, installation, conversation).tenant
                    found[tenant] = f"#{channel.get('name') or conversation}"
            cursor = (reply.get("response_metadata") or {}).get("next_cursor")
            if not cursor:
                break
        return found

    async def channels_of_asker(self, address: Mapping[str, Any]) -> dict[TenantName, str]:
        """Return tenant -> name of the channels that the asker of an address is a member of.

        Raises:
            MembershipsUnknown: Slack refused, failed or timed out.
        """
        try:
            async with asyncio.timeout(QUESTION_SECONDS):
                asked = SlackAddress.from_json(address)
                user = asked.user or await self._person_of(asked.installation, asked.channel)
                if not SLACK_ID.fullmatch(str(user or "")):  # without a user, Slack lists the bot's channels
                    raise MembershipsUnknown("the user of the direct chat is unknown")
                return await self.channels_of(asked.installation, str(user))
        except SlackApiError as error:
            raise MembershipsUnknown(f"Slack refused: {error.response.get('error')}") from error
        except (SlackClientError, aiohttp.ClientError, TimeoutError) as error:
            raise MembershipsUnknown(f"membership lookup failed: {type(error).__name__}") from error

    async def may_read(self, address: Mapping[str, Any], tenants: Collection[TenantName]) -> bool:
        """True if the asker is a member of ``tenants`` and of the channel that was asked.

        Raises:
            MembershipsUnknown: Slack refused, failed or timed out.
        """
        asked = SlackAddress.from_json(address)
        # Readers of the channel that shows the answer need no check of that channel.
        here = ChannelKey(SLACK, asked.installation, asked.channel).tenant
        others = {one for one in (*tenants, asked.tenant) if one.startswith("sl_")} - {here}
        return not others or others <= (await self.channels_of_asker(address)).keys()

    async def is_member(self, key: ChannelKey, user: str) -> bool:
        """True if Slack confirms, in time for a click, that a person is a member; False if unknown."""
        if key.conversation.startswith("D"):  # members of a direct chat never change, and only they can click
            return True
        try:
            async with asyncio.timeout(CLICK_SECONDS):
                return key.tenant in await self.channels_of(key.installation, user)
        except (SlackClientError, aiohttp.ClientError, TimeoutError) as error:
            log.warning("membership check failed: %s", type(error).__name__)
            return False

    async def may_see(self, stored: StoredAnswer) -> bool:
        """True if Slack confirms, in time for a click, that the asker may read the answer's channels."""
        shown = stored.answer.answered_from
        try:
            async with asyncio.timeout(CLICK_SECONDS):
                return await self.may_read(stored.address, shown.tenants if shown else ())
        except (MembershipsUnknown, TimeoutError) as error:
            log.warning("membership check failed: %s", type(error).__name__)
            return False

    async def _person_of(self, installation: str, direct: str) -> object:
        """Return the user of a direct chat, for addresses without one (notes on followed pages)."""
        client = await self._clients.client_for(installation)
        channel = (await client.conversations_info(channel=direct)).get("channel") or {}
        return channel.get("user") if channel.get("is_im") else None
