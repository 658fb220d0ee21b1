"""Uploads: stored once each and counted against the channel's quota, on both databases."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest
from fakes.notice_shelf import LEASE, NoticeShelf, open_shelf

from storage.chat.channels import Channels
from storage.chat.notification_events import record_restored
from storage.chat.uploads import Uploads
from storage.chat_models import CHANNELS_PER_INSTALLATION_QUOTA, NewUpload, Upload, UploadQuota, UploadRefusal
from storage.models import ChannelKey, Platform
from storage.sql.audit import AuditedAction, AuditLog
from storage.sql.database import Database
from storage.sql.tables import DocumentRow, FolderRow, UploadRow, VersionRow

IT = ChannelKey(Platform("slack"), "T1", "C1")
QUOTA = UploadQuota(files=3, size=100)
ADDRESS = {"channel": "C1", "thread": "17.1"}


def new(channel: int, key: str, sha256: str = "", size: int = 10) -> NewUpload:
    """Return an upload by Alice."""
    return NewUpload(channel, key, "slack:T1:U1", sha256 or key, size, ADDRESS)


def called(name: str) -> Any:
    """Return a function that always chooses this name."""
    return lambda taken: name


@pytest.fixture
async def shelf(database: Database) -> NoticeShelf:
    """A channel with a folder in the inbox."""
    shelf = await open_shelf(database, IT)
    async with database.transaction() as session:
        (await session.get_one(FolderRow, shelf.folder)).origin = "inbox"
    return shelf


async def keep(shelf: NoticeShelf, key: str, name: str, **values: Any) -> Upload:
    """Store an upload that must be accepted."""
    kept = await Uploads(shelf.database).keep(new(shelf.channel.id, key, **values), called(name), QUOTA)
    assert isinstance(kept, Upload)
    return kept


async def test_an_upload_is_stored_once_under_the_chosen_name(shelf: NoticeShelf) -> None:
    """The same message again returns the same upload; the naming function receives the names in use."""
    uploads = Uploads(shelf.database)
    first = await keep(shelf, "m1", "a.pdf")
    assert await keep(shelf, "m1", "other.pdf") == first
    taken: list[str] = []

    def choose(names: Collection[str]) -> str:
        taken.extend(names)
        return "a (2).pdf"

    second = await uploads.keep(new(shelf.channel.id, "m2"), choose, QUOTA)
    assert taken == ["a.pdf"]
    assert [one.name for one in await uploads.of_channel(shelf.channel.id)] == ["a.pdf", "a (2).pdf"]
    assert await uploads.find(shelf.channel.id, "m2") == second
    assert await uploads.find(shelf.channel.id, "m3") is None
    assert await uploads.address(first.id) == ADDRESS


async def test_a_quota_counts_the_uploads_of_its_channel_only(shelf: NoticeShelf) -> None:
    """Both limits are exact to the byte, and removing an upload frees its share."""
    uploads, channel = Uploads(shelf.database), shelf.channel.id
    other = await Channels(shelf.database).ensure(ChannelKey(Platform("slack"), "T1", "C2"))
    await uploads.keep(new(other.id, "m0", size=90), called("a.pdf"), QUOTA)
    first = await keep(shelf, "m1", "a.pdf", size=60)
    large = await uploads.keep(new(channel, "m2", size=41), called("b.pdf"), QUOTA)
    assert large == (UploadRefusal.TOO_LARGE, "")
    await keep(shelf, "m3", "b.pdf", size=40)
    await keep(shelf, "m4", "c.pdf", size=0)
    assert await uploads.keep(new(channel, "m5", size=0), called("d.pdf"), QUOTA) == (
        UploadRefusal.TOO_MANY,
        "",
    )
    await uploads.forget(first)
    await keep(shelf, "m5", "d.pdf", size=60)


async def test_an_installation_has_an_upload_limit_of_its_own(shelf: NoticeShelf) -> None:
    """Creating more channels does not raise the limit; another workspace is unaffected."""
    uploads, channels = Uploads(shelf.database), Channels(shelf.database)
    full = UploadRefusal.INSTALLATION_FULL, ""
    quota, huge = UploadQuota(2, 100), UploadQuota(1000, 10_000)
    last = await channels.ensure(ChannelKey(Platform("slack"), "T1", "C9"))
    large = await uploads.keep(
        new(shelf.channel.id, "m1", size=100 * CHANNELS_PER_INSTALLATION_QUOTA - 1), called("a.pdf"), huge
    )
    assert isinstance(large, Upload)
    assert await uploads.keep(new(last.id, "m2", size=2), called("b.pdf"), quota) == full
    for other in (ChannelKey(Platform("slack"), "T2", "C1"), ChannelKey(Platform("teams"), "T1", "C1")):
        channel = await channels.ensure(other)
        assert isinstance(await uploads.keep(new(channel.id, "m1"), called("a.pdf"), quota), Upload)
    assert isinstance(await uploads.keep(new(last.id, "m3", size=1), called("b.pdf"), quota), Upload)
    await uploads.forget(large)
    async with shelf.database.transaction() as session:
        row = {"channel_id": shelf.channel.id, "uploader": "U1", "size": 0, "address": {}}
        many = [str(number) for number in range(2 * CHANNELS_PER_INSTALLATION_QUOTA - 1)]
        session.add_all(UploadRow(key=one, name=one, sha256=one, **row) for one in many)
    assert await uploads.keep(new(last.id, "m4", size=0), called("c.pdf"), quota) == full


async def test_libraries_have_the_quota_of_a_channel_each(shelf: NoticeShelf) -> None:
    """Libraries belong to no installation: together they may exceed its limit."""
    uploads, channels = Uploads(shelf.database), Channels(shelf.database)
    quota = UploadQuota(1, 100)
    for number in range(CHANNELS_PER_INSTALLATION_QUOTA + 1):
        library = await channels.ensure_library(f"Library {number}")
        kept = await uploads.keep(new(library.id, "m1", size=100), called("a.pdf"), quota)
        assert isinstance(kept, Upload), number
    assert await uploads.keep(new(library.id, "m2"), called("b.pdf"), quota) == (UploadRefusal.TOO_MANY, "")


async def test_duplicate_bytes_are_found_within_the_channel(shelf: NoticeShelf) -> None:
    """Duplicates of uploads and dropped files are found; deleted ones and other channels do not count."""
    uploads, channel = Uploads(shelf.database), shelf.channel.id
    await keep(shelf, "m1", "a.pdf", sha256="s1")
    again = await uploads.keep(new(channel, "m2", "s1"), called("b.pdf"), QUOTA)
    assert again == (UploadRefusal.KNOWN, "a.pdf")
    version = await shelf.add("deep/dropped.pdf")
    async with shelf.database.snapshot() as session:
        sha256 = (await session.get_one(VersionRow, version)).sha256
    dropped = await uploads.keep(new(channel, "m3", sha256), called("b.pdf"), QUOTA)
    assert dropped == (UploadRefusal.KNOWN, "dropped.pdf")
    other = await Channels(shelf.database).ensure(ChannelKey(Platform("slack"), "T1", "C2"))
    assert isinstance(await uploads.keep(new(other.id, "m4", sha256), called("b.pdf"), QUOTA), Upload)
    async with shelf.database.transaction() as session:
        (await session.get_one(DocumentRow, await shelf.document_of(version))).state = "deleted"
    assert isinstance(await uploads.keep(new(channel, "m5", sha256), called("b.pdf"), QUOTA), Upload)


async def test_an_upload_finds_its_document(shelf: NoticeShelf) -> None:
    """A file of the same path in another kind of folder is another document."""
    uploads = Uploads(shelf.database)
    upload = await keep(shelf, "m1", "a.pdf")
    assert await uploads.document(upload) is None
    version = await shelf.add("uploads/a.pdf")
    found = await uploads.document(upload)
    assert found is not None
    assert (found.folder_id, found.id) == (shelf.folder, await shelf.document_of(version))
    async with shelf.database.transaction() as session:
        (await session.get_one(FolderRow, shelf.folder)).origin = "map"
    assert await uploads.document(upload) is None


async def test_removing_an_upload_is_audited(shelf: NoticeShelf) -> None:
    """The upload is deleted and its audit entry stays."""
    upload = await keep(shelf, "m1", "a.pdf")
    action = AuditedAction("slack:T1:U1", "remove_upload", shelf.channel.tenant, str(upload.id))
    await Uploads(shelf.database).forget(upload, action)
    assert await Uploads(shelf.database).of_channel(shelf.channel.id) == []
    assert [one.action for one in await AuditLog(shelf.database).latest()] == ["remove_upload"]


async def test_each_upload_has_a_notice_batch_of_its_own(shelf: NoticeShelf) -> None:
    """A live upload, a failed one and a dropped file form three groups, claimed one by one."""
    good, bad = await keep(shelf, "m1", "a.pdf"), await keep(shelf, "m2", "b.pdf")
    await shelf.publish(await shelf.add("uploads/a.pdf"))
    await shelf.fail(await shelf.add("uploads/b.pdf", state="failed"))
    await shelf.publish(await shelf.add("dropped.pdf"))
    groups = await shelf.notices.waiting()
    assert {one.upload for one in groups} == {good.id, bad.id, None}
    (own,) = [one for one in groups if one.upload == good.id]
    batch = await shelf.notices.claim([own], LEASE)
    found = await shelf.notices.read(batch, 5)
    assert [one.file for one in found["live"][1]] == ["uploads/a.pdf"]
    assert found["failed"][0] == 0
    await shelf.notices.mark_posting(batch, shelf.channel.id, 0)
    left = await shelf.notices.claim_interrupted(LEASE)
    assert left is not None
    assert left.upload == good.id


async def test_uploading_a_removed_file_again_sends_a_new_receipt(shelf: NoticeShelf) -> None:
    """Removing an upload and adding the same bytes again is announced; a dropped file is not."""
    version, dropped = await shelf.add("uploads/a.pdf"), await shelf.add("dropped.pdf")
    first = await keep(shelf, "m1", "a.pdf", sha256="s1")
    await shelf.publish(version)
    await shelf.publish(dropped)
    await Uploads(shelf.database).forget(first)
    second = await keep(shelf, "m2", "a.pdf", sha256="s1")
    async with shelf.database.transaction() as session:
        for one in (version, dropped):
            await record_restored(session, await shelf.document_of(one))
    assert [notice.upload_id for notice in await shelf.told()] == [first.id, None, second.id]
