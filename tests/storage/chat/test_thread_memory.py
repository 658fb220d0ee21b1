"""Threads recall their own recent turns and no other thread's, on both databases."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from uuid import uuid4

import pytest
from harness.clocks import shift_wall_clock
from sqlalchemy import delete, func, select

from storage.chat.channels import Channels
from storage.chat.inbox import Inbox
from storage.chat.retention import Retention
from storage.chat.thread_memory import MAX_TURNS, SESSION_GAP, ThreadMemory
from storage.chat_models import NewTurn
from storage.clock import utc_now
from storage.errors import LeaseLost
from storage.models import Channel, ChannelKey, Platform
from storage.settings import StorageSettings
from storage.sql.database import Database
from storage.sql.tables import BlobRow, ChannelRow, DocumentRow, FolderRow, TurnRow, VersionRow

DAYS = 30


@pytest.fixture
def memory(database: Database) -> ThreadMemory:
    """An empty memory."""
    return ThreadMemory(database, DAYS)


@pytest.fixture
async def channel(database: Database) -> Channel:
    """A Slack channel."""
    return await Channels(database).ensure(ChannelKey(Platform("slack"), "T1ABC", "C1ABC"))


def turn(channel: Channel, number: int, **values: object) -> NewTurn:
    """Return a turn asked `number` minutes after the first one."""
    made = NewTurn(
        key=f"{channel.id}-{number}",
        channel_id=channel.id,
        thread="17.1",
        question=f"Question {number}?",
        standalone=f"Whole question {number}?",
        answer=f"Answer {number}.",
        versions=(),
        asked_at=begin() + timedelta(minutes=number),
    )
    return replace(made, **values)  # type: ignore[arg-type]


def begin() -> datetime:
    return utc_now() - timedelta(hours=2)


async def count_turns(database: Database) -> int:
    async with database.snapshot() as session:
        return await session.scalar(select(func.count()).select_from(TurnRow)) or 0


async def test_a_thread_recalls_its_last_turns_newest_last(memory: ThreadMemory, channel: Channel) -> None:
    """Only a few, and only those asked before the question, whenever they were answered."""
    for number in (2, 0, 1, *range(3, 10)):
        await memory.store(turn(channel, number))
    recalled = await memory.recall(channel.id, "17.1", begin() + timedelta(minutes=8, seconds=30))
    assert [one.question for one in recalled] == [f"Question {n}?" for n in range(9 - MAX_TURNS, 9)]
    assert (recalled[-1].standalone, recalled[-1].answer) == ("Whole question 8?", "Answer 8.")


async def test_turns_never_come_from_another_thread_or_channel(
    memory: ThreadMemory, channel: Channel, database: Database
) -> None:
    """The same thread id in another channel is another thread."""
    other = await Channels(database).ensure(ChannelKey(Platform("slack"), "T1ABC", "C2ABC"))
    await memory.store(turn(channel, 0))
    await memory.store(turn(channel, 1, thread="18.1"))
    await memory.store(turn(channel, 2, thread=""))
    await memory.store(turn(other, 3))
    now = begin() + timedelta(minutes=5)
    for where, thread, expected in (
        (channel, "17.1", ["Question 0?"]),
        (channel, "18.1", ["Question 1?"]),
        (channel, "", ["Question 2?"]),
        (other, "17.1", ["Question 3?"]),
        (other, "18.1", []),
        (other, "", []),
    ):
        assert [one.question for one in await memory.recall(where.id, thread, now)] == expected


async def test_an_unthreaded_conversation_ends_after_half_an_hour(
    memory: ThreadMemory, channel: Channel
) -> None:
    """A thread continues after any pause; an unthreaded conversation restarts after half an hour."""
    minutes = (0, 40, 60)
    for number in minutes:
        await memory.store(turn(channel, number, thread=""))
        await memory.store(turn(channel, number, key=f"opened {number}"))
    soon = begin() + timedelta(minutes=61)
    assert [one.question for one in await memory.recall(channel.id, "", soon)] == [
        "Question 40?",
        "Question 60?",
    ]
    assert len(await memory.recall(channel.id, "17.1", soon)) == len(minutes)
    late = begin() + timedelta(minutes=61) + SESSION_GAP
    assert await memory.recall(channel.id, "", late) == ()
    assert len(await memory.recall(channel.id, "17.1", late)) == len(minutes)


async def test_a_thread_under_a_message_starts_with_that_turn(
    memory: ThreadMemory, channel: Channel, database: Database
) -> None:
    """A reply to our answer in a direct chat, or to one's own question, refers to that turn alone."""
    inbox = Inbox(database)
    for ts in ("21.1", "22.1"):
        await inbox.receive(
            channel,
            event_key=ts,
            message_key=ts,
            thread="",
            text="When?",
            address={"ts": ts, "channel": "D1"},
        )
        item = await inbox.claim("w", 60, [Platform("slack")])
        assert item is not None
        await inbox.mark_posting(item)
        await inbox.mark_placed(item, {"channel": "D1", "ts": f"{ts}5"})
        asked_at = begin() + timedelta(minutes=item.id)
        new = replace(turn(channel, 0), key=str(item.id), thread="", question=f"{ts}?", asked_at=asked_at)
        await inbox.save_answer(item, {"state": "grounded"}, new)
    for thread, expected in (("21.1", "21.1?"), ("21.15", "21.1?"), ("22.15", "22.1?")):
        (recalled,) = await memory.recall(channel.id, thread, utc_now())
        assert recalled.question == expected
        last = await memory.last(channel.id, thread)
        assert last is not None
    assert await memory.recall(channel.id, "23.1", utc_now()) == ()
    await memory.store(turn(channel, 90, thread="21.15"))
    recalled_both = await memory.recall(channel.id, "21.15", utc_now())
    assert [one.question for one in recalled_both] == ["21.1?", "Question 90?"]


async def test_a_question_is_remembered_once(
    memory: ThreadMemory, channel: Channel, database: Database
) -> None:
    """A second answer to the same question adds no turn."""
    await memory.store(turn(channel, 0))
    await memory.store(turn(channel, 0, answer="Another answer."))
    (recalled,) = await memory.recall(channel.id, "17.1", utc_now())
    assert (recalled.answer, await count_turns(database)) == ("Answer 0.", 1)


async def test_a_turn_lists_the_documents_that_it_cited(
    memory: ThreadMemory, channel: Channel, database: Database
) -> None:
    """Any of their versions counts; unknown versions are ignored."""
    document = uuid4()
    async with database.transaction() as session:
        session.add(BlobRow(sha256="a" * 64, size=1))
        folder = FolderRow(channel_id=channel.id, location="/srv/it", watched=True)
        session.add(folder)
        await session.flush()
        session.add(DocumentRow(id=document, channel_id=channel.id, folder_id=folder.id, file="a.pdf"))
        await session.flush()
        versions = [VersionRow(document_id=document, number=n, sha256="a" * 64) for n in (1, 2)]
        session.add_all(versions)
        await session.flush()
        ids = [version.id for version in versions]
    await memory.store(turn(channel, 0, versions=(*ids, max(ids) + 1)))
    (recalled,) = await memory.recall(channel.id, "17.1", utc_now())
    assert recalled.documents == {document}


async def test_expired_turns_are_neither_recalled_nor_stored(
    memory: ThreadMemory, channel: Channel, database: Database
) -> None:
    """Expired turns are not recalled even before they are deleted; younger ones stay."""
    await memory.store(turn(channel, 0))
    with shift_wall_clock(timedelta(days=DAYS)):
        await memory.store(turn(channel, 1, asked_at=utc_now()))
        recalled = await memory.recall(channel.id, "17.1", utc_now() + timedelta(seconds=1))
        assert [one.question for one in recalled] == ["Question 1?"]
        assert await count_turns(database) == 2
        retention = Retention(database, StorageSettings(memory_days=DAYS))
        assert await retention.delete_expired() == 1
        assert await retention.delete_expired() == 0
    assert await count_turns(database) == 1


async def test_memory_is_deleted_with_its_channel(
    memory: ThreadMemory, channel: Channel, database: Database
) -> None:
    other = await Channels(database).ensure(ChannelKey(Platform("slack"), "T1ABC", "C2ABC"))
    await memory.store(turn(channel, 0))
    await memory.store(turn(other, 0))
    async with database.transaction() as session:
        await session.execute(delete(ChannelRow).where(ChannelRow.id == channel.id))  # type: ignore[arg-type]
    assert await count_turns(database) == 1
    assert await memory.recall(channel.id, "17.1", utc_now()) == ()


async def test_a_turn_is_stored_in_the_transaction_of_its_answer(
    memory: ThreadMemory, channel: Channel, database: Database
) -> None:
    """A worker that lost its lease stores neither; the current one stores both."""
    inbox = Inbox(database)
    await inbox.receive(channel, event_key="e1", message_key="m1", thread="17.1", text="?", address={})
    lost = await inbox.claim("slow", 0, (Platform("slack"),))
    assert lost is not None
    await inbox.mark_posting(lost)
    held = await inbox.claim("quick", 60, (Platform("slack"),))
    assert held is not None
    with pytest.raises(LeaseLost):
        await inbox.save_answer(lost, {"text": "late"}, turn(channel, 0))
    assert await count_turns(database) == 0
    await inbox.save_answer(held, {"text": "in time"}, turn(channel, 0))
    assert await count_turns(database) == 1


async def test_a_direct_chat_recalls_only_turns_of_its_library(
    memory: ThreadMemory, channel: Channel, database: Database
) -> None:
    """Answers from other documents are dropped; a turn without sources keeps only the user's words."""
    library = await Channels(database).ensure_library("policies")
    ours, others = await add_version(database, library), await add_version(database, channel)
    cited = [(), (ours,), (others,), (ours, others), (ours, 10_000)]
    for number, versions in enumerate(cited):
        await memory.store(turn(channel, number, versions=versions))
    recalled = await memory.recall(channel.id, "17.1", utc_now(), documents_of=library.id)
    assert [(one.question, one.standalone, one.answer) for one in recalled] == [
        ("Question 0?", "Question 0?", ""),
        ("Question 1?", "Whole question 1?", "Answer 1."),
    ]
    assert len(await memory.recall(channel.id, "17.1", utc_now())) == len(cited)


async def add_version(database: Database, channel: Channel) -> int:
    """Add a document with one version; return the version's id."""
    async with database.transaction() as session:
        folder = FolderRow(channel_id=channel.id, location="/srv", watched=True)
        session.add_all([folder, BlobRow(sha256=f"{channel.id:064x}", size=1)])
        await session.flush()
        document = DocumentRow(channel_id=channel.id, folder_id=folder.id, file="a.pdf")
        session.add(document)
        await session.flush()
        version = VersionRow(document_id=document.id, number=1, sha256=f"{channel.id:064x}")
        session.add(version)
        await session.flush()
        return version.id
