"""Retention: texts that people wrote or saw expire, or are deleted with the document they quote."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from harness.clocks import shift_wall_clock
from sqlalchemy import func, select, update

from storage.chat.answer_sources import Subscriptions
from storage.chat.channels import Channels
from storage.chat.citations import Citations
from storage.chat.inbox import Inbox
from storage.chat.notifications import Notices
from storage.chat.retention import Retention, erase_quotes
from storage.chat.thread_memory import ThreadMemory
from storage.chat.traces import QuestionRecords
from storage.chat_models import NewTurn
from storage.clock import utc_now
from storage.models import Channel, ChannelKey, CitedPlace, Platform
from storage.settings import StorageSettings
from storage.sql.audit import AuditedAction, AuditLog
from storage.sql.database import Database
from storage.sql.tables import (
    BlobRow,
    CitationRow,
    DocumentRow,
    FolderRow,
    InboxRow,
    NoticeRow,
    OutboxRow,
    QuestionRecordRow,
    SubscriptionRow,
    TurnRow,
    VersionRow,
)

DAYS = 10
SETTINGS = StorageSettings(
    message_days=DAYS, citation_days=DAYS, memory_days=DAYS, record_days=DAYS, audit_days=DAYS
)
SLACK = (Platform("slack"),)


@pytest.fixture
async def channel(database: Database) -> Channel:
    """A Slack channel."""
    return await Channels(database).ensure(ChannelKey(Platform("slack"), "T1ABC", "C1ABC"))


async def add_version(database: Database, channel: Channel, file: str) -> VersionRow:
    """Add a document with one version."""
    async with database.transaction() as session:
        folder = FolderRow(channel_id=channel.id, location=f"/inbox/{file}", watched=True)
        session.add_all([folder, BlobRow(sha256=file, size=1)])
        await session.flush()
        document = DocumentRow(channel_id=channel.id, folder_id=folder.id, file=file)
        session.add(document)
        await session.flush()
        version = VersionRow(document_id=document.id, number=1, sha256=file)
        session.add(version)
    return version


async def ask(database: Database, channel: Channel, name: str, version: VersionRow, file: str) -> None:
    """Answer a question from a version, leaving a text in every table that stores some."""
    inbox, now = Inbox(database), utc_now()
    await inbox.receive(
        channel, event_key=name, message_key=name, thread="1", text=f"{name}?", address={"channel": name}
    )
    item = await inbox.claim("a", 60, SLACK)
    assert item is not None
    await inbox.mark_posting(item)
    cited = {"file": file, "quote": name, "version_id": version.id, "edition": ""}
    turn = NewTurn(name, channel.id, "1", name, name, name, (version.id,), now)
    await inbox.save_answer(item, {"text": name, "citations": [cited]}, turn)
    await inbox.mark_delivered(item)
    await Citations(database).add(channel.id, [CitedPlace(version.id, 1, name)])
    await QuestionRecords(database, DAYS).keep(name, channel.id, now, "grounded", {"hits": [f"{file} p. 1"]})
    notice = NoticeRow(
        kind="live", key=name, channel_id=channel.id, document_id=version.document_id, version_id=version.id
    )
    async with database.transaction() as session:
        session.add(notice)


async def counts(database: Database) -> dict[str, int]:
    """Return the number of rows of every table with texts."""
    tables: tuple[Any, ...] = (InboxRow, OutboxRow, TurnRow, CitationRow, QuestionRecordRow, NoticeRow)
    async with database.snapshot() as session:
        return {
            table.__tablename__: await session.scalar(select(func.count()).select_from(table)) or 0
            for table in tables
        }


async def test_texts_expire_after_their_retention_period(database: Database, channel: Channel) -> None:
    """No table keeps a question, an answer, a quote or a notice longer than configured; younger ones stay."""
    version = await add_version(database, channel, "a.pdf")
    await ask(database, channel, "old", version, "a.pdf")
    retention = Retention(database, SETTINGS)
    with shift_wall_clock(timedelta(days=DAYS, seconds=1)):
        await ask(database, channel, "young", version, "a.pdf")
        assert set((await counts(database)).values()) == {2}
        assert await retention.delete_expired() > 0
        assert await retention.delete_expired() == 0
        assert set((await counts(database)).values()) == {1}
        (turn,) = await ThreadMemory(database, DAYS).recall(channel.id, "1", utc_now() + timedelta(seconds=1))
        assert turn.question == "young"


async def test_the_audit_log_has_its_own_retention_period(database: Database, channel: Channel) -> None:
    """Shows that no user id stays in it for ever."""
    audit = AuditLog(database)
    await audit.record(AuditedAction("slack:T1ABC:U1ABC", "status", channel.tenant))
    await Retention(database, SETTINGS).delete_expired()
    assert len(await audit.latest()) == 1
    with shift_wall_clock(timedelta(days=DAYS, seconds=1)):
        assert await Retention(database, SETTINGS).delete_expired() == 1
    assert await audit.latest() == []


async def test_the_newest_question_keeps_its_address_without_its_text(
    database: Database, channel: Channel
) -> None:
    """Shows that notices still reach a channel whose last question is long ago."""
    await ask(database, channel, "old", await add_version(database, channel, "a.pdf"), "a.pdf")
    async with database.transaction() as session:
        await session.execute(update(InboxRow).values(address={"channel": "old", "asked": "old?"}))
    retention = Retention(database, SETTINGS)
    with shift_wall_clock(timedelta(days=DAYS, seconds=1)):
        await retention.delete_expired()
        assert await retention.delete_expired() == 0
    async with database.snapshot() as session:
        (left,) = await session.scalars(select(InboxRow))
    assert (left.text, left.state) == ("", "done")
    assert (await counts(database))["outbox"] == 0
    assert await Notices(database).last_address(channel.id) == {"channel": "old"}


async def test_an_expired_unclaimed_question_is_never_answered(database: Database, channel: Channel) -> None:
    """Shows that a question ends as failed when its text is erased."""
    inbox = Inbox(database)
    await inbox.receive(channel, event_key="e", message_key="m", thread="1", text="Old?", address={})
    with shift_wall_clock(timedelta(days=DAYS, seconds=1)):
        await Retention(database, SETTINGS).delete_expired()
        assert await inbox.claim("a", 60, SLACK) is None


async def test_a_channel_is_welcomed_once_even_years_later(database: Database, channel: Channel) -> None:
    """The welcome notice is kept, because it has no text; joining again adds no second one."""
    notices = Notices(database)
    await notices.welcome(channel.id)
    await notices.finish(await notices.claim(await notices.waiting(), 60), "posted")
    with shift_wall_clock(timedelta(days=1000)):
        await Retention(database, SETTINGS).delete_expired()
        await notices.welcome(channel.id)
        assert await notices.waiting() == []
    assert (await counts(database))["notice"] == 1


async def test_the_last_notice_of_a_folder_is_kept(database: Database, channel: Channel) -> None:
    """Shows that a known problem is not announced again because its notice is old."""
    version = await add_version(database, channel, "a.pdf")
    async with database.transaction() as session:
        folder = (await session.get_one(DocumentRow, version.document_id)).folder_id
        for problem in ("first", "second"):
            session.add(
                NoticeRow(
                    kind="folder", channel_id=channel.id, folder_id=folder, text=problem, state="posted",
                    told_in=channel.id,
                )
            )  # fmt: skip
    with shift_wall_clock(timedelta(days=DAYS, seconds=1)):
        await Retention(database, SETTINGS).delete_expired()
    async with database.snapshot() as session:
        assert list(await session.scalars(select(NoticeRow.text))) == ["second"]  # type: ignore[call-overload]


async def test_quotes_are_erased_with_their_document_only(database: Database, channel: Channel) -> None:
    """Shows that no quote of a purged document is left in any table."""
    gone = await add_version(database, channel, "gr\u00fcn/50%_a.pdf")
    await ask(database, channel, "gone", gone, "gr\u00fcn/50%_a.pdf")
    await ask(database, channel, "kept", await add_version(database, channel, "b.pdf"), "b.pdf")
    for question, quote in (("1", CitedPlace(gone.id, 1, "gone")), ("2", CitedPlace(gone.id + 1, 1, "kept"))):
        assert await Subscriptions(database).add(question, quote, "en")
    await erase_quotes(database, [gone.document_id])
    async with database.snapshot() as session:
        assert [row.quote for row in await session.scalars(select(SubscriptionRow))] == ["kept"]
        answers = {row.inbox_id: row.answer for row in await session.scalars(select(OutboxRow))}
        texts = {row.text: answers[row.id] for row in await session.scalars(select(InboxRow))}
        assert texts["gone?"] is None
        assert texts["kept?"] is not None
        assert [row.quote for row in await session.scalars(select(CitationRow))] == ["kept"]
        assert [row.question for row in await session.scalars(select(TurnRow))] == ["kept"]
        assert [row.key for row in await session.scalars(select(QuestionRecordRow))] == ["kept"]
        assert [row.key for row in await session.scalars(select(NoticeRow))] == ["kept"]


async def test_quotes_of_a_renamed_document_are_erased_with_it(database: Database, channel: Channel) -> None:
    """Answers are found by version, whatever name the document had when it was quoted."""
    version = await add_version(database, channel, "old.pdf")
    await ask(database, channel, "asked", version, "old.pdf")
    async with database.transaction() as session:
        await session.execute(update(DocumentRow).values(file="new.pdf"))
    await erase_quotes(database, [version.document_id])
    async with database.snapshot() as session:
        assert [row.answer for row in await session.scalars(select(OutboxRow))] == [None]


async def test_library_quotes_in_direct_chats_are_erased_with_it(
    database: Database, channel: Channel
) -> None:
    """Shows that turn, trace and answer are erased in the chat, although the document is the library's."""
    channels = Channels(database)
    library = await channels.ensure_library("policies")
    chat = await channels.ensure(ChannelKey(Platform("slack"), "T1ABC", "D1ABC"), is_direct=True)
    version = await add_version(database, library, "a.pdf")
    await ask(database, chat, "direct", version, "a.pdf")
    await ask(database, channel, "elsewhere", await add_version(database, channel, "b.pdf"), "b.pdf")
    await erase_quotes(database, [version.document_id])
    async with database.snapshot() as session:
        assert [row.question for row in await session.scalars(select(TurnRow))] == ["elsewhere"]
        assert [row.key for row in await session.scalars(select(QuestionRecordRow))] == ["elsewhere"]
        answers = {row.answer and row.answer["text"] for row in await session.scalars(select(OutboxRow))}
        assert answers == {None, "elsewhere"}
