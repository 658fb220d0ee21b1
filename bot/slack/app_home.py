"""The App Home of a person: help, and the channels of which Slack says that this person is in them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import aiohttp
from slack_sdk.errors import SlackClientError
from slack_sdk.web.async_client import AsyncWebClient

from bot.core.notifications.notification_wording import (
    HOME_CHANNELS,
    HOME_HOW,
    HOME_LEAD,
    HOME_NO_CHANNELS,
    HOME_UNKNOWN,
    TRY_ASKING,
)
from bot.core.plaintext import shorten, tame
from bot.core.ports import ChannelOverview, ReadOverviews
from bot.slack.blocks import SECTION, Block, escape
from bot.slack.events import SLACK_ID, installation_of
from storage.errors import StorageError
from storage.models import ChannelKey, Platform, TenantName
from storage.task_group import cancel_and_wait

Json = Mapping[str, Any]

PAGE_SIZE = 200
MAX_PAGES = 10
"""Pages of a person's channels that are read: who is in more sees some of them."""
HEADER = 150
TYPES = "public_channel,private_channel"

log = logging.getLogger(__name__)


def read_home_opened(envelope: Json) -> tuple[str, str] | None:
    """(installation, person) who opened the home tab; None for anything else that happens."""
    event: Json = envelope.get("event") or {}
    authorization: Json = (envelope.get("authorizations") or [{}])[0]
    installation, user = installation_of(authorization), str(event.get("user") or "")
    if event.get("type") != "app_home_opened" or event.get("tab") != "home":
        return None
    return (installation, user) if SLACK_ID.fullmatch(installation) and SLACK_ID.fullmatch(user) else None


class AppHome:
    """Publishes the home of whoever opens it."""

    def __init__(self, client: AsyncWebClient, read_overviews: ReadOverviews) -> None:
        """``read_overviews`` reads channels, whoever may see them."""
        self._client = client
        self._read_overviews = read_overviews
        self._publishing: dict[tuple[str, str], asyncio.Task[None]] = {}

    def open(self, installation: str, user: str) -> None:
        """Publish a person's home soon; returns at once, and does nothing while it is being made."""
        person = (installation, user)
        if person not in self._publishing:
            task = asyncio.create_task(self._publish(installation, user), name="app-home")
            self._publishing[person] = task
            task.add_done_callback(lambda _: self._publishing.pop(person, None))

    async def aclose(self) -> None:
        """Publish no more."""
        await cancel_and_wait(*self._publishing.values())

    async def _publish(self, installation: str, user: str) -> None:
        """What cannot be asked of Slack or of SQL is not shown; nothing is guessed from what was known."""
        overviews: Sequence[ChannelOverview] | None = None
        try:
            names = await self._channels_of(installation, user)
            overviews = [_named(one, names[one.tenant]) for one in await self._read_overviews(names.keys())]
        except (SlackClientError, aiohttp.ClientError, TimeoutError, StorageError) as error:
            log.warning("an App Home shows help alone: %s", type(error).__name__)
        try:
            await self._client.views_publish(user_id=user, view=home_view(overviews))
        except (SlackClientError, aiohttp.ClientError, TimeoutError) as error:
            log.warning("an App Home was not published: %s", type(error).__name__)

    async def _channels_of(self, installation: str, user: str) -> dict[TenantName, str]:
        """The channels that Slack says, now, this person is in, with their names there."""
        found: dict[TenantName, str] = {}
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            reply = await self._client.users_conversations(
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


def _named(overview: ChannelOverview, name: str) -> ChannelOverview:
    """A channel that nobody has a name for goes by Slack's."""
    return replace(overview, name=name) if overview.name == overview.tenant else overview


def home_view(overviews: Sequence[ChannelOverview] | None) -> dict[str, Any]:
    """The view, within Slack's limits; None: nobody could say which channels may be shown."""
    blocks = [_header("Footnote"), _section(HOME_LEAD), _section(HOME_HOW)]
    if not overviews:
        blocks.append(_section(HOME_UNKNOWN if overviews is None else HOME_NO_CHANNELS))
    else:
        blocks.append(_section(HOME_CHANNELS))
    for overview in overviews or ():
        questions = [f"• {question}" for question in overview.questions]
        texts = [
            overview.documents,
            overview.news,
            "\n".join([TRY_ASKING, *questions]) if questions else "",
        ]
        blocks += [{"type": "divider"}, _header(overview.name), *(_section(text) for text in texts if text)]
    return {"type": "home", "blocks": blocks}


def _header(text: str) -> Block:
    return {
        "type": "header",
        "text": {"type": "plain_text", "text": shorten(tame(text), HEADER), "emoji": False},
    }


def _section(text: str) -> Block:
    """One section, cut between lines where it is too long."""
    lines: list[str] = []
    for line in tame(text).split("\n"):
        if len(escape("\n".join([*lines, line]))) > SECTION - 10:
            lines.append("…")
            break
        lines.append(line)
    words = escape("\n".join(lines))
    return {"type": "section", "text": {"type": "mrkdwn", "text": words, "verbatim": True}}
