"""Suggested prompts of a direct chat (assistant.threads.setSuggestedPrompts).

They are best-effort: a failure, or a workspace without them, costs no answer.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

import aiohttp
from slack_sdk.errors import SlackClientError

from bot.chat.chat_service import ChatService
from bot.chat.notifications.notification_wording import ASK_HELP, HELP_PROMPT, TRY_ASKING
from bot.core.plaintext import shorten, strip_hidden_chars
from bot.platforms.slack.web_api import WebClients
from storage.errors import StorageError
from storage.task_group import cancel_and_wait

# Slack's limit for suggested prompts.
MAX_PROMPTS = 4
MAX_TITLE_CHARS = 75

log = logging.getLogger(__name__)


class SuggestedPrompts:
    """Sets the prompts of a direct chat each time it is opened."""

    def __init__(self, clients: WebClients, service: ChatService) -> None:
        self._clients = clients
        self._service = service
        self._setting: dict[str, asyncio.Task[None]] = {}

    def open(self, installation: str, direct: str) -> None:
        """Set the prompts of a chat in the background, unless that is in progress."""
        if direct not in self._setting:
            task = asyncio.create_task(self._set(installation, direct), name="suggested-prompts")
            self._setting[direct] = task
            task.add_done_callback(lambda _: self._setting.pop(direct, None))

    async def aclose(self) -> None:
        """Cancel updates in progress."""
        await cancel_and_wait(*self._setting.values())

    async def _set(self, installation: str, direct: str) -> None:
        try:
            client = await self._clients.client_for(installation)
            questions = await self._service.direct_questions(installation)
            # Without thread_ts: given one, Slack does not set the prompts of an agent.
            await client.assistant_threads_setSuggestedPrompts(
                channel_id=direct, title=TRY_ASKING, prompts=prompts(questions)
            )
        except (SlackClientError, aiohttp.ClientError, TimeoutError, StorageError) as error:
            log.info("setting suggested prompts failed: %s", type(error).__name__)


def prompts(questions: Sequence[str]) -> list[dict[str, str]]:
    """Return suggested questions and, last, a help prompt: each with its title and the message it sends."""
    asked = [
        {"title": shorten(strip_hidden_chars(one), MAX_TITLE_CHARS), "message": one} for one in questions
    ]
    return [*asked[: MAX_PROMPTS - 1], {"title": HELP_PROMPT, "message": ASK_HELP}]
