"""App Home tab: a field to ask in, the person's latest answers, and the channels they are a member of.

What is typed is asked like a direct message. A click on a suggested question asks the channel under which it
is listed, after another membership check. The answers go to the person's direct chat.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import aiohttp
from slack_sdk.errors import SlackClientError

from bot.chat.chat_service import ChatService
from bot.chat.notifications.notification_wording import (
    HOME_ASK,
    HOME_ASK_HINT,
    HOME_CHANNELS,
    HOME_LEAD,
    HOME_NO_CHANNELS,
    HOME_RECENT,
    HOME_TRY,
    HOME_UNKNOWN,
    RECENT_DIRECT,
)
from bot.core.plaintext import shorten, strip_hidden_chars
from bot.core.ports import ChannelOverview, IncomingMessage
from bot.platforms.slack.address import SLACK, SlackAddress
from bot.platforms.slack.blocks import MAX_SECTION_CHARS, Block, escape
from bot.platforms.slack.events import SLACK_ID, event_of, installation_of, is_outsider, message_url
from bot.platforms.slack.question_buttons import (
    ASK_ACTION,
    question_blocks,
    read_home_click,
    read_home_question,
)
from bot.platforms.slack.web_api import WebClients
from bot.platforms.slack.workspace.memberships import Memberships
from storage.chat_models import RecentQuestion
from storage.errors import StorageError
from storage.models import ChannelKey
from storage.task_group import cancel_and_wait

Json = Mapping[str, Any]

MAX_HEADER_CHARS = 150
# Recent questions shown.
MAX_RECENT = 3
MAX_RECENT_CHARS = 200
MAX_TYPED_CHARS = 1000

log = logging.getLogger(__name__)


class HomeVisit(NamedTuple):
    """A person who opened one of the app's tabs."""

    installation: str
    user: str
    # Conversation id of the person's direct chat with the bot.
    direct: str


def read_opened(envelope: Json, tab: str) -> HomeVisit | None:
    """Parse ``app_home_opened`` for a tab, ``home`` or ``messages``; None for others and for outsiders."""
    event, authorization = event_of(envelope)
    visit = HomeVisit(
        installation_of(authorization), *(str(event.get(one) or "") for one in ("user", "channel"))
    )
    if event.get("type") != "app_home_opened" or event.get("tab") != tab or is_outsider(envelope):
        return None
    return visit if all(map(SLACK_ID.fullmatch, visit)) else None


class AppHome:
    """Publishes a person's App Home each time it is opened."""

    def __init__(self, clients: WebClients, service: ChatService) -> None:
        """Ask ``service`` only for channels that the person is in: it checks no permissions itself."""
        self._clients = clients
        self._service = service
        self._memberships = Memberships(clients)
        self._publishing: dict[HomeVisit, asyncio.Task[None]] = {}

    def publish(self, visit: HomeVisit) -> None:
        """Publish a person's home in the background, unless that is in progress."""
        if visit not in self._publishing:
            task = asyncio.create_task(self._publish(visit), name="app-home")
            self._publishing[visit] = task
            task.add_done_callback(lambda _: self._publishing.pop(visit, None))

    async def read_click(self, payload: Json) -> IncomingMessage | None:
        """Return the question of a click in a home; None for a non-member, whose home is published again."""
        if typed := read_home_question(payload):
            return typed
        message = read_home_click(payload)
        if message is None:
            return None
        address = SlackAddress.from_json(message.address)
        visit = HomeVisit(address.installation, address.user, address.channel)
        if await self._memberships.is_member(message.key, visit.user):
            return message
        self.publish(visit)
        return None

    async def aclose(self) -> None:
        """Cancel publications in progress."""
        await cancel_and_wait(*self._publishing.values())

    async def _publish(self, visit: HomeVisit) -> None:
        # If Slack or SQL fails, show help only: no cached memberships are used.
        overviews: Sequence[ChannelOverview] | None = None
        recent: list[str] = []
        try:
            names = await self._memberships.channels_of(visit.installation, visit.user)
            read = await self._service.overviews(names.keys())
            overviews = [_named(one, names[one.tenant]) for one in read]
            names[ChannelKey(SLACK, visit.installation, visit.direct).tenant] = RECENT_DIRECT
            asked = await self._service.recent_of(visit.user, names.keys(), MAX_RECENT)
            recent = [_recent(one, names[one.tenant]) for one in asked]
        except (SlackClientError, aiohttp.ClientError, TimeoutError, StorageError) as error:
            log.warning("App Home content unavailable, showing help only: %s", type(error).__name__)
        try:
            view = home_view(overviews, recent) | {"private_metadata": visit.direct}
            client = await self._clients.client_for(visit.installation)
            await client.views_publish(user_id=visit.user, view=view)
        except (SlackClientError, aiohttp.ClientError, TimeoutError) as error:
            log.warning("publishing App Home failed: %s", type(error).__name__)


def _named(overview: ChannelOverview, name: str) -> ChannelOverview:
    """Return the overview, with Slack's name for a channel that has none stored."""
    return replace(overview, name=name) if overview.name == overview.tenant else overview


def home_view(overviews: Sequence[ChannelOverview] | None, recent: Sequence[str] = ()) -> dict[str, Any]:
    """Return the ``home`` view, within Slack's limits.

    Args:
        overviews: the person's channels; None: the memberships are unknown.
    """
    blocks = [_header("Footnote"), _asking(), _context(HOME_LEAD)]
    if recent:
        blocks.append(_mrkdwn("\n".join([HOME_RECENT, *(f"• {question}" for question in recent)])))
    if not overviews:
        blocks.append(_section(HOME_UNKNOWN if overviews is None else HOME_NO_CHANNELS))
    else:
        blocks.append(_section(HOME_CHANNELS))
    for overview in overviews or ():
        blocks += [{"type": "divider"}, _header(overview.name), _section(overview.documents)]
        blocks += question_blocks(overview.questions, overview.tenant, HOME_TRY)
    return {"type": "home", "blocks": blocks}


def _recent(asked: RecentQuestion, channel: str) -> str:
    """Return a question with its channel, linked to its answer if that is no ephemeral message."""
    text = escape(strip_hidden_chars(shorten(asked.text, MAX_RECENT_CHARS))).replace("|", "¦")
    url = message_url(asked.address, asked.message)
    return f"{f'<{url}|{text}>' if url else text} ({escape(strip_hidden_chars(channel))})"


def _asking() -> Block:
    """Return the field in which a question is typed; Enter sends it."""
    field = {
        "type": "plain_text_input",
        "action_id": ASK_ACTION,
        "max_length": MAX_TYPED_CHARS,
        "placeholder": _plain(HOME_ASK_HINT),
        "dispatch_action_config": {"trigger_actions_on": ["on_enter_pressed"]},
    }
    return {
        "type": "input",
        "block_id": ASK_ACTION,
        "dispatch_action": True,
        "label": _plain(HOME_ASK),
        "element": field,
    }


def _plain(text: str) -> Block:
    return {"type": "plain_text", "text": text, "emoji": False}


def _context(text: str) -> Block:
    return {"type": "context", "elements": [_plain(text)]}


def _mrkdwn(text: str) -> Block:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text, "verbatim": True}}


def _header(text: str) -> Block:
    return {
        "type": "header",
        "text": {
            "type": "plain_text",
            "text": shorten(strip_hidden_chars(text), MAX_HEADER_CHARS),
            "emoji": False,
        },
    }


def _section(text: str) -> Block:
    """Return a section block, truncated at a line break if too long."""
    lines: list[str] = []
    for line in strip_hidden_chars(text).split("\n"):
        if len(escape("\n".join([*lines, line]))) > MAX_SECTION_CHARS - 10:
            lines.append("…")
            break
        lines.append(line)
    return _mrkdwn(escape("\n".join(lines)))
