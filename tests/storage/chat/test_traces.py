"""Question traces are stored by channel, once each, until they expire, on both databases."""

from __future__ import annotations

from datetime import timedelta

import pytest
from harness.clocks import shift_wall_clock
from sqlalchemy import delete, func, select

from storage.chat.channels import Channels
from storage.chat.feedback import FeedbackStore, FeedbackVerdict
from storage.chat.inbox import Inbox
from storage.chat.retention import Retention
from storage.chat.traces import MAX_LISTED, PRIVATE_THREAD, QuestionRecords
from storage.clock import utc_now
from storage.models import Channel, ChannelKey, Platform
from storage.settings import StorageSettings
from storage.sql.database import Database
from storage.sql.tables import ChannelRow, QuestionRecordRow

DAYS = 30


@pytest.fixture
def records(database: Database) -> QuestionRecords:
    """An empty trace store."""
    return QuestionRecords(database, DAYS)


@pytest.fixture
async def channel(database: Database) -> Channel:
    """A Slack channel."""
    return await Channels(database).ensure(ChannelKey(Platform("slack"), "T1ABC", "C1ABC"))


async def count(database: Database) -> int:
    async with database.snapshot() as session:
        return await session.scalar(select(func.count()).select_from(QuestionRecordRow)) or 0


async def test_a_trace_round_trips(records: QuestionRecords, channel: Channel) -> None:
    """Looked up by channel and question id together."""
    record = {"question": "Wann?", "searches": [{"score": 0.5, "vector": None}]}
    await records.keep("17", channel.id, utc_now(), "grounded", record)
    kept = await records.get(channel.id, "17")
    assert kept is not None
    assert (kept.key, kept.state, kept.record) == ("17", "grounded", record)
    assert await records.get(channel.id, "18") is None
    assert await records.get(channel.id + 1, "17") is None


async def test_the_first_question_of_a_channel_is_detected(
    records: QuestionRecords, channel: Channel, database: Database
) -> None:
    """One that found nothing and other channels do not count; without traces no question is the first."""
    await records.keep("16", channel.id, utc_now(), "not_found", {"searches": [{"candidates": []}]})
    assert await records.is_first(channel.id)
    await records.keep(
        "17", channel.id, utc_now(), "passages", {"searches": [{"candidates": [{"file": "a"}]}]}
    )
    assert not await records.is_first(channel.id)
    assert await records.is_first(channel.id + 1)
    assert not await QuestionRecords(database, 0).is_first(channel.id + 1)


async def test_a_question_answered_again_keeps_its_last_trace(
    records: QuestionRecords, channel: Channel, database: Database
) -> None:
    """A crash between answer and delivery adds no second trace."""
    await records.keep("17", channel.id, utc_now(), "failed", {"answer": "a"})
    await records.keep("17", channel.id, utc_now(), "grounded", {"answer": "b"})
    (kept,) = await records.latest(channel.id)
    assert (kept.state, kept.record) == ("grounded", {"answer": "b"})
    assert await count(database) == 1


async def test_the_latest_traces_of_a_channel_are_listed(
    records: QuestionRecords, channel: Channel, database: Database
) -> None:
    """Newest first, up to a limit, and none of another channel."""
    other = await Channels(database).ensure(ChannelKey(Platform("slack"), "T1ABC", "C2ABC"))
    now = utc_now()
    for number in range(MAX_LISTED + 1):
        await records.keep(str(number), channel.id, now - timedelta(minutes=number), "chat", {})
    await records.keep("x", other.id, now, "chat", {})
    assert [one.key for one in await records.latest(channel.id)] == [str(n) for n in range(MAX_LISTED)]


async def test_expired_traces_are_neither_shown_nor_stored(
    records: QuestionRecords, channel: Channel, database: Database
) -> None:
    """Expired traces are hidden even before they are deleted; younger ones stay."""
    await records.keep("old", channel.id, utc_now(), "chat", {})
    with shift_wall_clock(timedelta(days=DAYS, seconds=1)):
        await records.keep("young", channel.id, utc_now(), "chat", {})
        assert [one.key for one in await records.latest(channel.id)] == ["young"]
        assert await records.get(channel.id, "old") is None
        assert await count(database) == 2
        retention = Retention(database, StorageSettings(record_days=DAYS))
        assert await retention.delete_expired() == 1
        assert await retention.delete_expired() == 0
    assert await count(database) == 1


async def test_traces_are_deleted_with_their_channel(
    records: QuestionRecords, channel: Channel, database: Database
) -> None:
    other = await Channels(database).ensure(ChannelKey(Platform("slack"), "T1ABC", "C2ABC"))
    await records.keep("1", channel.id, utc_now(), "chat", {})
    await records.keep("1", other.id, utc_now(), "chat", {})
    async with database.transaction() as session:
        await session.execute(delete(ChannelRow).where(ChannelRow.id == channel.id))  # type: ignore[arg-type]
    assert await count(database) == 1


async def test_zero_days_store_nothing_and_erase_existing_traces(
    records: QuestionRecords, channel: Channel, database: Database
) -> None:
    await records.keep("1", channel.id, utc_now() - timedelta(seconds=1), "chat", {})
    off = QuestionRecords(database, 0)
    await off.keep("2", channel.id, utc_now(), "chat", {})
    assert await Retention(database, StorageSettings(record_days=0)).delete_expired() == 1
    assert await count(database) == 0


async def test_traces_report_the_outcome_of_each_question(database: Database) -> None:
    """Returns question, state and all feedback, one entry per question.

    Expired traces are left out and, on request, those of private answers.
    """
    channel = await Channels(database).ensure(ChannelKey(Platform("slack"), "T1", "C1"))
    records, feedback = QuestionRecords(database, 30), FeedbackStore(database)
    await Inbox(database).receive(
        channel, event_key="e", message_key="m", thread=f"{PRIVATE_THREAD}17", text="?", address={}
    )
    for key, hours, looks in (("1", 2, [{"candidates": [], "unknown": ["espresso"]}]), ("2", 1, [])):
        asked_at = utc_now() - timedelta(hours=hours)
        await records.keep(key, channel.id, asked_at, "passages", {"searched": f"Q{key}?", "searches": looks})
    for person in ("a", "b"):
        await feedback.upsert(channel.id, "1", person, FeedbackVerdict.OUTDATED)
    first, second = await records.asked_since(channel.id, utc_now() - timedelta(days=1))
    assert (first.question, first.state, first.unknown) == ("Q1?", "passages", ("espresso",))
    assert first.verdicts == ("outdated", "outdated")
    assert (second.key, second.unknown, second.verdicts) == ("2", (), ())
    since = utc_now() - timedelta(minutes=90)
    assert await records.asked_since(channel.id, since) == [second]
    public_only = await records.asked_since(channel.id, utc_now() - timedelta(days=1), public_only=True)
    assert [one.key for one in public_only] == ["2"]
