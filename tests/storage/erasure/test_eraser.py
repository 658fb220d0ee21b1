"""Erasure: canary words enter a home by every endpoint, on both databases, and none is left afterwards."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from engines.s3 import RealS3
from sqlalchemy import select, update
from sqlmodel import col

from storage.chat.answer_sources import AnswerSources, Subscriptions
from storage.chat.channels import Channels
from storage.chat.citations import Citations
from storage.chat.feedback import FeedbackStore, FeedbackVerdict, hash_person
from storage.chat.inbox import Inbox
from storage.chat.traces import QuestionRecords, baseline_fact
from storage.chat_models import NewTurn
from storage.clock import utc_now
from storage.erasure.data_inventory import TABLES
from storage.erasure.eraser import Eraser
from storage.erasure.targets import ErasureTarget, channel_target, document_target, person_target
from storage.errors import SettingsError, StillInFolder
from storage.files.blobs import Blobs
from storage.files.reading_archive import ReadingArchive
from storage.files.reading_files import ReadingFiles
from storage.folders.folders import Folders
from storage.index.base import IndexedChunk
from storage.index.embedded.index import EmbeddedIndex
from storage.installations.api_tokens import ApiTokens
from storage.models import Channel, ChannelKey, Chunk, CitedPlace, Page, PageImage, Platform, TenantName
from storage.queues.index_rebuilds import IndexRebuilds
from storage.queues.local_copies import LocalCopies
from storage.sql.audit import HEAD_FACT, AuditedAction, AuditLog
from storage.sql.database import Database
from storage.sql.tables import (
    BlobRow,
    ChannelRow,
    DocumentRow,
    FactRow,
    FolderRow,
    InboxRow,
    NoticeRow,
    PublicationRow,
    ReadingRow,
    SQLModel,
    UploadRow,
    VersionRow,
)

# Canary: in everything to be erased; other: in everything that must stay.
CANARY, OTHER = "quaggazephyr", "heronmosaic"
ANNA, BEN = "slack:T1ABC:U1ANNA", "slack:T1ABC:U1BEN"
SLACK = (Platform("slack"),)
ACTION = AuditedAction("local", "erase", "sl_T1ABC_C1ABC", "1")


class ToldIndex(EmbeddedIndex):
    """An index that can refuse to scrub, and that runs a hook before it drops a tenant."""

    before_drop: Callable[[], Awaitable[None]] | None = None

    async def drop_tenant(self, tenant: TenantName) -> None:
        """Run the hook, then drop the tenant."""
        if self.before_drop:
            await self.before_drop()
        await super().drop_tenant(tenant)


@dataclass
class Home:
    """A home whose channels have a document and conversations each."""

    path: Path
    url: str
    database: Database
    index: ToldIndex
    blobs: Blobs
    files: ReadingFiles

    @property
    def eraser(self) -> Eraser:
        """Return an eraser that waits for no other process."""
        return Eraser(
            self.database,
            blobs=self.blobs,
            files=self.files,
            index=self.index,
            settle_seconds=0,
        )

    async def mark_deleted(self) -> None:
        """Soft-delete all documents, as scans do."""
        async with self.database.transaction() as session:
            await session.execute(update(DocumentRow).values(state="deleted", deleted_at=utc_now()))

    async def shelve(self, channel: Channel, word: str, *, watched: bool = False) -> VersionRow:
        """Add a document whose path, title, text, index, page images and receipt contain a word."""
        sha256 = word.encode().hex().ljust(64, "0")
        temporary = self.blobs.new_temporary()
        temporary.write_text(word)
        self.blobs.adopt(temporary, sha256)
        pictures = self.path / "images"
        pictures.mkdir(exist_ok=True)
        (pictures / f"{sha256}-1-96.png").write_text(word)
        place = self.path / "inbox" / channel.name
        if watched:
            place.mkdir(parents=True)
            (place / f"{word}.pdf").write_text(word)
        folders = Folders(self.database)
        folder = await folders.ensure(channel.id, str(place), watched=watched, origin="inbox")
        async with self.database.transaction() as session:
            session.add(BlobRow(sha256=sha256, size=1))
            await session.flush()
            document = DocumentRow(channel_id=channel.id, folder_id=folder.id, file=f"{word}.pdf")
            reading = ReadingRow(
                sha256=sha256, generation="1", rung="full", state="done", title=f"The {word} manual", chunks=1
            )
            session.add_all([document, reading])
            await session.flush()
            version = VersionRow(document_id=document.id, number=1, sha256=sha256)
            session.add(version)
            await session.flush()
            publication = PublicationRow(
                channel_id=channel.id, version_id=version.id, reading_id=reading.id, state="live"
            )
            notice = NoticeRow(
                kind="live",
                key=word,
                channel_id=channel.id,
                document_id=document.id,
                version_id=version.id,
                questions=[f"What is a {word}?"],
            )
            session.add_all([publication, notice])
        chunk = Chunk(0, f"A {word} rests.", 3, (), (), ((0, 1),))
        await self.files.write(reading.id, [Page(1, "", 10, 10, f"A {word} rests.", ())], [chunk], None)
        indexed = IndexedChunk(publication.id, 0, word, f"A {word} rests.", 1, 1, (), ())
        await self.index.ensure_tenant(channel.tenant)
        await self.index.write(channel.tenant, [indexed])
        return version

    async def upload(self, channel: Channel, word: str, version: VersionRow) -> None:
        """Mark a document as uploaded by Anna."""
        async with self.database.transaction() as session:
            document = await session.get_one(DocumentRow, version.document_id)
            document.file = f"uploads/{word}.pdf"
            values = {"name": f"{word}.pdf", "sha256": "1", "size": 1, "address": {"channel": "C1ABC"}}
            session.add(UploadRow(channel_id=channel.id, key=word, uploader=ANNA, **values))

    async def uploads(self) -> list[UploadRow]:
        """Return all upload rows."""
        async with self.database.snapshot() as session:
            return list(await session.scalars(select(UploadRow)))

    async def talk(
        self,
        channel: Channel,
        word: str,
        version: VersionRow | None,
        asker: str = ANNA,
        *,
        text: str = f"{CANARY}?",
    ) -> int:
        """Ask and answer a question about the word, with feedback and a subscription; return its inbox id."""
        inbox, now, key = Inbox(self.database), utc_now(), f"T1ABC:C1ABC:{uuid4()}"
        address = {"channel": "C1ABC", "key": key, "asker": asker, "user": asker.rpartition(":")[2]}
        await inbox.receive(channel, event_key=key, message_key=key, thread="1", text=text, address=address)
        item = await inbox.claim("a", 60, SLACK)
        assert item is not None
        await inbox.mark_posting(item)
        await inbox.mark_placed(item, {"id": str(item.id)})
        cited = [{"version_id": version.id, "quote": word}] if version else []
        versions = (version.id,) if version else ()
        turn = NewTurn(str(item.id), channel.id, "1", word, word, word, versions, now)
        answer = {"text": f"A {word} rests.", "citations": cited, "language": "de"}
        await inbox.save_answer(item, answer, turn, versions)
        await inbox.mark_delivered(item)
        record = {"question": word, "hits": [f"{word}.pdf p. 1"]} if version else {"question": word}
        await QuestionRecords(self.database, 30).keep(str(item.id), channel.id, now, "grounded", record)
        person = hash_person(*asker.split(":")[1:])
        bad = FeedbackVerdict.BAD
        said = await FeedbackStore(self.database).upsert(channel.id, str(item.id), person, bad, comment=word)
        assert said
        if version:
            await Citations(self.database).add(channel.id, [CitedPlace(version.id, 1, word)])
            assert await Subscriptions(self.database).add(str(item.id), CitedPlace(version.id, 1, word), "de")
        return item.id

    async def told(self) -> list[tuple[int, str | None]]:
        """Claim the "answer removed" updates; return inbox ids and languages."""
        found = []
        while (posted := await AnswerSources(self.database).claim(SLACK, 60)) is not None:
            if posted.removed_in is not None:
                found.append((posted.inbox_id, posted.removed_in))
            await AnswerSources(self.database).finish(posted, {})
        return found

    async def places(self, word: str) -> set[str]:
        """Return the tables and files, in the home or of a server's database, that contain a word."""
        found = {
            str(file.relative_to(self.path))
            for file in self.path.rglob("*")
            if file.is_file() and (word.encode() in file.read_bytes() or word in file.name)
        }
        if self.url.startswith("postgresql") and any(word.encode() in one for one in _relations(self.url)):
            found.add("base")
        async with self.database.snapshot() as session:
            for name, table in SQLModel.metadata.tables.items():
                for row in await session.execute(select(table)):
                    if word in json.dumps(list(row), default=_as_text):
                        found.add(name)
        return {name.split("/")[0].removesuffix("-wal") for name in found}


def _relations(url: str) -> Iterator[bytes]:
    """Yield the files of a PostgreSQL database after a checkpoint."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CHECKPOINT")
        row = connection.execute(
            "SELECT current_setting('data_directory'), oid FROM pg_database "
            "WHERE datname = current_database()"
        ).fetchone()
    assert row is not None
    for file in Path(row[0], "base", str(row[1])).iterdir():
        with suppress(FileNotFoundError):  # PostgreSQL creates and deletes this cache at any time
            yield file.read_bytes()


def _as_text(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


@pytest.fixture
async def home(tmp_path: Path, database_url: str, database: Database) -> Any:
    """An empty home, with SQLite in it or a server's database."""
    path = tmp_path / "home"
    path.mkdir(exist_ok=True)
    made = Home(
        path,
        database_url,
        database,
        ToldIndex(path / "index", 10),
        Blobs(path / "blobs"),
        ReadingFiles(path / "readings"),
    )
    yield made
    await made.index.aclose()


@pytest.fixture
async def channel(database: Database) -> Channel:
    """A Slack channel named like the canary."""
    key = ChannelKey(Platform("slack"), "T1ABC", "C1ABC")
    return await Channels(database).ensure(key, CANARY)


TABLES_OF_DOCUMENT = "citation document feedback notice outbox question_record reading subscription turn"
WITH_DOCUMENT = {*TABLES_OF_DOCUMENT.split(), "blobs", "images", "index", "readings"}


async def test_a_document_is_erased_everywhere_and_its_neighbour_stays(home: Home) -> None:
    """Not a byte is left in SQL, its file, index, blobs, readings and page images."""
    key = ChannelKey(Platform("slack"), "T1ABC", "C1ABC")
    channel = await Channels(home.database).ensure(key, "it")
    direct = await Channels(home.database).ensure(key._replace(conversation="D1"), is_direct=True)
    version = await home.shelve(channel, CANARY)
    asked = "When does it rest?"
    answered = [
        await home.talk(channel, CANARY, version, text=asked),
        await home.talk(direct, CANARY, version, BEN, text=asked),
    ]
    await home.talk(channel, OTHER, await home.shelve(channel, OTHER), text=asked)
    held = "base" if home.url.startswith("postgresql") else "footnote.db"
    assert await home.places(CANARY) >= {*WITH_DOCUMENT, held}
    stays = await home.places(OTHER)
    target = await document_target(home.database, channel, f"{CANARY}.pdf")
    preview = await home.eraser.preview(target)
    report = await home.eraser.erase(target, ACTION)
    assert await home.places(CANARY) == set()
    assert (report.blobs, report.readings, report.pictures, report.publications) == (1, 1, 1, 1)
    assert (preview.rows, preview.texts, preview.blobs) == (report.rows, report.texts, 1)
    assert report.messages == 2
    assert await home.told() == [(id, "de") for id in answered]
    assert await home.places(OTHER) == stays
    assert [(one.action, one.subject) for one in await AuditLog(home.database).latest()] == [("erase", "1")]


async def unscrubbed(home: Home, *words: str) -> tuple[Channel, IndexRebuilds]:
    """Return a channel with a document per word, in an index that cannot scrub deleted words."""
    channel = await Channels(home.database).ensure(ChannelKey(Platform("slack"), "T1ABC", "C1ABC"), "it")
    for word in words:
        await home.shelve(channel, word)
    home.index.upkeep = None
    return channel, IndexRebuilds(home.database)


async def test_an_index_that_keeps_deleted_words_is_rebuilt_on_request(home: Home) -> None:
    """The preview counts what is reindexed, and the old tenant is dropped."""
    channel, rebuilds = await unscrubbed(home, CANARY, OTHER)
    target = await document_target(home.database, channel, f"{CANARY}.pdf")
    assert (await home.eraser.preview(target)).reindexed == 0
    assert (await home.eraser.preview(target, rebuilds_index=True)).reindexed == 1
    assert (await home.eraser.erase(target, ACTION)).reindexed == 0
    assert (await home.index.has_tenant(channel.tenant), await rebuilds.running()) == (True, {})
    assert (await home.eraser.erase(target, ACTION, rebuilds_index=True)).reindexed == 1
    assert not await home.index.has_tenant(channel.tenant)
    assert (await rebuilds.running()).keys() == {channel.id}
    await home.mark_deleted()
    whole = await channel_target(home.database, channel)
    assert (await home.eraser.erase(whole, ACTION, rebuilds_index=True)).reindexed == 0
    assert await rebuilds.sequence(channel.id) == 0


async def test_an_index_without_other_documents_is_only_dropped(home: Home) -> None:
    """Shows that no rebuild stays open for a channel without another document."""
    channel, rebuilds = await unscrubbed(home, CANARY)
    target = await document_target(home.database, channel, f"{CANARY}.pdf")
    await home.eraser.erase(target, ACTION, rebuilds_index=True)
    assert (await home.index.has_tenant(channel.tenant), await rebuilds.running()) == (False, {})


async def test_an_index_that_cannot_be_rebuilt_is_not_dropped(home: Home) -> None:
    """Shows that a neighbour with a lost reading keeps its place in the index."""
    channel, rebuilds = await unscrubbed(home, CANARY, OTHER)
    async with home.database.transaction() as session:
        lost = update(ReadingRow).where(col(ReadingRow.title).contains(OTHER))
        await session.execute(lost.values(state="failed"))
    target = await document_target(home.database, channel, f"{CANARY}.pdf")
    report = await home.eraser.erase(target, ACTION, rebuilds_index=True)
    assert (report.reindexed, report.hindering) == (0, 1)
    assert (await home.index.has_tenant(channel.tenant), await rebuilds.running()) == (True, {})


async def test_a_rebuild_is_not_ended_before_the_index_is_dropped(home: Home) -> None:
    """Shows that a worker which checks between mark and drop does not leave the channel half empty."""
    channel, rebuilds = await unscrubbed(home, CANARY, OTHER)

    async def see() -> None:
        await rebuilds.end(channel.id, await rebuilds.sequence(channel.id))

    home.index.before_drop = see
    target = await document_target(home.database, channel, f"{CANARY}.pdf")
    await home.eraser.erase(target, ACTION, rebuilds_index=True)
    assert (await rebuilds.running()).keys() == {channel.id}


@pytest.mark.engine("s3")
async def test_a_document_is_erased_from_store_and_other_machines(home: Home, s3_server: RealS3) -> None:
    """No object is left in the bucket, and other machines evict their copies."""
    channel = await Channels(home.database).ensure(ChannelKey(Platform("slack"), "T1ABC", "C1ABC"), "it")
    bucket = s3_server.place()
    beside = {"": home.path, "other": home.path / "other"}
    machines = {}
    for name, path in beside.items():
        archive = ReadingArchive(bucket.store(), path / "readings", 1 << 30)
        blobs = Blobs(path / "blobs", store=bucket.store(), lock=home.database.content_lock)
        machines[name] = replace(home, blobs=blobs, files=ReadingFiles(path / "readings", archive))
    one, other = machines[""], machines["other"]
    await one.shelve(channel, CANARY)
    await one.shelve(channel, OTHER)
    async with home.database.snapshot() as session:
        rows = list(await session.scalars(select(ReadingRow)))
    for row in rows:
        one.blobs.upload_image(
            one.blobs.images.write(f"{row.sha256}-1-132", PageImage(b"\x89PNG", "image/png"))
        )
    held = bucket.keys()
    for row in rows:
        assert await other.files.chunks(row.id)
        place = other.blobs.path(row.sha256)
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(one.blobs.path(row.sha256).read_bytes())
    (gone,) = [row for row in rows if CANARY in str(row.title)]
    other.blobs.images.write(f"{gone.sha256}-1-96", PageImage(CANARY.encode(), "image/png"))
    report = await one.eraser.erase(await document_target(home.database, channel, f"{CANARY}.pdf"), ACTION)
    assert (report.blobs, report.readings, report.pictures) == (1, 1, 2)
    assert await home.places(CANARY) == {"other"}
    assert len(held) == 6
    assert set(held) - set(bucket.keys()) == {
        f"blobs/{gone.sha256[:2]}/{gone.sha256}",
        f"images/{gone.sha256[:2]}/{gone.sha256}/{gone.sha256}-1-132",
        f"readings/{gone.id.hex[:2]}/{gone.id}.zip",
    }
    await LocalCopies(home.database, other.blobs, other.files).evict_unknown()
    assert await home.places(CANARY) == set()
    assert len(other.blobs.cached()) == 1


async def test_a_channel_is_erased_completely(home: Home, channel: Channel) -> None:
    """Includes questions, notices, web pages and the channel's name."""
    version = await home.shelve(channel, CANARY)
    await home.talk(channel, CANARY, version)
    await home.talk(channel, CANARY, None, BEN)
    async with home.database.transaction() as session:
        folder = await session.scalar(select(FolderRow))
        assert folder is not None
        session.add(FactRow(name=f"strangers {folder.id}", value=json.dumps({f"{CANARY}.txt": "no PDF"})))
        session.add(FactRow(name=baseline_fact(channel.id), value=json.dumps({CANARY: 0.5})))
    other = await Channels(home.database).ensure(ChannelKey(Platform("slack"), "T1ABC", "C2ABC"), OTHER)
    elsewhere = await home.shelve(other, OTHER)
    await home.talk(other, OTHER, elsewhere, text=OTHER)
    await Citations(home.database).add(channel.id, [CitedPlace(elsewhere.id, 1, CANARY)])  # as of a web page
    stays = await home.places(OTHER)
    report = await home.eraser.erase(await channel_target(home.database, channel), ACTION)
    assert await home.places(CANARY) == set()
    assert report.messages == 2
    assert await home.places(OTHER) == stays
    assert not await home.index.has_tenant(channel.tenant)
    # The row stays, without a name, until the messages are updated; then it is deleted.
    assert len(await home.told()) == 2
    left = [one for one in await Channels(home.database).left_before(utc_now() + timedelta(days=1))]
    assert [(one.tenant, one.name) for one in left] == [(channel.tenant, channel.tenant)]
    await home.eraser.erase_left_channels(Channels(home.database), utc_now() + timedelta(seconds=1))
    async with home.database.snapshot() as session:
        assert [row.name for row in await session.scalars(select(ChannelRow))] == [OTHER]


async def test_a_file_that_arrives_during_an_erasure_stays(home: Home, channel: Channel) -> None:
    """Shows that the erasure deletes what it listed and leaves the channel to the new file."""
    await home.talk(channel, CANARY, await home.shelve(channel, CANARY))
    target = await channel_target(home.database, channel)
    await home.shelve(channel, OTHER)
    report = await home.eraser.erase(target, ACTION)
    assert report.rows["document"] == 1
    async with home.database.snapshot() as session:
        assert [row.file for row in await session.scalars(select(DocumentRow))] == [f"{OTHER}.pdf"]
        assert {row.text for row in await session.scalars(select(InboxRow))} == {""}


async def test_a_persons_texts_are_erased_and_others_stay(home: Home, channel: Channel) -> None:
    """Covers questions, threads, traces and feedback; documents stay."""
    await home.talk(channel, CANARY, None)
    key = ChannelKey(Platform("slack"), "T1ABC", "D1")
    direct = await Channels(home.database).ensure(key, is_direct=True)
    await home.talk(direct, CANARY, None)
    asked = await home.talk(channel, OTHER, None, BEN, text=f"{OTHER}?")
    bad, anna = FeedbackVerdict.BAD, hash_person(*ANNA.split(":")[1:])
    await FeedbackStore(home.database).upsert(channel.id, str(asked), anna, bad, comment=CANARY)
    stays = await home.places(OTHER)
    await home.eraser.erase(await person_target(home.database, ANNA), ACTION)
    assert await home.places(CANARY) <= {"channel", "base", "footnote.db"}, "the channel's own name"
    assert await home.places("U1ANNA") == set()
    assert await home.places(OTHER) == stays
    async with home.database.snapshot() as session:
        rows = list(await session.scalars(select(InboxRow)))
    assert sorted((row.text, "asker" in row.address) for row in rows) == [("", False)] * 2 + [
        (f"{OTHER}?", True)
    ]


async def test_uploads_are_erased_with_document_uploader_or_channel(home: Home, channel: Channel) -> None:
    """Rows of others stay."""
    for word in (CANARY, OTHER):
        version = await home.shelve(channel, word)
        await home.upload(channel, word, version)
    await home.eraser.erase(await document_target(home.database, channel, f"uploads/{CANARY}.pdf"), ACTION)
    assert [(row.name, row.uploader) for row in await home.uploads()] == [(f"{OTHER}.pdf", ANNA)]
    await home.eraser.erase(await person_target(home.database, BEN), ACTION)
    assert len(await home.uploads()) == 1
    await home.eraser.erase(await person_target(home.database, ANNA), ACTION)
    assert await home.uploads() == []
    await home.upload(channel, OTHER, version)
    await home.eraser.erase(await channel_target(home.database, channel), ACTION)
    assert await home.uploads() == []


async def test_erasing_a_file_still_in_a_watched_folder_is_refused(home: Home, channel: Channel) -> None:
    """Applies to a file and to a channel's folder, as long as the next scan would add them again."""
    await home.shelve(channel, OTHER, watched=True)
    with pytest.raises(StillInFolder, match="delete it there first"):
        await document_target(home.database, channel, f"{OTHER}.pdf")
    with pytest.raises(StillInFolder, match="take the folder out of the inbox"):
        await channel_target(home.database, channel)
    with pytest.raises(SettingsError, match="no document"):
        await document_target(home.database, channel, "none.pdf")
    with pytest.raises(SettingsError, match="is not a person"):
        await person_target(home.database, "anna")
    place = home.path / "inbox" / channel.name
    (place / f"{OTHER}.pdf").rename(home.path / f"{OTHER}.pdf")
    assert (await document_target(home.database, channel, f"{OTHER}.pdf")).documents
    with pytest.raises(StillInFolder):  # its disk may be unmounted
        await channel_target(home.database, channel)
    await home.mark_deleted()
    assert (await channel_target(home.database, channel)).is_whole_channel, "nothing is left in the folder"
    (place / "deeper").mkdir()
    (place / "deeper" / "link").symlink_to(home.path, target_is_directory=True)
    with pytest.raises(StillInFolder):
        await channel_target(home.database, channel)
    (place / "deeper" / "link").unlink()
    (place / "deeper").rmdir()
    place.rmdir()
    assert (await channel_target(home.database, channel)).is_whole_channel
    place.parent.rmdir()
    with pytest.raises(StillInFolder):  # an unavailable inbox may come back with its files
        await channel_target(home.database, channel)


async def test_a_left_channel_is_erased_after_its_grace_period(home: Home, channel: Channel) -> None:
    """Leaving starts the period; a new question ends it."""
    channels, key = Channels(home.database), ChannelKey(Platform("slack"), "T1ABC", "C1ABC")
    await home.talk(channel, CANARY, None)
    await channels.leave(key)
    await home.eraser.erase_left_channels(channels, utc_now() - timedelta(days=1))
    assert await home.places(CANARY)
    await channels.ensure(key, CANARY)
    await home.eraser.erase_left_channels(channels, utc_now() + timedelta(days=1))
    assert await home.places(CANARY)
    await channels.leave(key)
    await home.eraser.erase_left_channels(channels, utc_now() + timedelta(days=1))
    assert await home.places(CANARY) == set()


async def test_a_left_channel_is_erased_once_its_folder_is_gone(home: Home, channel: Channel) -> None:
    """Expired conversations do not end the grace period; upload rows stay as long as their files."""
    channels, key = Channels(home.database), ChannelKey(Platform("slack"), "T1ABC", "C1ABC")
    version = await home.shelve(channel, CANARY, watched=True)
    await home.upload(channel, CANARY, version)
    await home.talk(channel, CANARY, version)
    await channels.leave(key)
    month = timedelta(days=30)
    async with home.database.transaction() as session:
        await session.execute(update(ChannelRow).values(left_at=utc_now() - month))
    await home.eraser.erase_left_channels(channels, utc_now() - month)
    async with home.database.snapshot() as session:
        assert {row.text for row in await session.scalars(select(InboxRow))} == {""}
    assert len(await home.uploads()) == 1
    assert await channels.left_before(utc_now() - month) == [], "its days begin anew"
    (home.path / "inbox" / channel.name / f"{CANARY}.pdf").unlink()
    await home.mark_deleted()
    await home.eraser.erase_left_channels(channels, utc_now() + timedelta(days=1))
    assert await home.places(CANARY) <= {CANARY, "uploads"}, "the empty folder's own name"
    assert await home.uploads() == []
    assert not await home.index.has_tenant(channel.tenant)


async def test_every_table_with_an_owner_is_emptied(home: Home, channel: Channel) -> None:
    """Shows that the data inventory and the eraser agree."""
    version = await home.shelve(channel, CANARY)
    await home.talk(channel, CANARY, version)
    await home.upload(channel, CANARY, version)
    await ApiTokens(home.database).create(CANARY, channel, "local")
    moved = ChannelKey(Platform("slack"), "T1ABC", "C9ABC")
    await Channels(home.database).move(moved._replace(conversation="C1ABC"), moved)
    await home.eraser.erase(await channel_target(home.database, channel), ACTION)
    full = set()
    async with home.database.snapshot() as session:
        for name, table in SQLModel.metadata.tables.items():
            if TABLES[name].owners and (await session.execute(select(table))).first() is not None:
                full.add(name)
        facts = list(await session.scalars(select(col(FactRow.name))))
    # Ids of the message that will say so; a digest, as in the audit log.
    assert full <= {"channel", "inbox", "outbox", "fact"}
    assert facts == [HEAD_FACT]


def test_the_audit_names_an_erasure_without_its_text() -> None:
    """Shows that a person is named by the hash used for feedback."""
    assert ErasureTarget(person=ANNA).subject == hash_person("T1ABC", "U1ANNA")
