"""Question gaps: unanswered questions, grouped, closed by a later answer, with a weekly digest."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from harness.empty_homes import make_sqlite

from bot.answers.citations.citations import CitationService
from bot.chat.notifications.gap_digest import GapDigest
from bot.chat.notifications.notifier import NotificationTiming, Notifier, Routes
from bot.chat.notifications.question_gaps import find_gaps
from bot.chat.notifications.receipts import ReceiptBuilder, announcement_paragraphs
from bot.core.errors import DeliveryError
from bot.core.ports import Announcement
from storage.chat.channels import Channels
from storage.chat.inbox import Inbox
from storage.chat.notification_events import record_digests
from storage.chat.notifications import Notices
from storage.chat.traces import AskedQuestion, QuestionRecords
from storage.clock import utc_now
from storage.models import Channel, ChannelKey, Platform
from storage.sql.database import Database

IT, ADMINS = ChannelKey(Platform("slack"), "T1", "C0IT"), ChannelKey(Platform("slack"), "T1", "C0ADMINS")
START = datetime(2026, 3, 2, 12, tzinfo=UTC)


def asked(
    question: str, state: str = "not_found", *verdicts: str, day: int = 0, unknown: tuple[str, ...] = ()
) -> AskedQuestion:
    """Return a question asked on a given day."""
    return AskedQuestion(f"{question} {day}", START + timedelta(days=day), state, question, unknown, verdicts)


def test_a_question_for_a_person_is_a_gap_until_it_is_resolved() -> None:
    """A plain no that was resolved is no gap any more, nor are earlier questions like it."""
    question = "Who pays for parking?"
    waiting = [asked(question, day=0), asked(question, "grounded", "needs_person")]
    (gap,) = find_gaps(waiting)
    assert (gap.count, dict(gap.disputes)) == (2, {"needs_person": 1})
    assert find_gaps([*waiting, asked("Who pays for parking?", "not_found", "resolved", day=1)]) == []


def test_similar_questions_are_one_gap_with_words_and_counts() -> None:
    """Shows the latest wording, outcomes, negative feedback, and words found in no document."""
    gaps = find_gaps(
        [
            asked("Who repairs the espresso machine?", unknown=("espresso",)),
            asked("When is payday?", "not_found", day=1),
            asked("who repairs the espresso machine", "not_found", day=2, unknown=("espresso", "repairs")),
            asked("Which backups are kept?", "grounded", "outdated", "good", day=3),
            asked("What is the wifi password?", "grounded", day=3),
            asked("Hello", "chat", day=3),
        ]
    )
    assert [(gap.question, gap.count) for gap in gaps] == [
        ("who repairs the espresso machine", 2),
        ("Which backups are kept?", 1),
        ("When is payday?", 1),
    ]
    espresso, backups, _ = gaps
    assert (espresso.unknown, dict(espresso.states)) == (
        ("espresso", "repairs"),
        {"not_found": 2},
    )
    assert (dict(backups.disputes), len(espresso.ids)) == ({"outdated": 1}, 2)


def test_only_an_undisputed_later_answer_closes_a_gap() -> None:
    """Shows that only questions after the last good answer count, and that a confirmed "no" is no gap."""
    first, answered = asked("When is payday?"), asked("When is payday?", "grounded", day=1)
    assert find_gaps([first, answered]) == []
    assert [gap.count for gap in find_gaps([first, answered, asked("When is payday?", day=2)])] == [1]
    doubted = asked("When is payday?", "grounded", "wrong_answer", day=1)
    assert [gap.count for gap in find_gaps([first, doubted])] == [2]
    assert find_gaps([asked("When is payday?", "not_found", "good")]) == []


@dataclass
class Slack:
    """Records announcements by channel."""

    faults: list[Exception] = field(default_factory=list)
    posted: list[tuple[str, str]] = field(default_factory=list)

    def announcement_address(self, channel: Channel, address: dict[str, Any] | None) -> dict[str, Any]:
        return {"channel": channel.tenant}

    async def announce(self, place: dict[str, Any], announcement: Announcement) -> None:
        if self.faults:
            raise self.faults.pop(0)
        self.posted.append((place["channel"], "\n".join(announcement_paragraphs(announcement))))

    async def has_announced(self, place: dict[str, Any], announcement: str, since: datetime) -> bool:
        return False


@dataclass
class Office:
    """Digests on a real database."""

    database: Database
    now: datetime
    slack: Slack = field(default_factory=Slack)

    async def ask(self, key: ChannelKey, id: str, question: str, state: str = "not_found") -> None:
        """Store the record of a question."""
        channel = await Channels(self.database).ensure(key)
        record = {"searched": question, "state": state, "searches": [{"unknown": ["espresso"]}]}
        records = QuestionRecords(self.database, 30)
        await records.keep(id, channel.id, utc_now() - timedelta(hours=1), state, record)

    async def notifier(self, to: str) -> Notifier:
        """Return a notifier of a new process."""
        channels, notices = Channels(self.database), Notices(self.database)
        digest = GapDigest(
            partial(record_digests, self.database),
            channels,
            QuestionRecords(self.database, 30),
            to=to,
            clock=lambda: self.now,
        )
        unused: Any = None
        citations = CitationService(unused, unused, unused)
        receipts = ReceiptBuilder(
            notices, channels, unused, citations, catalog=unused, folders=unused, digest=digest
        )
        admin = await channels.ensure(ADMINS) if to == "admin" else None
        return Notifier(
            notices,
            channels,
            receipts,
            routes=Routes("channel", admin, to),
            announcers={Platform("slack"): self.slack},
            pace=NotificationTiming(retry_delay=0),
            digest=digest,
        )


@pytest.fixture
async def office(tmp_path: Path) -> AsyncIterator[Office]:
    """Yield a fresh database on a Monday morning."""
    database = await Database.open(make_sqlite(tmp_path / "home"))
    yield Office(database, datetime(2026, 3, 2, 7, 1, tzinfo=UTC))
    await database.aclose()


async def test_a_channel_gets_its_digest_once_a_week_through_restarts(office: Office) -> None:
    """Shows one message per week from any number of processes, and none if all was answered."""
    await office.ask(IT, "1", "Who repairs the espresso machine?")
    await office.ask(ChannelKey(Platform("slack"), "T1", "C0HR"), "2", "When is payday?", "grounded")
    office.slack.faults = [DeliveryError("slow down", retry_after=0)]
    for _ in range(3):
        for notifier in [await office.notifier("channel") for _ in range(2)]:
            await notifier.tick()
    ((channel, words),) = office.slack.posted
    assert channel == IT.tenant
    assert words.startswith("In the last seven days, 1 question went unanswered or got a disputed answer.")
    assert "“Who repairs the espresso machine?”\nNo document mentions: espresso" in words
    office.now += timedelta(days=6, hours=23)
    await (await office.notifier("channel")).tick()
    assert len(office.slack.posted) == 1
    office.now += timedelta(hours=1)
    await (await office.notifier("channel")).tick()
    assert len(office.slack.posted) == 2


async def test_digests_are_off_by_default(office: Office) -> None:
    """Shows the default."""
    await office.ask(IT, "1", "Who repairs the espresso machine?")
    await (await office.notifier("off")).tick()
    assert office.slack.posted == []


async def test_admins_get_digests_by_channel_with_private_questions(
    office: Office,
) -> None:
    """Shows the channel's name, and that its own digest leaves out private questions."""
    channel = await Channels(office.database).ensure(IT, "it-ops")
    await Inbox(office.database).receive(
        channel, event_key="e", message_key="m", thread="private 17", text="?", address={}
    )
    await office.ask(IT, "1", "Am I being fired?")
    await Channels(office.database).ensure(ChannelKey(Platform("slack"), "T1", "D0ALICE"), is_direct=True)
    await office.ask(ChannelKey(Platform("slack"), "T1", "D0ALICE"), "2", "May I see a doctor?")
    await (await office.notifier("channel")).tick()
    assert office.slack.posted == []
    office.now += timedelta(days=7)
    await (await office.notifier("admin")).tick()
    ((where, words),) = office.slack.posted
    assert where == ADMINS.tenant
    assert "1 question in it-ops went unanswered" in words
    assert "Am I being fired?" in words
