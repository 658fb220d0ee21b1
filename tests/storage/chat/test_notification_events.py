"""Notices: recorded once each, batched, leased and posted, on both databases."""

from __future__ import annotations

from datetime import timedelta

import pytest
from fakes.notice_shelf import LEASE, NoticeShelf, open_shelf, recent_notices
from harness.clocks import shift_wall_clock
from sqlalchemy import select

from storage.chat.notification_events import (
    record_failed,
    record_folder,
    record_live,
    record_unstorable,
    record_unsupported,
)
from storage.clock import utc_now
from storage.errors import LeaseLost
from storage.models import ChannelKey, Platform, Rung
from storage.queues.planner import Generations
from storage.queues.reading_queue import MAX_ATTEMPTS, ReadingQueue
from storage.sql.database import Database
from storage.sql.leased_queue import LeasedQueue
from storage.sql.tables import DocumentRow, FolderRow, PublicationRow, ReadingRow, VersionRow

GENERATIONS = Generations(quick="g1", full=None)


@pytest.fixture
async def shelf(database: Database) -> NoticeShelf:
    """An empty folder of one channel."""
    return await open_shelf(database, ChannelKey(Platform.LOCAL, "", "it"))


async def test_a_version_is_announced_once_however_often_published(shelf: NoticeShelf) -> None:
    """Shows that republishing, as a rename or a repair does, adds no notice."""
    version = await shelf.add("a.pdf")
    assert await shelf.publish(version)
    assert await shelf.publish(version)
    (notice,) = await shelf.told()
    assert (notice.kind, notice.version_id, notice.state) == ("live", version, "waiting")


async def test_recording_a_notice_again_keeps_the_first(shelf: NoticeShelf) -> None:
    """Shows that the unique key of a notice makes recording idempotent."""
    version = await shelf.add("a.pdf")
    await shelf.publish(version)
    batch = await shelf.notices.claim(await shelf.notices.waiting(), LEASE)
    await shelf.notices.finish(batch, "posted")
    async with shelf.database.transaction() as session:
        publication = await session.scalar(select(PublicationRow))
        assert publication is not None
        await record_live(session, publication)
    assert [notice.state for notice in await shelf.told()] == ["posted"]


async def test_a_batch_leaves_out_replaced_versions(
    shelf: NoticeShelf,
) -> None:
    """Shows that a batch holds only what still holds when it is read."""
    first = await shelf.add("a.pdf")
    await shelf.publish(first)
    second = await shelf.add("a.pdf", document=await shelf.document_of(first))
    await shelf.publish(second)
    assert len(await shelf.told()) == 2
    batch = await shelf.notices.claim(await shelf.notices.waiting(), LEASE)
    total, live = (await shelf.notices.read(batch, 5))["live"]
    assert (total, [notice.version_id for notice in live]) == (1, [second])
    assert live[0].number > 1


async def test_a_failure_is_announced_after_the_last_attempt(shelf: NoticeShelf) -> None:
    """Shows that earlier attempts add no notice, and that the notice has the reason."""
    version = await shelf.add("bad.pdf", state="waiting")
    work = ReadingQueue(LeasedQueue(shelf.database, ReadingRow, "worker", LEASE), GENERATIONS)
    for attempt in range(MAX_ATTEMPTS):
        assert not await shelf.told()
        with shift_wall_clock(timedelta(minutes=attempt)):
            claim = await work.claim(Rung.QUICK)
            assert claim is not None
            await work.fail(claim, "save a copy without a password")
    (notice,) = await shelf.told()
    assert (notice.kind, notice.version_id, notice.text) == (
        "failed",
        version,
        "save a copy without a password",
    )


async def test_each_file_with_a_failed_content_is_announced(shelf: NoticeShelf) -> None:
    """Two files of one content get one notice each."""
    version = await shelf.add("one.pdf", state="failed")
    async with shelf.database.transaction() as session:
        sha256 = (await session.get_one(VersionRow, version)).sha256
        twin = DocumentRow(channel_id=shelf.channel.id, folder_id=shelf.folder, file="two.pdf")
        session.add(twin)
        await session.flush()
        session.add(VersionRow(document_id=twin.id, number=1, sha256=sha256))
        await session.flush()
        for _ in range(2):
            await record_failed(session, {sha256})
    assert len({notice.document_id for notice in await shelf.told()}) == len(await shelf.told()) == 2


async def test_a_refused_file_is_announced_once_per_reason(shelf: NoticeShelf) -> None:
    """Shows that a repeated scan adds no notice for the same reason."""
    version = await shelf.add("big.pdf")
    async with shelf.database.transaction() as session:
        document = await session.get_one(
            DocumentRow, (await session.get_one(VersionRow, version)).document_id
        )
        for reason in ("too large", "too large", "not a PDF"):
            await record_unstorable(session, document, reason)
    assert [notice.text for notice in await shelf.told()] == ["too large", "not a PDF"]


async def test_folder_problems_are_announced_when_they_change(shelf: NoticeShelf) -> None:
    """Only changes add notices; a batch shows each folder's current state."""
    for problem in ("it is empty", "it is empty", None, "it is gone"):
        async with shelf.database.transaction() as session:
            await record_folder(session, shelf.folder, problem)
            (await session.get_one(FolderRow, shelf.folder)).problem = problem
    assert [notice.text for notice in await shelf.told()] == ["it is empty", None, "it is gone"]
    batch = await shelf.notices.claim(await shelf.notices.waiting(), LEASE)
    total, folders = (await shelf.notices.read(batch, 5))["folder"]
    assert (total, folders[0].text, folders[0].location) == (1, "it is gone", f"/srv/{shelf.channel.id}")


async def test_an_unsupported_file_is_announced_once_as_unreadable(
    shelf: NoticeShelf,
) -> None:
    """Shows that a batch lists unsupported files with failed ones, and that seeing one again adds nothing."""
    for _ in range(2):
        async with shelf.database.transaction() as session:
            folder = await session.get_one(FolderRow, shelf.folder)
            await record_unsupported(session, folder, {"deep/a:b.docx": "Only PDFs are read."})
    await shelf.fail(await shelf.add("a.pdf", "failed"))
    batch = await shelf.notices.claim(await shelf.notices.waiting(), LEASE)
    total, failed = (await shelf.notices.read(batch, 5))["failed"]
    assert (total, [(one.kind, one.file) for one in failed]) == (
        2,
        [("failed", "a.pdf"), ("failed", "deep/a:b.docx")],
    )
    assert failed[1].text == "Only PDFs are read."


async def test_a_claimed_batch_is_posted_by_its_owner_only(shelf: NoticeShelf) -> None:
    """Claimed notices are not pending, and a batch that was taken over cannot be posted by its old owner."""
    await shelf.publish(await shelf.add("a.pdf"))
    groups = await shelf.notices.waiting()
    first = await shelf.notices.claim(groups, LEASE)
    assert await shelf.notices.waiting() == []
    with shift_wall_clock(timedelta(seconds=LEASE + 1)):
        second = await shelf.notices.claim(await shelf.notices.waiting(), LEASE)
        await shelf.notices.mark_posting(second, shelf.channel.id, LEASE)
    with pytest.raises(LeaseLost):
        await shelf.notices.mark_posting(first, shelf.channel.id, LEASE)


async def test_a_batch_of_a_dead_poster_is_taken_over_once(shelf: NoticeShelf) -> None:
    """Shows that a batch being posted is left alone until its lease expires, and then gets one new owner."""
    await shelf.publish(await shelf.add("a.pdf"))
    batch = await shelf.notices.claim(await shelf.notices.waiting(), LEASE)
    await shelf.notices.mark_posting(batch, shelf.channel.id, LEASE)
    assert await shelf.notices.claim_interrupted(LEASE) is None
    with shift_wall_clock(timedelta(seconds=LEASE + 1)):
        taken = await shelf.notices.claim_interrupted(LEASE)
        assert taken is not None
        assert (taken.id, taken.told_in) == (batch, shelf.channel.id)
        assert await shelf.notices.claim_interrupted(LEASE) is None


async def test_expired_notices_stay_in_the_console(shelf: NoticeShelf) -> None:
    """An expired notice is no longer pending and still among the recent ones."""
    await shelf.publish(await shelf.add("a.pdf"))
    assert await shelf.notices.expire(utc_now() - timedelta(days=1)) == 0
    assert await shelf.notices.expire(utc_now() + timedelta(seconds=1)) == 1
    assert await shelf.notices.waiting() == []
    (recent,) = await recent_notices(shelf.database, shelf.channel.id, 5)
    assert recent.file == "a.pdf"


async def test_sample_questions_come_from_live_versions(shelf: NoticeShelf) -> None:
    """Returns one of each version in turn, newest first, and none of a replaced version."""
    older, newer = await shelf.add("a.pdf"), await shelf.add("b.pdf")
    for version in (older, newer, await shelf.add("c.pdf")):
        await shelf.publish(version)
    first, second, _ = await shelf.told()
    await shelf.notices.store_questions(first.id, ["A?", "AA?"])
    await shelf.notices.store_questions(second.id, ["B?"])

    async def tried() -> list[tuple[str, str]]:
        found = await shelf.notices.sample_questions(shelf.channel.id, 5)
        return [(notice.file, text) for notice, text in found]

    assert await tried() == [("b.pdf", "B?"), ("a.pdf", "A?"), ("a.pdf", "AA?")]
    await shelf.publish(await shelf.add("b.pdf", document=await shelf.document_of(newer)))
    assert await tried() == [("a.pdf", "A?"), ("a.pdf", "AA?")]
    assert await shelf.notices.sample_questions(shelf.channel.id + 1, 5) == []


@pytest.mark.parametrize("state", ["waiting", "posting"])
async def test_a_lease_from_a_fast_clock_is_ignored(shelf: NoticeShelf, state: str) -> None:
    """Shows that a lease written two hours ahead blocks nothing."""
    await shelf.publish(await shelf.add("a.pdf"))
    groups = await shelf.notices.waiting()
    with shift_wall_clock(timedelta(hours=2)):
        batch = await shelf.notices.claim(groups, LEASE)
        if state == "posting":
            await shelf.notices.mark_posting(batch, groups[0].channel_id, LEASE)
    if state == "waiting":
        assert [group.count for group in await shelf.notices.waiting()] == [1]
    else:
        taken = await shelf.notices.claim_interrupted(LEASE)
        assert taken is not None
        assert taken.id == batch
