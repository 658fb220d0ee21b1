"""What announcing needs from the rooms around it; each is satisfied by shape, as in ``ports.py``."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from bot.core.announcement import Announcement
from storage.models import Channel, Chunk
from storage.notice_models import Notice, NoticeBatch, NoticeGroup


class NoticesPort(Protocol):
    """Keeps what should be told and what became of it.

    Every method raises ``storage.errors.DatabaseUnavailable`` when nothing can be kept.
    """

    async def waiting(self) -> Sequence[NoticeGroup]:
        """What waits and nobody is at, by channel."""

    async def claim(self, groups: Collection[NoticeGroup], lease_seconds: float) -> str:
        """Make a batch of all that waits in these groups; returns its id."""

    async def read(self, batch: str, most: int) -> Mapping[str, tuple[int, Sequence[Notice]]]:
        """By kind: how many notices of a batch are still true, and the first of them."""

    async def keep_questions(self, notice_id: int, questions: Sequence[str]) -> None:
        """Keep what was tried for one notice."""

    async def mark_posting(self, batch: str, told_in: int, lease_seconds: float) -> None:
        """Keep, before it happens, that a batch is being posted; LeaseLost when others tell it."""

    async def finish(self, batch: str, state: str) -> None:
        """End a batch as posted, kept or dropped."""

    async def give_back(self, batch: str) -> None:
        """Nothing of a batch was posted: it waits again."""

    async def put_off(self, batch: str, seconds: float) -> None:
        """Nobody knows whether a batch was posted: whoever comes later looks."""

    async def take_over(self, lease_seconds: float) -> NoticeBatch | None:
        """A batch whose posting nobody saw the end of, or None."""

    async def expire(self, before: datetime) -> int:
        """Keep for the console what waited too long."""

    async def last_address(self, channel_id: int) -> dict[str, Any] | None:
        """Where the newest question of a channel came from."""


class ReceiptChunks(Protocol):
    """Gives back chunks of readings."""

    async def chunks_at(self, places: Sequence[tuple[UUID, int]]) -> Sequence[Chunk]:
        """The chunk of each (reading, ordinal)."""


class Announcer(Protocol):
    """One platform's way to speak first; ``place`` is what that platform made of a channel."""

    def announcing_place(self, channel: Channel, address: dict[str, Any] | None) -> dict[str, Any] | None:
        """Where in a channel it would speak; None while that is not known.

        Args:
            channel: the channel.
            address: where the channel's newest question came from, if there ever was one.
        """

    async def announce(self, place: dict[str, Any], announcement: Announcement) -> None:
        """Post one message that nobody asked for.

        Raises:
            bot.core.errors.ChannelClosed: never in this channel.
            bot.core.errors.DeliveryError: the platform refused, or did not answer.
        """

    async def has_announced(self, place: dict[str, Any], announcement: str, since: datetime) -> bool | None:
        """Whether the announcement of this id stands there; None from a platform that cannot look.

        Raises:
            bot.core.errors.DeliveryError: the platform did not let us look.
        """
