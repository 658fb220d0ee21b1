"""Slack's agent sessions: what a thread is called in people's lists, and whether we are at work in it.

A session belongs to a thread. In a channel a stream opens and ends it by itself. In a direct chat we do, for
each question that somebody types there; a session that is new is named after its question. Slack takes this
title only when a session begins, so whatever people call it later stays.

All of it is a decoration: a refusal, or a Slack without sessions, costs no answer and a moment at most.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import aiohttp
from slack_sdk.errors import SlackClientError
from slack_sdk.web.async_client import AsyncWebClient

from bot.core.errors import DeliveryError
from bot.core.plaintext import shorten, tame
from bot.slack.web_api import MAX_TRIES, call
from storage.chat_models import STREAM, UPLOAD
from storage.clock import steady_seconds
from storage.recent_items import RecentItems

Json = Mapping[str, Any]

MAX_TITLE_CHARS = 75
# The title of a session whose question was deleted; Slack takes no empty one.
NAMELESS = "…"
# Longest wait for what nobody misses, and for the end of a session: else it says so for an hour.
DECORATION_SECONDS, REST_SECONDS = 1.0, 4.0
# Sessions that are begun within a minute: Slack takes 50 such calls, and each wants a second one.
MAX_OPENED, OPENED_SECONDS = 20, 60.0
# No session is begun for so long after Slack refused one of the same workspace.
QUIET_SECONDS = 300.0
# Installations of which that is known.
MAX_QUIET = 1000

log = logging.getLogger(__name__)


class AgentSessions:
    """Begins sessions, names them, and ends them."""

    def __init__(
        self, *, decoration_seconds: float = DECORATION_SECONDS, rest_seconds: float = REST_SECONDS
    ) -> None:
        self._decoration_seconds = decoration_seconds
        self._rest_seconds = rest_seconds
        # By installation: what one workspace refuses, another one may take.
        self._quiet_until: RecentItems[str, float] = RecentItems(MAX_QUIET)
        # When sessions were begun, the last of them, by installation.
        self._opened: dict[str, deque[float]] = {}

    async def open(self, client: AsyncWebClient, address: Json, asked: str) -> bool:
        """Say in a direct chat that its question is being answered; whether it may have to be ended."""
        if not is_typed_to_us_alone(address) or not self._may_open(_installation(address)):
            return False
        title = {"title": title_of(asked)} if title_of(asked) else {}
        return await self._decorate(
            client.agents_sessions_setStatus,
            _installation(address),
            channel_id=address["channel"],
            thread_ts=thread_of(address),
            status="processing",
            initiator_user_id=address.get("user"),
            **title,
        )

    async def name(self, client: AsyncWebClient, address: Json, asked: str) -> None:
        """Name the session that a stream has begun after the question that opened its thread."""
        if address["thread"] == address["ts"] and (title := title_of(asked)):
            await self._rename(client, address, title)

    async def forget(self, client: AsyncWebClient, address: Json, message: Json) -> None:
        """End the session of a deleted question; its words leave the title that it may have given."""
        is_named = STREAM in message and address["thread"] == address["ts"]
        if message.get("in_session"):
            await self.rest(client, address["channel"], thread_of(address))
        if message.get("in_session") or is_named:
            await self._rename(client, address, NAMELESS)

    async def rest(self, client: AsyncWebClient, channel: str, thread: str) -> None:
        """Say that we are not at work in a thread any more."""
        try:
            async with asyncio.timeout(self._rest_seconds):
                place = {"channel_id": channel, "thread_ts": thread}
                await call(client.agents_sessions_setStatus, MAX_TRIES, **place, status="active")
        except (DeliveryError, TimeoutError) as error:
            log.info("a session may say for a while that we are at work: %s", error)

    def _may_open(self, installation: str) -> bool:
        now = steady_seconds()
        opened = self._opened.setdefault(installation, deque(maxlen=MAX_OPENED))
        if self._is_quiet(installation) or (len(opened) == MAX_OPENED and now - opened[0] < OPENED_SECONDS):
            return False
        opened.append(now)
        return True

    async def _rename(self, client: AsyncWebClient, address: Json, title: str) -> None:
        installation = _installation(address)
        if not self._is_quiet(installation):
            place = {"channel_id": address["channel"], "thread_ts": thread_of(address)}
            await self._decorate(client.agents_sessions_rename, installation, **place, title=title)

    def _is_quiet(self, installation: str) -> bool:
        return steady_seconds() < self._quiet_until.get(installation, 0.0)

    async def _decorate(
        self, method: Callable[..., Awaitable[Any]], installation: str, **arguments: Any
    ) -> bool:
        """True if Slack did it, or may have."""
        try:
            async with asyncio.timeout(self._decoration_seconds):
                await method(**arguments)
        except (SlackClientError, aiohttp.ClientError, TimeoutError) as error:
            self._quiet_until[installation] = steady_seconds() + QUIET_SECONDS
            log.info("no agent sessions for a while: %s", type(error).__name__)
            return not isinstance(error, SlackClientError | aiohttp.ClientConnectorError)
        return True


def is_typed_to_us_alone(address: Json) -> bool:
    """True if a question was typed in a direct chat."""
    return str(address["channel"]).startswith("D") and "asked" not in address and UPLOAD not in address


def thread_of(address: Json) -> str:
    """The thread that a question's session belongs to; in the chat itself the question would open it."""
    return str(address["thread"] or address["ts"])


def title_of(asked: str) -> str:
    """Return a question as a title, on one line; '' where nothing was asked in words."""
    return shorten(tame(asked), MAX_TITLE_CHARS)


def _installation(address: Json) -> str:
    return str(address["key"]).partition(":")[0]
