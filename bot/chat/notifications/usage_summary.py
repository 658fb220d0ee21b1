"""Monthly summary of usage for the admin channel: a notice, recorded once when a month is over."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

from bot.chat.notifications import notification_wording
from bot.quality.monthly_usage import ChannelUsage, Month, TokenPrices, monthly_usage
from storage.chat.channels import Channels
from storage.chat.traces import QuestionRecords
from storage.clock import utc_now

# Time of the first day (UTC) at which the summary is due.
DUE_AFTER = timedelta(hours=7)
# Channels listed, those with most questions first; the others are counted.
MAX_LISTED = 20

# Records one notice per month with its lines; idempotent.
RecordSummary = Callable[[str, str], Awaitable[None]]


class UsageSummary:
    """Records the summary of the last month."""

    def __init__(
        self,
        record_summary: RecordSummary,
        channels: Channels,
        records: QuestionRecords,
        prices: TokenPrices,
        *,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self._record_summary = record_summary
        self._channels = channels
        self._records = records
        self._prices = prices
        self._clock = clock
        self._recorded = ""

    async def record(self) -> None:
        """Record the summary of the last month once; none if nobody asked anything.

        Raises:
            storage.errors.DatabaseUnavailable: it could not be recorded.
        """
        month = Month.of(self._clock() - DUE_AFTER).previous
        if str(month) == self._recorded:
            return
        channels = [one for one in await self._channels.all() if not one.is_direct]
        if usage := await monthly_usage(self._records, channels, month, self._prices):
            await self._record_summary(str(month), "\n".join(summary_lines(month, usage)))
        self._recorded = str(month)


def summary_lines(month: Month, usage: list[ChannelUsage]) -> list[str]:
    """Return the summary: a line for all channels, then one for each."""
    busiest = sorted(usage, key=lambda one: one.questions, reverse=True)
    more = len(usage) - MAX_LISTED
    return [
        notification_wording.usage_lead(f"{month.begins:%B %Y}", usage),
        *(notification_wording.usage_of_channel(one) for one in busiest[:MAX_LISTED]),
        *([f"and {more} more: see footnote quality --month {month}"] if more > 0 else []),
        *([] if all(one.is_whole for one in usage) else [notification_wording.USAGE_INCOMPLETE]),
    ]
