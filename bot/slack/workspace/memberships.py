"""Who is in which channel, as Slack says at that very moment; nothing is remembered."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping
from typing import Any

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError

from bot.core.errors import MembershipsUnknown
from bot.core.ports import GivenAnswer
from bot.slack.events import SLACK_ID
from bot.slack.question_buttons import asked_tenant
from bot.slack.web_api import WebClients
from storage.models import ChannelKey, Platform, TenantName

PAGE_SIZE = 200
# Pages of a person's channels that are read: who is in more is in some of them.
MAX_PAGES = 10
TYPES = "public_channel,private_channel"
# Longest wait for Slack to say where a person who asks is.
QUESTION_SECONDS = 8.0
# Longest wait for Slack to say where a person who clicks is: a click wants an answer within three.
CLICK_SECONDS = 2.0

log = logging.getLogger(__name__)


class Memberships:
    """Asks Slack for the channels of people: public ones, and private ones that the bot is in, too."""

    def __init__(self, clients: WebClients) -> None:
        self._clients = clients

    async def channels_of(self, installation: str, user: str) -> dict[TenantName, str]:
        """Return the channels that this person is in, with their names there.

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

    async def of_asker(self, address: Mapping[str, Any]) -> dict[TenantName, str]:
        """Return the channels that whoever asked at an address is in, with their names there.

        Raises:
            MembershipsUnknown: Slack does not say it, or not in time.
        """
        try:
            async with asyncio.timeout(QUESTION_SECONDS):
                installation = address["key"].partition(":")[0]
                user = address.get("user") or await self._person_of(installation, address["channel"])
                if not SLACK_ID.fullmatch(str(user or "")):  # of nobody, Slack would list our own channels
                    raise MembershipsUnknown("Slack does not say whose chat it is")
                return await self.channels_of(installation, str(user))
        except SlackApiError as error:
            raise MembershipsUnknown(f"Slack refused: {error.response.get('error')}") from error
        except (SlackClientError, aiohttp.ClientError, TimeoutError) as error:
            raise MembershipsUnknown(f"Slack does not say it: {type(error).__name__}") from error

    async def may_read(self, address: Mapping[str, Any], tenants: Collection[TenantName]) -> bool:
        """True if whoever is answered at an address is in these channels, and in the one that was asked.

        Slack is asked where that is not the very channel in which the answer stands.

        Raises:
            MembershipsUnknown: Slack does not say it, or not in time.
        """
        here = ChannelKey(Platform.SLACK, address["key"].partition(":")[0], address["channel"]).tenant
        others = {one for one in (*tenants, asked_tenant(address)) if one.startswith("sl_")} - {here}
        return not others or others <= (await self.of_asker(address)).keys()

    async def has(self, key: ChannelKey, user: str) -> bool:
        """True if Slack says in time for a click that a person is in a channel; False where it does not.

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

    async def may_see(self, given: GivenAnswer) -> bool:
        """True if Slack says in time for a click that whoever asked may read what the answer is from."""
        shown = given.answer.answered_from
        try:
            async with asyncio.timeout(CLICK_SECONDS):
                return await self.may_read(given.address, shown.tenants if shown else ())
        except (MembershipsUnknown, TimeoutError) as error:
            log.warning("Slack does not say who is in a channel: %s", type(error).__name__)
            return False

    async def _person_of(self, installation: str, direct: str) -> object:
        """Whose direct chat with us it is, where an address does not say it, as that of a page's note."""
        client = await self._clients.of(installation)
        channel = (await client.conversations_info(channel=direct)).get("channel") or {}
        return channel.get("user") if channel.get("is_im") else None
