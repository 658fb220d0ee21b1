"""Monthly summary of usage: posted once to the admin channel when a month is over."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from harness.empty_homes import make_sqlite

from bot.answers.citations.citations import CitationService
from bot.chat.notifications.notifier import NotificationTiming, Notifier, Routes
from bot.chat.notifications.receipts import ReceiptBuilder, announcement_paragraphs
from bot.chat.notifications.usage_summary import UsageSummary
from bot.core.ports import Announcement
from bot.quality.monthly_usage import Month, TokenPrices
from storage.chat.channels import Channels
from storage.chat.notification_events import record_summary
from storage.chat.notifications import Notices
from storage.chat.traces import QuestionRecords
from storage.clock import utc_now
from storage.models import Channel, ChannelKey, Platform
from storage.sql.database import Database

IT, ADMINS = ChannelKey(Platform("slack"), "T1", "C0IT"), ChannelKey(Platform("slack"), "T1", "C0ADMINS")


@dataclass
class Posts:
    """Collects announcements with their channel."""

    posted: list[tuple[str, str]] = field(default_factory=list)

    def announcement_address(self, channel: Channel, address: dict[str, Any] | None) -> dict[str, Any]:
        """Return the channel."""
        return {"channel": channel.tenant}

    async def announce(self, place: dict[str, Any], announcement: Announcement) -> None:
        """Keep the text."""
        self.posted.append((place["channel"], "\n".join(announcement_paragraphs(announcement))))

    async def has_announced(self, place: dict[str, Any], announcement: str, since: datetime) -> bool:
        """Return whether a post was seen: never."""
        return False


async def test_admins_get_the_usage_of_a_month_once_when_it_is_over(tmp_path: Path) -> None:
    """Not before seven in the morning of the first day; a restarted process posts nothing again."""
    database = await Database.open(make_sqlite(tmp_path / "home"))
    channels, records = Channels(database), QuestionRecords(database, 30)
    admins, asked, posts = await channels.ensure(ADMINS), await channels.ensure(IT, "it-ops"), Posts()
    tokens = {"prompt": 1_000_000, "completion": None}
    record = {"milliseconds": {}, "tokens": tokens, "citations": []}
    for key, state in (("1", "grounded"), ("2", "not_found")):
        await records.keep(key, asked.id, utc_now(), state, record)
    month = Month.of(utc_now())

    async def tick(now: datetime) -> None:
        unused: Any = None
        receipts = ReceiptBuilder(
            Notices(database),
            channels,
            unused,
            CitationService(unused, unused, unused),
            catalog=unused,
            folders=unused,
        )
        summary = UsageSummary(
            partial(record_summary, database, admins.id),
            channels,
            records,
            TokenPrices(prompt=2.5),
            clock=lambda: now,
        )
        await Notifier(
            Notices(database),
            channels,
            receipts,
            routes=Routes("off", admins),
            announcers={Platform("slack"): posts},
            pace=NotificationTiming(debounce=0),
            summary=summary,
        ).tick()

    await tick(month.ends + timedelta(hours=6))
    assert posts.posted == []
    for hours in (8, 9):
        await tick(month.ends + timedelta(hours=hours))
    ((where, text),) = posts.posted
    assert where == ADMINS.tenant
    assert f"Usage in {month.begins:%B %Y}: 2 questions in 1 channel, tokens for 5.00" in text
    assert "it-ops: 2 asked, 1 answered, 1 plain no" in text
    await database.aclose()
