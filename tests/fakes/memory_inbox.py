"""The inbox that a door under test commits to: it keeps messages as the real one does, in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from bot.core.models import Answer, Language
from bot.core.ports import IncomingMessage, Messenger
from storage.models import ChannelKey


class Door(Protocol):
    """A platform's door, as far as an answer needs it."""

    @property
    def messenger(self) -> Messenger:
        """What posts on this platform."""


@dataclass
class MemoryInbox:
    """Keeps a message once, however many events bring it; with a door it answers them."""

    answer_to: Callable[[IncomingMessage], Answer]
    door: Door | None = None
    kept: dict[str, IncomingMessage] = field(default_factory=dict)
    arrivals: int = 0
    failure: Exception | None = None
    """Raised instead of keeping anything."""
    gate: asyncio.Event | None = None
    """Nothing is kept before it is set."""
    joined: list[ChannelKey] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    """What channels are called, by conversation."""
    answering: list[asyncio.Task[None]] = field(default_factory=list)

    async def receive(self, message: IncomingMessage) -> bool:
        """Commit; when a door is there, answer in the background."""
        self.arrivals += 1
        if self.gate:
            await self.gate.wait()
        if self.failure:
            raise self.failure
        if message.message_key in self.kept:
            return False
        if message.is_unaddressed and not self._takes_part(message):
            return False
        self.kept[message.message_key] = message
        if self.door:
            self.answering.append(asyncio.create_task(self._answer(self.door, message)))
        return True

    async def join(self, key: ChannelKey, name: str | None = None, **_: Any) -> None:
        """Keep that we joined a channel."""
        if self.failure:
            raise self.failure
        self.joined.append(key)

    async def name_channel(self, key: ChannelKey, name: str) -> None:
        """Keep what a channel is called."""
        self.names[key.conversation] = name

    def _takes_part(self, message: IncomingMessage) -> bool:
        place = (message.key, message.thread)
        return any((one.key, one.thread) == place for one in self.kept.values())

    async def _answer(self, door: Door, message: IncomingMessage) -> None:
        placed = await door.messenger.place(message.address, Language.ENGLISH)
        await door.messenger.deliver(message.address, placed, self.answer_to(message))
