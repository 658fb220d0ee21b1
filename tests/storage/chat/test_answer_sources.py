"""Answers are marked in the transaction that changes their documents, and leased to one worker each."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from fakes.notice_shelf import NoticeShelf, open_shelf
from harness.clocks import shift_wall_clock
from sqlalchemy import select, update
from sqlmodel import col

from storage.chat.answer_sources import MAX_AGE, AnswerSources, mark_outdated
from storage.chat.inbox import Inbox
from storage.chat_models import InboxItem, PostedAnswer
from storage.clock import utc_now
from storage.folders.folders import Folders
from storage.models import ChannelKey, Platform
from storage.sql.database import Database
from storage.sql.tables import AnswerSourceRow, DocumentRow, OutboxRow, PublicationRow

SLACK = (Platform("slack"),)
ANSWER = {"citations": [{"version_id": 1}]}


@pytest.fixture
async def shelf(database: Database) -> NoticeShelf:
    """A Slack channel's documents."""
    return await open_shelf(database, ChannelKey(Platform("slack"), "T1", "C1"))


@pytest.fixture
def sources(database: Database) -> AnswerSources:
    """The AnswerSources of the test database."""
    return AnswerSources(database)


async def ask(database: Database, shelf: NoticeShelf, key: str = "m1") -> InboxItem:
    """Return a claimed question whose message is posted."""
    inbox = Inbox(database)
    message = {"thread": "1", "text": "?", "address": {"channel": "C1"}}
    await inbox.receive(shelf.channel, event_key=key, message_key=key, **message)
    item = await inbox.claim("w", 60, SLACK)
    assert item is not None
    await inbox.mark_posting(item)
    await inbox.mark_placed(item, {"ts": key})
    return item


async def post(database: Database, shelf: NoticeShelf, *versions: int, key: str = "m1") -> None:
    """Post an answer that cites these versions, as its channel sees it."""
    item = await ask(database, shelf, key)
    await Inbox(database).save_answer(item, ANSWER, versions=versions)
    await Inbox(database).mark_delivered(item)


async def waiting(sources: AnswerSources) -> list[int]:
    """Return the ids of the questions whose messages are pending."""
    found: list[PostedAnswer] = []
    while posted := await sources.claim(SLACK, 60):
        found.append(posted)
    return [posted.inbox_id for posted in found]


async def test_changed_documents_mark_their_answers(
    database: Database, shelf: NoticeShelf, sources: AnswerSources
) -> None:
    """Each answer is claimed once per change of a cited document, and not before."""
    first, other = await shelf.add("a.pdf"), await shelf.add("b.pdf")
    await shelf.publish(first)
    await shelf.publish(other)
    await post(database, shelf, first)
    await post(database, shelf, other, key="m2")
    assert await waiting(sources) == []
    document = await shelf.document_of(first)
    second = await shelf.add("a.pdf", document=document)
    assert await waiting(sources) == []
    await shelf.publish(second)
    posted = await sources.claim(SLACK, 60)
    assert posted
    assert (posted.inbox_id, posted.message, posted.answer) == (1, {"ts": "m1"}, ANSWER)
    (state,) = await sources.states([first])
    assert (state.change, state.document, state.channel_id) == (second, document, shelf.channel.id)
    await sources.finish(posted, {first: second})
    assert await waiting(sources) == []
    await Folders(database).delete(shelf.folder, {document: "a.pdf"})
    posted = await sources.claim(SLACK, 60)
    assert posted
    assert posted.shown == {first: second}
    states = await sources.states([first, other])
    assert {one.version_id: one.change for one in states} == {first: 0, other: None}


async def test_an_answer_that_was_outdated_when_stored_is_claimed(
    database: Database, shelf: NoticeShelf, sources: AnswerSources
) -> None:
    """A document that was replaced while its answer was being written marks the answer."""
    version = await shelf.add("a.pdf")
    await shelf.publish(version)
    await shelf.publish(await shelf.add("a.pdf", document=await shelf.document_of(version)))
    await post(database, shelf, version)
    assert await waiting(sources) == [1]


async def test_an_answer_is_stored_before_or_after_a_change(
    database: Database, shelf: NoticeShelf, sources: AnswerSources
) -> None:
    """A change that is not committed yet, and could not mark the answer, is waited for."""
    version = await shelf.add("a.pdf")
    await shelf.publish(version)
    item = await ask(database, shelf)
    async with database.transaction() as session:
        document = await session.get_one(DocumentRow, await shelf.document_of(version))
        document.state = "deleted"
        await session.flush()
        await mark_outdated(session, [document.id])
        saving = asyncio.create_task(Inbox(database).save_answer(item, ANSWER, versions=[version]))
        await asyncio.wait({saving}, timeout=0.5)  # it ends only if nothing holds it back
    await saving
    await Inbox(database).mark_delivered(item)
    assert await waiting(sources) == [1]


async def test_a_late_update_is_compared_with_the_new_answer(
    database: Database, shelf: NoticeShelf, sources: AnswerSources
) -> None:
    """An edited question's new answer is stored during an update, which then shows the old one again."""
    version = await shelf.add("a.pdf")
    await shelf.publish(version)
    await post(database, shelf, version)
    newer = await shelf.add("a.pdf", document=await shelf.document_of(version))
    await shelf.publish(newer)
    late, inbox = await sources.claim(SLACK, 60), Inbox(database)
    assert late
    assert await inbox.requeue_edited(Platform("slack"), "m1", "anew?")
    item = await inbox.claim("w", 60, SLACK)
    assert item
    await inbox.save_answer(item, ANSWER, versions=[newer])
    await inbox.mark_delivered(item)
    await sources.finish(late, {version: newer})
    again = await sources.claim(SLACK, 60)
    assert again
    assert again.shown == {version: newer}
    await sources.finish(again, {})
    assert await waiting(sources) == []


async def test_a_crashed_claim_is_taken_over_by_the_next_worker(
    database: Database, shelf: NoticeShelf, sources: AnswerSources
) -> None:
    """The lease expires, and `finish` does not lose a change that arrived in between."""
    version = await shelf.add("a.pdf")
    await shelf.publish(version)
    await post(database, shelf, version)
    await shelf.publish(await shelf.add("a.pdf", document=await shelf.document_of(version)))
    lost = await sources.claim(SLACK, 60)
    assert lost
    assert await sources.claim(SLACK, 60) is None
    with shift_wall_clock(timedelta(seconds=61)):
        again = await sources.claim(SLACK, 60)
        assert again
        assert again.inbox_id == lost.inbox_id
        await shelf.publish(await shelf.add("a.pdf", document=await shelf.document_of(version)))
        await sources.finish(again, {})
        late = await sources.claim(SLACK, 60)
        assert late is not None
        await sources.retry_later(late, 30)
        assert await sources.claim(SLACK, 60) is None
    with shift_wall_clock(timedelta(seconds=95)):
        assert await sources.claim(SLACK, 60) is not None


async def test_old_answers_and_placeholders_are_not_claimed(
    database: Database, shelf: NoticeShelf, sources: AnswerSources
) -> None:
    """Neither an answer older than 30 days nor a placeholder is claimed."""
    version = await shelf.add("a.pdf")
    await shelf.publish(version)
    await post(database, shelf, version)
    await shelf.publish(await shelf.add("a.pdf", document=await shelf.document_of(version)))
    old = utc_now() - MAX_AGE - timedelta(minutes=1)
    async with database.transaction() as session:
        await session.execute(update(OutboxRow).values(created_at=old))
    assert await sources.claim(SLACK, 60) is None
    async with database.transaction() as session:
        await session.execute(update(OutboxRow).values(created_at=utc_now(), state="placed"))
    assert await sources.claim(SLACK, 60) is None


async def test_the_same_content_again_marks_no_answer(
    database: Database, shelf: NoticeShelf, sources: AnswerSources
) -> None:
    """An answer whose document is back at the cited content needs no update."""
    version = await shelf.add("a.pdf")
    await shelf.publish(version)
    document = await shelf.document_of(version)
    await post(database, shelf, version)
    newer = await shelf.add("a.pdf", document=document)
    await shelf.publish(newer)
    assert [one.change for one in await sources.states([version])] == [newer]
    async with database.transaction() as session:
        for row in await session.scalars(select(PublicationRow)):
            row.state = "live" if row.version_id == version else "retired"
    assert [one.change for one in await sources.states([version])] == [None]


async def test_the_answer_of_an_edited_question_replaces_its_sources(
    database: Database, shelf: NoticeShelf, sources: AnswerSources
) -> None:
    """Shows that an edited question's new answer replaces the cited versions of the first one."""
    first, other = await shelf.add("a.pdf"), await shelf.add("b.pdf")
    await post(database, shelf, first)
    inbox = Inbox(database)
    assert await inbox.requeue_edited(Platform("slack"), "m1", "other words?")
    item = await inbox.claim("w", 60, SLACK)
    assert item is not None
    await inbox.save_answer(item, ANSWER, versions=(other, 999))
    async with database.snapshot() as session:
        assert list(await session.scalars(select(col(AnswerSourceRow.version_id)))) == [other]
