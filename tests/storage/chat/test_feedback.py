"""Feedback on answers is stored with the question's trace only."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import delete, func, select

from storage.chat.channels import Channels
from storage.chat.feedback import FeedbackStore, FeedbackVerdict, hash_person
from storage.chat.traces import QuestionRecords
from storage.clock import utc_now
from storage.models import Channel, ChannelKey, Platform
from storage.sql.database import Database
from storage.sql.tables import ChannelRow, FeedbackRow

ANN, BEN = hash_person("T1ABC", "U1ANN"), hash_person("T1ABC", "U2BEN")


def found(*pages: tuple[str, int]) -> dict[str, Any]:
    """Return the trace of a question that found these pages, with the second-best candidate first."""
    ranked = [{"file": file, "page": page, "rank": n} for n, (file, page) in enumerate(pages, start=1)]
    cut = {"file": "cut.pdf", "page": 1, "rank": None}
    return {"question": "When?", "searches": [{"candidates": [*reversed(ranked), cut]}]}


@pytest.fixture
async def channel(database: Database) -> Channel:
    """A Slack channel with one traced question."""
    channel = await Channels(database).ensure(ChannelKey(Platform("slack"), "T1ABC", "C1ABC"))
    record = found(("a.pdf", 3), ("b.pdf", 1), ("a.pdf", 3))
    await QuestionRecords(database, 30).keep("17", channel.id, utc_now(), "grounded", record)
    return channel


async def test_the_last_feedback_of_each_person_is_stored(database: Database, channel: Channel) -> None:
    """A row per person, joined with the trace; people are pseudonymous."""
    store = FeedbackStore(database)
    assert await store.upsert(channel.id, "17", ANN, FeedbackVerdict.BAD)
    assert await store.upsert(channel.id, "17", ANN, FeedbackVerdict.WRONG_PAGE, file="b.pdf", page=1)
    assert await store.upsert(channel.id, "17", BEN, FeedbackVerdict.GOOD, comment="x" * 5000)
    ann, ben = await store.all(channel.id)
    assert (ann.verdict, ann.file, ann.page) == (FeedbackVerdict.WRONG_PAGE, "b.pdf", 1)
    assert (ben.verdict, len(ben.comment), ben.record["question"]) == (FeedbackVerdict.GOOD, 1000, "When?")
    assert ANN != BEN
    assert "U1ANN" not in ANN


async def test_only_candidate_pages_can_be_named(database: Database, channel: Channel) -> None:
    """Candidates come best first, and a forged page is not stored."""
    store = FeedbackStore(database)
    assert await store.candidates(channel.id, "17") == [("a.pdf", 3), ("b.pdf", 1)]
    assert await store.upsert(channel.id, "17", ANN, FeedbackVerdict.WRONG_PAGE, file="cut.pdf", page=1)
    assert [(one.file, one.page) for one in await store.all()] == [("", 0)]


async def test_feedback_on_another_channels_answer_is_refused(database: Database, channel: Channel) -> None:
    """Shows that a question is looked up by channel and id together."""
    other = await Channels(database).ensure(ChannelKey(Platform("slack"), "T1ABC", "C2ABC"))
    store = FeedbackStore(database)
    assert not await store.upsert(other.id, "17", ANN, FeedbackVerdict.BAD)
    assert not await store.upsert(channel.id, "18", ANN, FeedbackVerdict.BAD)
    assert await store.candidates(other.id, "17") == []
    assert await store.all() == []


async def test_feedback_is_deleted_with_its_trace(database: Database, channel: Channel) -> None:
    """Rewriting the trace keeps its feedback; deleting it deletes the feedback."""
    store = FeedbackStore(database)
    await store.upsert(channel.id, "17", ANN, FeedbackVerdict.GOOD)
    await QuestionRecords(database, 30).keep("17", channel.id, utc_now(), "grounded", found(("a.pdf", 3)))
    assert len(await store.all(channel.id)) == 1
    async with database.transaction() as session:
        await session.execute(delete(ChannelRow).where(ChannelRow.id == channel.id))  # type: ignore[arg-type]
    async with database.snapshot() as session:
        assert await session.scalar(select(func.count()).select_from(FeedbackRow)) == 0
