"""Placeholders: the first sign that a question was heard, one for each, whatever crashes.

What is about to be posted is kept first, then posted, then what names it is kept.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from bot.core.conversation.inbox_replies import language_of_item
from bot.core.conversation.queue_limits import PostPace, QueueWaits
from bot.core.errors import DeliveryError, DeliveryUnclear
from bot.core.ports import Messenger
from storage.chat.inbox import Inbox
from storage.chat_models import InboxItem
from storage.crash_points import reach
from storage.errors import MessageTaken
from storage.models import Platform
from storage.task_group import finish_within

# How long a placeholder that is being posted may hold up our end: one that nobody named stays for ever.
POST_SECONDS = 5


@contextlib.asynccontextmanager
async def delivery_deadline(lease_seconds: float) -> AsyncIterator[None]:
    """Yield a platform that does not answer while a question is surely ours may have done anything."""
    try:
        async with asyncio.timeout(lease_seconds / 2):
            yield
    except TimeoutError as error:
        raise DeliveryUnclear("the platform did not answer in time") from error


class Placeholders:
    """Posts placeholders, and finds those that an earlier try may have posted."""

    def __init__(
        self,
        inbox: Inbox,
        messengers: Mapping[Platform, Messenger],
        waits: QueueWaits,
        lease_seconds: float,
        pace: PostPace,
    ) -> None:
        """The arguments are those of ``Conversation``; ``waits`` says what those who wait are told."""
        self._inbox = inbox
        self._messengers = messengers
        self._waits = waits
        self._lease_seconds = lease_seconds
        self.pace = pace

    async def claim(self, owner: str, limit: int) -> Sequence[InboxItem]:
        """Questions that nobody was shown a reply to, each of which is to be given to ``post_queued``.

        Raises:
            storage.errors.DatabaseUnavailable: nobody knows just now.
        """
        return await self._inbox.claim_unseen(
            owner,
            self._lease_seconds,
            tuple(self._messengers),
            limit,
            closed_channels=self.pace.closed_channels(),
            may_post=self.pace.take,
        )

    async def post_queued(self, item: InboxItem) -> None:
        """Show that others are first, then let go of the question.

        Raises: as ``place``.
        """
        await finish_within(POST_SECONDS, self._post(item, is_queued=True))

    async def place(self, item: InboxItem) -> dict[str, Any]:
        """What names the placeholder: it is found when an earlier try may have posted it, else posted now.

        Raises:
            DeliveryError: the platform refused, or did not answer.
            storage.errors.LeaseLost: another worker has the question.
            storage.errors.DatabaseUnavailable: it could not be kept.
        """
        if item.is_posting:
            others = await self._inbox.other_messages(item)
            async with delivery_deadline(self._lease_seconds):
                message = await self._messengers[item.platform].find_placeholder(item.address, others)
            if message is not None:
                await self._keep(item, message)
                return message
        self.pace.take(item.channel_id)
        await self._inbox.mark_posting(item)
        return await finish_within(POST_SECONDS, self._post(item, is_queued=False))

    async def _post(self, item: InboxItem, *, is_queued: bool) -> dict[str, Any]:
        """Post it, and keep what names it before anything else happens."""
        messenger, language = self._messengers[item.platform], language_of_item(item)
        queued = self._waits.sentence(item, language) if is_queued else ""
        reach("before-placeholder")
        try:
            async with delivery_deadline(self._lease_seconds):
                message = await messenger.place(item.address, language, queued=queued, asked=item.text)
        except DeliveryUnclear:
            raise
        except DeliveryError as error:
            if error.retry_after is not None:
                self.pace.refused(item.channel_id, error.retry_after)
            await self._inbox.mark_unposted(item)
            raise
        reach("amid-placeholder")
        await self._keep(item, message, is_let_go=is_queued)
        reach("after-placeholder")
        return message

    async def _keep(self, item: InboxItem, message: dict[str, Any], *, is_let_go: bool = False) -> None:
        """Keep what names the placeholder; where another question has taken it, ours is searched for again.

        Streams of one thread that nobody has named stand for each other: there are as many as questions.
        """
        try:
            await self._inbox.mark_placed(item, message, is_let_go=is_let_go)
        except MessageTaken as error:
            raise DeliveryUnclear("another question has that message") from error
