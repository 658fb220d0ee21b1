"""Notifier: batches pending notices and posts each batch once, to a channel or to the admins.

The loop debounces: it waits until a channel has been quiet for some seconds and none of its files is still
being read, and makes one batch of all its pending notices. Every step is stored before the next begins, as
``conversation.py`` does with answers.

A notice goes to its own channel, to the admins' channel, or to the console only; a document's name is never
posted to a third channel.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from bot.chat.notifications.gap_digest import GapDigest
from bot.chat.notifications.receipts import ReceiptBuilder
from bot.chat.notifications.usage_summary import UsageSummary
from bot.core.errors import ChannelClosed, DeliveryError, DeliveryUnclear
from bot.core.ports import Announcement, Announcer
from storage.chat.channels import Channels
from storage.chat.notifications import Notices
from storage.chat.uploads import Uploads
from storage.chat_models import CHAT_KEY, NoticeAudience, NoticeBatch, NoticeGroup
from storage.clock import utc_now
from storage.errors import raised_at
from storage.models import Channel, Platform

_log = logging.getLogger(__name__)

# Notices that could not be posted by then are shown in the console only.
NOTICE_EXPIRY = timedelta(days=7)
POLL_SECONDS, LEASE_SECONDS = 2.0, 120.0
# Delay before an unclear post is searched for in the channel.
UNCLEAR_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Route:
    """Destination of notices."""

    channel_id: int
    # False: shown in that channel's console only.
    is_posted: bool
    # Key of a message of its own, posted without debouncing; '' for receipts, which share a message.
    message_key: str = ""
    # Upload under whose message it is posted.
    upload: int | None = None


@dataclass(frozen=True, slots=True)
class Routes:
    """Routing settings."""

    # Destination of receipts for new and unreadable files: channel, admin or off.
    receipts: str
    # Admins' channel: gets problems of folders and web pages, and receipts if ``receipts`` is admin.
    admin: Channel | None
    # Destination of weekly digests: channel, admin or off.
    digests: str = "off"

    def route(self, group: NoticeGroup) -> Route:
        """Return the route of a group of notices."""
        if group.audience is NoticeAudience.NEWCOMERS:
            return Route(group.channel_id, is_posted=True, message_key="welcome")
        if group.upload is not None:  # the uploader waits for this receipt, whatever ``receipts`` says
            return Route(group.channel_id, True, f"upload {group.upload}", group.upload)
        if group.audience is NoticeAudience.OWNERS:
            target = {"channel": group.channel_id, "admin": self.admin.id if self.admin else None}
            found = target.get(self.digests)
            return Route(found or group.channel_id, found is not None, f"digest {group.channel_id}")
        is_for_admins = group.audience is NoticeAudience.ADMINS
        if not is_for_admins and self.receipts == "channel":
            return Route(group.channel_id, is_posted=True)
        is_wanted = is_for_admins or self.receipts == "admin"
        if self.admin is None or not is_wanted:
            return Route(group.channel_id, is_posted=False)
        return Route(self.admin.id, is_posted=True)

    def sort(self, groups: Iterable[NoticeGroup]) -> list[tuple[Route, Sequence[NoticeGroup]]]:
        """Group by route: the groups of one route share a message."""
        sorted_groups: dict[Route, list[NoticeGroup]] = {}
        for group in groups:
            sorted_groups.setdefault(self.route(group), []).append(group)
        return list(sorted_groups.items())


@dataclass(frozen=True, slots=True)
class NotificationTiming:
    """Debounce and retry intervals, in seconds."""

    # Debounce: a batch is due when nothing was added for this long and the channel's files have been read,
    debounce: float = 8
    # or when its oldest notice has waited this long.
    max_delay: float = 300
    # Pause of a channel after a failure without a Retry-After.
    retry_delay: float = 30


class Notifier:
    """Background loop that posts pending notices as announcements."""

    def __init__(
        self,
        notices: Notices,
        channels: Channels,
        receipt_builder: ReceiptBuilder,
        *,
        routes: Routes,
        announcers: Mapping[Platform, Announcer],
        pace: NotificationTiming | None = None,
        digest: GapDigest | None = None,
        summary: UsageSummary | None = None,
        uploads: Uploads | None = None,
        may_have_work: Callable[[], bool] = lambda: True,
    ) -> None:
        """Build the loop; notices of a platform without an announcer stay pending.

        ``uploads`` resolves where each file was uploaded; None: receipts are posted outside threads.
        ``may_have_work`` returns False while a tick would find nothing to do.
        """
        self._uploads = uploads
        self._digest = digest
        self._summary = summary
        self._notices = notices
        self._channels = channels
        self._receipt_builder = receipt_builder
        self._routes = routes
        self._announcers = announcers
        self._pace = pace or NotificationTiming()
        self._held_until: dict[int, float] = {}
        self._may_have_work = may_have_work
        self._is_unfinished = False
        self._stopping = asyncio.Event()

    async def run(self) -> None:
        """Post notices until ``stop``; an exception is logged and the loop continues."""
        while not self._stopping.is_set():
            try:
                if self._may_have_work() or self._is_unfinished:
                    await self.tick()
            except Exception as error:  # the loop serves all channels: one failure must not end it
                _log.warning("notifier tick failed, retrying: %s", raised_at(error))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), POLL_SECONDS)

    def stop(self) -> None:
        """End ``run`` after the post in progress."""
        self._stopping.set()

    async def tick(self) -> None:
        """Resume batches left behind by a crash, then post the batches that are due."""
        self._is_unfinished = True
        if self._digest:
            await self._digest.record()
        if self._summary:
            await self._summary.record()
        while (batch := await self._notices.claim_interrupted(LEASE_SECONDS)) is not None:
            await self._recover_batch(batch)
        waiting, expired = await self._notices.waiting(), utc_now() - NOTICE_EXPIRY
        if any(group.oldest < expired for group in waiting):
            await self._notices.expire(expired)
            waiting = await self._notices.waiting()
        is_collecting = False
        for route, groups in self._routes.sort(waiting):
            if not self._is_due(route, groups):
                is_collecting = True
            elif not self._stopping.is_set():
                await self._notify(route, groups)
        self._is_unfinished = is_collecting

    def _is_due(self, route: Route, groups: Sequence[NoticeGroup]) -> bool:
        if time.monotonic() < self._held_until.get(route.channel_id, 0):
            return False
        if route.message_key:
            return True
        now = utc_now()
        quiet = (now - max(group.newest for group in groups)).total_seconds()
        waited = (now - min(group.oldest for group in groups)).total_seconds()
        # A notice far in the future comes from a clock that was wrong: do not wait for it.
        is_of_wrong_clock = quiet < -self._pace.max_delay
        if waited >= self._pace.max_delay or is_of_wrong_clock:
            return True
        return quiet >= self._pace.debounce and not any(group.has_unread_files for group in groups)

    async def _notify(self, route: Route, groups: Sequence[NoticeGroup]) -> None:
        target = await self._target(route)
        if time.monotonic() < self._held_until.get(target.id, 0):
            return
        is_awaited = route.message_key == "welcome" or route.upload is not None
        is_wanted = is_awaited or not self._is_private(target)
        if route.is_posted and not target.is_local and is_wanted:
            if (place := await self._place(target, route.upload)) is not None:
                await self._announce(target, place, groups)
            return
        # Console only: nothing is posted.
        batch = await self._notices.claim(groups, LEASE_SECONDS)
        async with self._given_back_on_failure(batch):
            if route.is_posted:
                await self._receipt_builder.prepare_for_console(batch)
            await self._notices.finish(batch, "kept")

    async def _target(self, route: Route) -> Channel:
        """Return the channel to post in; an upload to a library gets its receipt in the uploading chat."""
        address = await self._uploads.address(route.upload) if self._uploads and route.upload else None
        return await self._channels.get((address or {}).get(CHAT_KEY, route.channel_id))

    def _is_private(self, target: Channel) -> bool:
        """True if it is a direct chat other than the admins' channel: no unrequested receipts go there."""
        return target.is_direct and not (self._routes.admin and self._routes.admin.id == target.id)

    async def _announce(self, target: Channel, place: dict[str, Any], groups: Sequence[NoticeGroup]) -> None:
        """Claim the groups as a batch and post it as one message."""
        batch = await self._notices.claim(groups, LEASE_SECONDS)
        async with self._given_back_on_failure(batch):
            announcement = await self._receipt_builder.prepare(batch, target)
            if announcement is None:
                await self._notices.finish(batch, "kept")
                return
            await self._notices.mark_posting(batch, target.id, LEASE_SECONDS)
        await self._post(target, place, announcement)

    @contextlib.asynccontextmanager
    async def _given_back_on_failure(self, batch: str) -> AsyncIterator[None]:
        try:
            yield
        except BaseException:
            await self._notices.release(batch)
            raise

    async def _place(self, target: Channel, upload: int | None) -> dict[str, Any] | None:
        """Return where to post in a channel; None while its announcer or address is unknown."""
        announcer = self._announcers.get(target.platform)
        if announcer is None:
            return None
        place = announcer.announcement_address(target, await self._notices.last_address(target.id))
        below = await self._uploads.address(upload) if self._uploads and upload is not None else None
        return place | {"below": below} if place and below else place

    async def _post(self, target: Channel, place: dict[str, Any], announcement: Announcement) -> None:
        """Post a batch already marked as posting, and store the outcome."""
        try:
            async with asyncio.timeout(LEASE_SECONDS / 2):
                await self._announcers[target.platform].announce(place, announcement)
        except (DeliveryUnclear, TimeoutError):
            await self._notices.retry_later(announcement.id, UNCLEAR_SECONDS)
        except ChannelClosed as error:
            await self._drop(announcement.id, target, error)
        except DeliveryError as error:
            _log.warning("channel=%d announcement failed, retrying: %s", target.id, error)
            self._held_until[target.id] = time.monotonic() + (error.retry_after or self._pace.retry_delay)
            await self._notices.release(announcement.id)
        else:
            await self._notices.finish(announcement.id, "posted")
            _log.info("announcement=%s channel=%d posted", announcement.id, target.id)

    async def _drop(self, batch: str, target: Channel, error: ChannelClosed) -> None:
        _log.warning("announcement=%s channel=%d dropped, invite the bot: %s", batch, target.id, error)
        await self._notices.finish(batch, "dropped")

    async def _recover_batch(self, batch: NoticeBatch) -> None:
        """Resolve a batch whose outcome is unclear: search the channel once, post it if missing."""
        target = await self._channels.get(batch.told_in)
        place = await self._place(target, batch.upload)
        if place is None:
            if batch.began_at < utc_now() - NOTICE_EXPIRY:
                await self._notices.finish(batch.id, "kept")
            else:
                await self._notices.retry_later(batch.id, self._pace.retry_delay)
            return
        try:
            was_found = await self._announcers[target.platform].has_announced(place, batch.id, batch.began_at)
        except ChannelClosed as error:
            await self._drop(batch.id, target, error)
        except DeliveryError:
            await self._notices.retry_later(batch.id, self._pace.retry_delay)
        else:
            # Without search (None), rather no message than a duplicate: the console shows the notices.
            lost = await self._receipt_builder.prepare(batch.id, target) if was_found is False else None
            if lost is not None:
                return await self._post(target, place, lost)
            await self._notices.finish(batch.id, "posted" if was_found else "kept")
            _log.info("announcement=%s channel=%d found=%s", batch.id, target.id, was_found)
