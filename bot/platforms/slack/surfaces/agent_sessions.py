"""Slack agent sessions: title and "working" status of a thread (agents.sessions.setStatus, .rename).

In channels a stream opens and ends the session. In direct chats we open one per typed question and title a
new one after its question. Slack accepts that title only when the session begins, so a title that people
change later is not overwritten.

Sessions are best-effort: a failure, or a workspace without them, never costs an answer and delays it by a
second at most.
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
from bot.core.plaintext import shorten, strip_hidden_chars
from bot.platforms.slack.address import SlackAddress
from bot.platforms.slack.web_api import MAX_TRIES, call
from storage.chat_models import STREAM_KEY
from storage.clock import monotonic_seconds
from storage.lru_cache import LRUCache

Json = Mapping[str, Any]

MAX_TITLE_CHARS = 75
# Title of a session whose question was deleted; Slack accepts no empty one.
NAMELESS = "…"
# Timeouts: of best-effort calls, and of clearing the status, which otherwise shows "working" for an hour.
CALL_TIMEOUT_SECONDS, CLEAR_TIMEOUT_SECONDS = 1.0, 4.0
# Own rate limit, sessions per minute: Slack allows 50 calls, and each session needs two.
MAX_OPENED, OPENED_SECONDS = 20, 60.0
# Circuit breaker: no new session in a workspace for this long after Slack refused one there.
BREAKER_SECONDS = 300.0
# Installations whose refusal is remembered.
MAX_TRACKED = 1000

log = logging.getLogger(__name__)


class AgentSessions:
    """Opens, titles and clears agent sessions."""

    def __init__(
        self, *, call_timeout: float = CALL_TIMEOUT_SECONDS, clear_timeout: float = CLEAR_TIMEOUT_SECONDS
    ) -> None:
        self._call_timeout = call_timeout
        self._clear_timeout = clear_timeout
        # Per installation, because another workspace may support sessions; monotonic seconds.
        self._disabled_until: LRUCache[str, float] = LRUCache(MAX_TRACKED)
        # Monotonic seconds of the latest openings, per installation: a sliding window.
        self._opened: dict[str, deque[float]] = {}

    async def open(self, client: AsyncWebClient, address: SlackAddress, asked: str) -> bool:
        """Set the status "processing" for a question in a direct chat; True if it may have to be cleared."""
        if not address.is_typed_in_direct_chat or not self._may_open(address.installation):
            return False
        title = {"title": title_of(asked)} if title_of(asked) else {}
        return await self._call_best_effort(
            client.agents_sessions_setStatus,
            address.installation,
            channel_id=address.channel,
            thread_ts=address.session_thread,
            status="processing",
            initiator_user_id=address.user or None,
            **title,
        )

    async def set_title(self, client: AsyncWebClient, address: SlackAddress, asked: str) -> None:
        """Title a stream's session after the question that opened its thread."""
        if address.thread == address.ts and (title := title_of(asked)):
            await self._rename(client, address, title)

    async def clear_deleted(self, client: AsyncWebClient, address: SlackAddress, message: Json) -> None:
        """Clear the session of a deleted question and remove its words from the title."""
        is_named = STREAM_KEY in message and address.thread == address.ts
        if message.get("in_session"):
            await self.clear_status(client, address.channel, address.session_thread)
        if message.get("in_session") or is_named:
            await self._rename(client, address, NAMELESS)

    async def clear_status(self, client: AsyncWebClient, channel: str, thread: str) -> None:
        """Clear the "processing" status of a thread; failures are only logged."""
        try:
            async with asyncio.timeout(self._clear_timeout):
                place = {"channel_id": channel, "thread_ts": thread}
                await call(client.agents_sessions_setStatus, MAX_TRIES, **place, status="active")
        except (DeliveryError, TimeoutError) as error:
            log.info("could not clear Slack status: %s", error)

    def _may_open(self, installation: str) -> bool:
        now = monotonic_seconds()
        opened = self._opened.setdefault(installation, deque(maxlen=MAX_OPENED))
        if self._is_disabled(installation) or (
            len(opened) == MAX_OPENED and now - opened[0] < OPENED_SECONDS
        ):
            return False
        opened.append(now)
        return True

    async def _rename(self, client: AsyncWebClient, address: SlackAddress, title: str) -> None:
        if not self._is_disabled(address.installation):
            rename = client.agents_sessions_rename
            place = {"channel_id": address.channel, "thread_ts": address.session_thread}
            await self._call_best_effort(rename, address.installation, **place, title=title)

    def _is_disabled(self, installation: str) -> bool:
        return monotonic_seconds() < self._disabled_until.get(installation, 0.0)

    async def _call_best_effort(
        self, method: Callable[..., Awaitable[Any]], installation: str, **arguments: Any
    ) -> bool:
        """Call best-effort with a timeout; True if Slack did it, or may have."""
        try:
            async with asyncio.timeout(self._call_timeout):
                await method(**arguments)
        except (SlackClientError, aiohttp.ClientError, TimeoutError) as error:
            self._disabled_until[installation] = monotonic_seconds() + BREAKER_SECONDS
            log.info("agent sessions disabled temporarily: %s", type(error).__name__)
            return not isinstance(error, SlackClientError | aiohttp.ClientConnectorError)
        return True


def title_of(asked: str) -> str:
    """Return a question as a one-line title; '' if it has no text."""
    return shorten(strip_hidden_chars(asked), MAX_TITLE_CHARS)
