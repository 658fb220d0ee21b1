"""Placeholders: the first visible reply to a question, exactly one for each, whatever crashes.

The intent to post is stored first, then the placeholder is posted, then its message reference is stored.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from bot.chat.conversation.inbox_replies import language_of_item
from bot.chat.conversation.queue_limits import PostRateLimiter, WaitEstimator
from bot.core.errors import DeliveryError, DeliveryUnclear
from bot.core.ports import Messenger
from storage.chat.inbox import Inbox
from storage.chat_models import InboxItem
from storage.crash_points import reach
from storage.errors import MessageTaken
from storage.models import Platform
from storage.task_group import finish_within

# How long shutdown waits for a post in flight: without a stored reference the placeholder stays forever.
POST_SECONDS = 5


@contextlib.asynccontextmanager
async def delivery_deadline(lease_seconds: float) -> AsyncIterator[None]:
    """Time out platform calls after half a lease, with DeliveryUnclear, as they may have succeeded."""
    try:
        async with asyncio.timeout(lease_seconds / 2):
            yield
    except TimeoutError as error:
        raise DeliveryUnclear("platform timed out") from error


class Placeholders:
    """Posts placeholders, and finds those that an earlier attempt may have posted."""

    def __init__(
        self,
        inbox: Inbox,
        messengers: Mapping[Platform, Messenger],
        waits: WaitEstimator,
        lease_seconds: float,
        pace: PostRateLimiter,
    ) -> None:
        """Create the service; the arguments are those of ``Conversation``.

        ``waits`` words how long a queued question may take.
        """
        self._inbox = inbox
        self._messengers = messengers
        self._waits = waits
        self._lease_seconds = lease_seconds
        self.pace = pace

    async def claim(self, owner: str, limit: int) -> Sequence[InboxItem]:
        """Claim questions without a visible reply; each must be passed to ``post_queued``.

        Raises:
            storage.errors.DatabaseUnavailable: the database is unavailable.
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
        """Post that others come first, then release the question.

        Raises: as ``place``.
        """
        await finish_within(POST_SECONDS, self._post(item, is_queued=True))

    async def place(self, item: InboxItem) -> dict[str, Any]:
        """Return the reference of the placeholder: of one that an earlier attempt posted, or a new one.

        Raises:
            DeliveryError: the platform refused or did not respond.
            storage.errors.LeaseLost: another worker has the question.
            storage.errors.DatabaseUnavailable: the reference could not be stored.
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
        """Post the placeholder, and store its reference before anything else happens."""
        messenger, language = self._messengers[item.platform], language_of_item(item)
        queued = self._waits.sentence(item, language) if is_queued else ""
        reach("before-placeholder")
        try:
            async with delivery_deadline(self._lease_seconds):
                message = await messenger.post_placeholder(
                    item.address, language, queued=queued, asked=item.text
                )
        except DeliveryUnclear:
            raise
        except DeliveryError as error:
            if error.retry_after is not None:
                self.pace.refused(item.channel_id, error.retry_after)
            await self._inbox.mark_unposted(item)
            raise
        reach("amid-placeholder")
        await self._keep(item, message, is_released=is_queued)
        reach("after-placeholder")
        return message

    async def _keep(self, item: InboxItem, message: dict[str, Any], *, is_released: bool = False) -> None:
        """Store the reference; if another question has that message, ours must be searched for again.

        The unclaimed streams of a thread are interchangeable: there are as many as questions.
        """
        try:
            await self._inbox.mark_placed(item, message, is_released=is_released)
        except MessageTaken as error:
            raise DeliveryUnclear("message belongs to another question") from error
