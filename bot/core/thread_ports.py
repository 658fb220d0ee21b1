"""What understanding a question in its thread needs from the rooms around it; satisfied by shape."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from bot.core.exchange import Reply
from storage.memory_models import NewTurn, Turn


class ThreadMemoryPort(Protocol):
    """Remembers what was asked and answered in each thread of each channel."""

    async def recall(self, channel_id: int, thread: str, asked_at: datetime) -> tuple[Turn, ...]:
        """The last turns before a question of this thread, newest last; few enough to be read at once.

        Raises:
            storage.errors.DatabaseUnavailable: nothing can be recalled just now.
        """

    async def keep(self, turn: NewTurn) -> None:
        """Remember a turn, once.

        Raises:
            storage.errors.DatabaseUnavailable: nothing can be kept just now.
        """


class Expiring(Protocol):
    """Keeps things for a while only."""

    async def delete_expired(self) -> int:
        """Erase some of what has been kept long enough; returns how much that was.

        Raises:
            storage.errors.DatabaseUnavailable: nothing can be erased just now.
        """


class QueryRewriter(Protocol):
    """Words a follow-up question so that it can be understood without its thread."""

    async def rewrite(self, question: str, history: Sequence[Turn]) -> str:
        """The question as one would ask it alone; itself when it needs nothing of the thread.

        Raises:
            bot.core.errors.ModelError: there is no rewriting that can be trusted.
        """


class TextModel(Protocol):
    """A language model that writes a short text."""

    async def write(self, instructions: str, request: str, *, seconds: float, tokens: int) -> Reply:
        """What it writes, whole.

        Raises:
            bot.core.errors.ModelError: it failed, was late or was cut off.
        """
