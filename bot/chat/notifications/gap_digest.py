"""Weekly digest of knowledge gaps: questions that a channel's documents did not answer.

A digest is a notice like any other: recorded once a week, posted by ``notifier.py``, skipped if there are no
gaps. Private questions appear only in digests to admins.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from datetime import datetime, timedelta

from bot.chat.notifications import notification_wording
from bot.chat.notifications.question_gaps import QuestionGap, find_gaps
from bot.core.plaintext import shorten
from bot.core.ports import Announcement, AnnouncementEntry
from storage.chat.channels import Channels
from storage.chat.traces import QuestionRecords
from storage.chat_models import Notice
from storage.clock import utc_now
from storage.models import Channel

DAYS = 7
# Time of day (UTC) on Monday at which digests are due.
MONDAY_OFFSET = timedelta(hours=7)
# Gaps listed in a digest; the others are counted.
MAX_LISTED = 7
MAX_WORDS = 5
QUESTION_CHARS = 200


# Records one digest notice per channel and week (channel ids, ISO week); idempotent.
RecordDigests = Callable[[Collection[int], str], Awaitable[None]]


class GapDigest:
    """Records digests that are due, and builds their messages."""

    def __init__(
        self,
        record_digests: RecordDigests,
        channels: Channels,
        records: QuestionRecords,
        *,
        to: str,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        """Send digests ``to``: ``channel`` (the channel itself), ``admin`` (admins' channel) or ``off``."""
        self._record_digests = record_digests
        self._channels = channels
        self._records = records
        self._to = to
        self._clock = clock
        self._recorded = ""

    async def record(self) -> None:
        """Record a digest of the last seven days for each channel, once a week.

        Raises:
            storage.errors.DatabaseUnavailable: the digests could not be recorded.
        """
        week = f"{(self._clock() - MONDAY_OFFSET):%G-W%V}"
        if self._to == "off" or week == self._recorded:
            return
        channels = [one for one in await self._channels.all() if self._is_told_of(one)]
        await self._record_digests([one.id for one in channels], week)
        self._recorded = week

    def _is_told_of(self, channel: Channel) -> bool:
        """True if the channel gets digests."""
        # Questions in direct chats are private; a local channel cannot be posted to.
        if channel.is_direct or channel.is_library:
            return False
        return self._to == "admin" or not channel.is_local

    async def prepare(self, batch: str, notice: Notice, target: Channel) -> Announcement | None:
        """Return the digest with id ``batch``; None if there are no gaps.

        Raises:
            storage.errors.DatabaseUnavailable: the questions cannot be read.
        """
        is_elsewhere = target.id != notice.channel_id
        since = notice.created_at - timedelta(days=DAYS)
        gaps = find_gaps(
            await self._records.asked_since(notice.channel_id, since, public_only=not is_elsewhere)
        )
        if not gaps:
            return None
        more = len(gaps) - MAX_LISTED
        return Announcement(
            batch,
            notification_wording.digest_lead(len(gaps), notice.channel if is_elsewhere else ""),
            tuple(map(_entry, gaps[:MAX_LISTED])),
            (notification_wording.more_gaps(more),) if more > 0 else (),
        )


def _entry(gap: QuestionGap) -> AnnouncementEntry:
    disputed = sum(gap.disputes.values())
    headline = notification_wording.gap(shorten(gap.question, QUESTION_CHARS), gap.count, disputed)
    words = [shorten(word, QUESTION_CHARS) for word in gap.unknown[:MAX_WORDS]]
    return AnnouncementEntry(headline, (notification_wording.words_nowhere(words),) if words else ())
