"""Parts of the adapter that the listeners share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from slack_bolt.response import BoltResponse

from bot.chat.chat_service import ChatService
from bot.core.ports import IncomingMessage
from bot.platforms.slack.messenger import SlackMessenger
from bot.platforms.slack.workspace.channel_names import ChannelNames
from bot.platforms.slack.workspace.memberships import Memberships
from bot.settings import BotSettings

Acknowledge = Callable[..., Awaitable[BoltResponse]]


@dataclass(frozen=True, slots=True)
class SlackContext:
    """Parts of the adapter that most listeners use."""

    settings: BotSettings
    service: ChatService
    messenger: SlackMessenger
    memberships: Memberships
    names: ChannelNames

    async def enqueue(self, message: IncomingMessage) -> None:
        """Store a question, and look up its channel's name."""
        if await self.service.receive(message):
            self.names.refresh(message.key)
