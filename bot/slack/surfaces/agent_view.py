"""What Slack shows around a direct chat with an agent: prompts to choose from, and that we are at work.

Both are decorations: a refusal, or a Slack without them, costs neither an answer nor more than a second, and
after one nothing of the kind is tried for a while.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

import aiohttp
from slack_sdk.errors import SlackClientError
from slack_sdk.web.async_client import AsyncWebClient

from bot.core.models import Language
from bot.core.notifications.notification_wording import ASK_HELP, HELP_PROMPT, TRY_ASKING
from bot.core.plaintext import shorten, tame
from bot.core.ports import ReadQuestions
from bot.core.wording import reply_words
from bot.slack.web_api import WebClients
from storage.clock import steady_seconds
from storage.errors import StorageError
from storage.task_group import cancel_and_wait

Json = dict[str, Any]

MAX_PROMPTS = 4
"""Slack's limit."""
MAX_TITLE_CHARS = 75
SECONDS = 1.0
"""Longest wait for a decoration."""
QUIET_SECONDS = 300.0
"""No status is tried for so long after Slack refused one."""

log = logging.getLogger(__name__)


class SuggestedPrompts:
    """Sets the prompts of a direct chat whenever its person opens it."""

    def __init__(self, clients: WebClients, read_questions: ReadQuestions) -> None:
        """``read_questions`` reads tried questions of what direct chats are asked about."""
        self._clients = clients
        self._read_questions = read_questions
        self._setting: dict[str, asyncio.Task[None]] = {}

    def open(self, installation: str, direct: str) -> None:
        """Have the prompts of a chat set soon; returns at once."""
        if direct not in self._setting:
            task = asyncio.create_task(self._set(installation, direct), name="suggested-prompts")
            self._setting[direct] = task
            task.add_done_callback(lambda _: self._setting.pop(direct, None))

    async def aclose(self) -> None:
        """Set no more."""
        await cancel_and_wait(*self._setting.values())

    async def _set(self, installation: str, direct: str) -> None:
        """Without ``thread_ts``: with it, Slack sets none of an agent's."""
        try:
            client = await self._clients.of(installation)
            await client.assistant_threads_setSuggestedPrompts(
                channel_id=direct, title=TRY_ASKING, prompts=prompts(await self._read_questions())
            )
        except (SlackClientError, aiohttp.ClientError, TimeoutError, StorageError) as error:
            log.info("a direct chat has no prompts: %s", type(error).__name__)


def prompts(questions: Sequence[str]) -> list[dict[str, str]]:
    """Tried questions, then one for help: each with what it says on its face and what it asks."""
    asked = [{"title": shorten(tame(one), MAX_TITLE_CHARS), "message": one} for one in questions]
    return [*asked[: MAX_PROMPTS - 1], {"title": HELP_PROMPT, "message": ASK_HELP}]


class ChatStatus:
    """Says in a direct chat that its question is being answered."""

    def __init__(self) -> None:
        self._quiet_until = 0.0

    async def searching(self, client: AsyncWebClient, address: Json, language: Language) -> None:
        """Show it beside the question; Slack takes it away after two minutes."""
        await self._set(client, address, reply_words(language).searching)

    async def clear(self, client: AsyncWebClient, address: Json) -> None:
        """Show nothing any more."""
        await self._set(client, address, "")

    async def _set(self, client: AsyncWebClient, address: Json, status: str) -> None:
        is_typed = address["channel"].startswith("D") and "asked" not in address
        if not is_typed or steady_seconds() < self._quiet_until:
            return
        try:
            async with asyncio.timeout(SECONDS):
                thread = address["thread"] or address["ts"]
                await client.assistant_threads_setStatus(
                    channel_id=address["channel"], thread_ts=thread, status=status
                )
        except (SlackClientError, aiohttp.ClientError, TimeoutError) as error:
            self._quiet_until = steady_seconds() + QUIET_SECONDS
            log.info("a direct chat shows no status: %s", type(error).__name__)
