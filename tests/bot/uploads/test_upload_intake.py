"""Intake of uploaded files: a document or a clear refusal, whatever crashes."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from fakes.core import make_status
from harness.clocks import shift_wall_clock
from harness.empty_homes import make_sqlite
from harness.full_disk import full_disk
from samples.paper import pdf

from bot.answers.understanding.direct_libraries import DirectLibraries
from bot.core.errors import DeliveryError, FileNotReady, FileUnavailable
from bot.core.models import Language
from bot.core.wording import reply_words
from bot.uploads.file_host import FileDownload, FileHost
from bot.uploads.upload_intake import (
    MAX_FETCH_TIME,
    MISSING_FILE_GRACE,
    UploadIntake,
    UploadPolicy,
    UploadRules,
)
from storage.chat.channels import Channels, DirectLibrary
from storage.chat.uploads import Uploads
from storage.chat_models import CHAT_KEY, UPLOAD_KEY, InboxItem, Upload, UploadQuota, UploadRefusal
from storage.clock import utc_now
from storage.documents.catalog import Catalog
from storage.models import Channel, ChannelKey, DocumentStatus, Platform
from storage.sql.database import Database

WORDS = reply_words(Language.ENGLISH)
PDF = pdf("Backups run daily at 2:00 AM.")
MEGABYTE = 1 << 20


class Killed(BaseException):
    """Simulates a crash of the process."""


class MortalUploads(Uploads):
    """Can crash before and after an upload is stored."""

    def __init__(self, database: Database, die: Callable[[str], None]) -> None:
        super().__init__(database)
        self._die = die

    async def keep(self, *given: Any) -> Upload | tuple[UploadRefusal, str]:
        """Store the upload."""
        self._die("before it is kept")
        kept = await super().keep(*given)
        self._die("before it has its name")
        return kept


class KnowingCatalog(Catalog):
    """A catalog with additional files in given states."""

    def __init__(self, database: Database, states: Mapping[str, str]) -> None:
        super().__init__(database)
        self._states = states

    async def active_documents(self, channel_id: int) -> list[DocumentStatus]:
        """Return all documents."""
        known = [make_status(file, state) for file, state in self._states.items()]
        return [*await super().active_documents(channel_id), *known]


@dataclass
class Host:
    """A platform that serves files by id, in small chunks."""

    files: dict[str, bytes | Exception] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    media_type: str = "application/pdf"
    fetched: list[str] = field(default_factory=list)
    breaks_off: bool = False
    # Number of chunks served.
    given: int = 0
    die: Callable[[str], None] = lambda _: None
    serves_channels: bool = True

    @asynccontextmanager
    async def open(self, address: Mapping[str, Any]) -> AsyncIterator[FileDownload]:
        file = address[UPLOAD_KEY]["id"]
        found = self.files[file]
        if isinstance(found, Exception):
            raise found
        self.fetched.append(file)
        name = self.names.get(file, f"{file}.pdf")
        yield FileDownload(name, self.media_type, len(found), self._chunks(found))
        self.die("after all")

    async def _chunks(self, data: bytes) -> AsyncIterator[bytes]:
        for start in range(0, len(data), 1000):
            self.given += 1
            yield data[start : start + 1000]
            if self.breaks_off:
                raise DeliveryError("the connection broke")
            self.die("while it is written")


@dataclass
class Counter:
    """An intake on a real database and a real folder."""

    database: Database
    inbox: Path
    channel: Channel
    host: Host = field(default_factory=Host)
    quota: UploadQuota = field(default_factory=lambda: UploadQuota(3, MEGABYTE))
    policy: str = "all"
    hosts: dict[Platform, FileHost] = field(default_factory=dict)
    # Platforms with public installation of the bot.
    shared: tuple[Platform, ...] = ()
    # States of files, in addition to the catalog's.
    states: dict[str, str] = field(default_factory=dict)
    dies_at: str = ""

    def die(self, step: str) -> None:
        """Crash at a given step, so that no cleanup follows."""
        if step == self.dies_at:
            for left in self.folder.glob(".*"):
                os.link(left, f"{left}-left")
            raise Killed

    @property
    def intake(self) -> UploadIntake:
        """The intake of a new process."""
        return UploadIntake(
            MortalUploads(self.database, self.die),
            Channels(self.database),
            DirectLibraries(Channels(self.database), self.shared),
            KnowingCatalog(self.database, self.states),
            self.inbox,
            rules=UploadRules(UploadPolicy(self.policy), self.quota, max_file_mb=1),
            hosts=self.hosts or {Platform("slack"): self.host},
        )

    @property
    def folder(self) -> Path:
        """The channel's upload folder."""
        return self.inbox / self.channel.tenant / "uploads"

    def item(self, file: str, text: str = "", **upload: str) -> InboxItem:
        """Return a message with this file."""
        key = f"T1:C1:17.1:{file}"
        address = {
            "channel": "C1",
            "thread": "17.1",
            "key": key,
            "user": "U1",
            "asker": "slack:T1:U1",
            UPLOAD_KEY: {"id": file, "name": f"{file}.pdf", "language": "", **upload},
        }
        return InboxItem(
            1, 1, 0, Platform("slack"), self.channel.id, "17.1", text, address, utc_now(), False, None, None
        )

    async def said(self, item: InboxItem) -> str:
        """Return the reply to the uploader."""
        answer = await self.intake.take(item)
        assert answer is not None
        return answer.text

    async def names(self) -> list[str]:
        """Return the names of the stored uploads."""
        return [one.name for one in await Uploads(self.database).of_channel(self.channel.id)]

    def files(self) -> list[str]:
        """Return all files in the folder, including hidden ones."""
        return sorted(one.name for one in self.folder.iterdir()) if self.folder.exists() else []


@pytest.fixture
async def counter(tmp_path: Path) -> AsyncIterator[Counter]:
    """Yield an intake that accepts files in every channel."""
    database = await Database.open(make_sqlite(tmp_path / "home"))
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    channel = await Channels(database).ensure(ChannelKey(Platform("slack"), "T1", "C1"), "#it-ops")
    yield Counter(database, inbox, channel)
    await database.aclose()


async def test_an_uploaded_pdf_is_stored_in_the_channels_folder(counter: Counter) -> None:
    """Shows bytes, reply and row; a repeated message downloads nothing and gets the same reply."""
    counter.host.files["a"] = PDF
    sentence = WORDS.upload_taken(file="a.pdf")
    assert await counter.said(counter.item("a")) == sentence
    assert (counter.folder / "a.pdf").read_bytes() == PDF
    assert await counter.said(counter.item("a")) == sentence
    assert (counter.host.fetched, counter.files()) == (["a"], ["a.pdf"])
    (upload,) = await Uploads(counter.database).of_channel(counter.channel.id)
    assert (upload.uploader, upload.size) == ("slack:T1:U1", len(PDF))
    assert await Uploads(counter.database).address(upload.id) == {
        "channel": "C1",
        "thread": "17.1",
        "key": "T1:C1:17.1:a",
    }


async def test_another_file_of_the_same_name_gets_a_number(
    counter: Counter,
) -> None:
    """Shows that neither an upload nor a dropped file is overwritten."""
    counter.host.files = {one: pdf(f"Document {one}.") for one in ("a", "b")}
    counter.host.names = {"a": "Plan.pdf", "b": "plan.PDF"}
    counter.folder.mkdir(parents=True)
    (counter.folder / "Plan.pdf").write_bytes(b"dropped")
    assert "I’m reading Plan (2).pdf" in await counter.said(counter.item("a"))
    assert "I’m reading plan (3).pdf" in await counter.said(counter.item("b"))
    assert (counter.folder / "Plan.pdf").read_bytes() == b"dropped"


@pytest.mark.parametrize("language", list(Language))
async def test_a_refusal_is_in_the_language_of_the_message(counter: Counter, language: Language) -> None:
    """Shows each reason in seven languages, and that refused files leave nothing behind."""
    words = reply_words(language)
    counter.host.files = {"empty": b"", "page": b"<html>", "large": PDF.ljust(MEGABYTE + 1)}
    counter.host.files["gone"] = FileUnavailable("file_deleted")
    for file, sentence in (
        ("empty", words.upload_empty(file="empty.pdf")),
        ("page", words.upload_no_pdf(file="page.pdf")),
        ("large", words.upload_too_large(file="large.pdf", limit=1)),
        ("gone", words.upload_unfetched(file="gone.pdf")),
    ):
        assert await counter.said(counter.item(file, language=language.value)) == sentence
    counter.policy = "off"
    assert await counter.said(counter.item("a", language=language.value)) == words.uploads_off
    assert counter.files() == []
    assert await counter.names() == []


async def test_a_file_that_is_no_pdf_is_not_downloaded(counter: Counter) -> None:
    """Shows that no byte of a video, or of a PDF with too large a declared size, is downloaded."""
    counter.host.files, counter.host.names = {"a": PDF, "b": PDF.ljust(MEGABYTE + 1)}, {"a": "film.mp4"}
    assert await counter.said(counter.item("b")) == WORDS.upload_too_large(file="b.pdf", limit=1)
    counter.host.media_type = "video/mp4"
    assert await counter.said(counter.item("a")) == WORDS.upload_no_pdf(file="film.mp4")
    assert counter.host.given == 0


@pytest.mark.parametrize(
    ("policy", "is_taken"),
    [
        ("off", False),
        ("all", True),
        ("sl_T1_C2", False),
        ("sl_T1_C2, sl_T1_C1", True),
        ("sl_T1_C11", False),
        ("library", False),
    ],
)
async def test_uploads_are_accepted_only_in_configured_channels(
    counter: Counter, policy: str, is_taken: bool
) -> None:
    """Covers the forms of the setting."""
    counter.policy, counter.host.files["a"] = policy, PDF
    assert ((await counter.said(counter.item("a"))) == WORDS.uploads_off) is not is_taken
    assert bool(counter.files()) is is_taken


async def test_a_direct_chat_accepts_no_file(counter: Counter) -> None:
    """Shows that the uploader is told to use a channel, or that uploads are disabled."""
    counter.channel = await Channels(counter.database).ensure(
        ChannelKey(Platform("slack"), "T1", "D1"), is_direct=True
    )
    assert await counter.said(counter.item("a")) == WORDS.upload_direct
    counter.policy = "off"
    assert await counter.said(counter.item("a")) == WORDS.uploads_off


@pytest.mark.parametrize("platform", [Platform("slack"), Platform("teams")])
async def test_a_direct_chats_file_is_added_to_a_configured_library(
    counter: Counter, platform: Platform
) -> None:
    """Shows the document's channel, the reply and the place of its receipt; `all` does not include this."""
    channels = Channels(counter.database)
    counter.hosts, counter.host.files["a"] = {platform: counter.host}, PDF
    counter.host.serves_channels = platform == Platform("slack")
    home = "T1" if platform == Platform("slack") else "tenant"
    chat = await channels.ensure(ChannelKey(platform, home, "D1"), is_direct=True)
    library = await channels.ensure_library("policies")
    await channels.set_direct_library(DirectLibrary(library))
    counter.channel = chat
    item = replace(counter.item("a"), platform=platform)
    refused = WORDS.upload_direct if platform == Platform("slack") else WORDS.uploads_off
    assert await counter.said(item) == refused
    counter.policy = "library"
    told = f"{WORDS.upload_taken(file='a.pdf')} {WORDS.upload_for_all}"
    assert [await counter.said(item), await counter.said(item)] == [told, told]
    (upload,) = await Uploads(counter.database).of_channel(library.id)
    assert (await Uploads(counter.database).address(upload.id) or {})[CHAT_KEY] == chat.id
    assert (counter.inbox / library.tenant / "uploads" / "a.pdf").read_bytes() == PDF
    assert (await channels.ensure_named(library.tenant)).id == library.id, "whom the inbox's folder feeds"
    await channels.set_direct_library(None)
    assert await counter.said(replace(counter.item("b"), platform=platform)) == refused


async def test_an_unlisted_workspace_adds_nothing_to_the_library(counter: Counter) -> None:
    """With public installation, files of a workspace that no admin named are refused."""
    channels = Channels(counter.database)
    counter.host.files["a"] = PDF
    counter.shared, counter.policy = (Platform("slack"),), "library"
    counter.channel = await channels.ensure(ChannelKey(Platform("slack"), "T2", "D1"), is_direct=True)
    library = await channels.ensure_library("policies")
    await channels.set_direct_library(DirectLibrary(library, frozenset({"T1"})))
    assert await counter.said(counter.item("a")) == WORDS.upload_direct
    assert await Uploads(counter.database).of_channel(library.id) == []
    await channels.set_direct_library(DirectLibrary(library, frozenset({"T1", "T2"})))
    assert WORDS.upload_for_all in await counter.said(counter.item("a"))


async def test_a_platform_without_a_file_host_accepts_no_file(counter: Counter) -> None:
    """Shows that no file is downloaded through another platform."""
    counter.hosts = {Platform("teams"): counter.host}
    counter.host.files["a"] = PDF
    assert await counter.said(counter.item("a")) == WORDS.uploads_off


async def test_the_quota_of_a_channel_is_enforced_and_reported(counter: Counter) -> None:
    """Covers files and bytes; a file deleted from the folder frees its quota after a while."""
    counter.host.files = {one: pdf(f"Document {one}.") for one in "abcd"}
    counter.quota = UploadQuota(2, MEGABYTE)
    for one in "ab":
        await counter.said(counter.item(one))
    full = WORDS.upload_too_many(2, file="c.pdf")
    assert await counter.said(counter.item("c")) == full
    (counter.folder / "a.pdf").unlink()
    assert await counter.said(counter.item("c")) == full
    with shift_wall_clock(MISSING_FILE_GRACE + timedelta(seconds=1)):
        assert await counter.said(counter.item("c")) == WORDS.upload_taken(file="c.pdf")
    counter.quota = UploadQuota(9, sum(len(pdf(f"Document {one}.")) for one in "bc"))
    assert await counter.said(counter.item("d")) == WORDS.upload_no_room(file="d.pdf", limit=0)
    assert counter.files() == ["b.pdf", "c.pdf"]


async def test_duplicate_content_is_stored_once_and_reported(counter: Counter) -> None:
    """Shows another message, and another name, with the same PDF."""
    counter.host.files = {"a": PDF, "b": PDF}
    await counter.said(counter.item("a"))
    assert await counter.said(counter.item("b")) == WORDS.upload_known(file="b.pdf", known="a.pdf")
    assert counter.files() == ["a.pdf"]


@pytest.mark.parametrize(
    "step", ["while it is written", "before it is kept", "before it has its name", "after all"]
)
async def test_a_crash_at_any_step_is_recovered_by_a_retry(counter: Counter, step: str) -> None:
    """Shows one file, one row and the name stored first; leftovers are deleted, as after a power loss."""
    counter.host.files["a"], counter.host.die = PDF, counter.die
    counter.dies_at = step
    with pytest.raises(Killed):
        await counter.intake.take(counter.item("a"))
    (left,) = counter.files()
    assert left == "a.pdf" if step == "after all" else left.endswith("-left")
    counter.dies_at = ""
    assert await counter.said(counter.item("a")) == WORDS.upload_taken(file="a.pdf")
    assert counter.files() == ["a.pdf"]
    assert (counter.folder / "a.pdf").read_bytes() == PDF
    assert await counter.names() == ["a.pdf"]


async def test_a_broken_download_is_retried_up_to_a_limit(counter: Counter) -> None:
    """Shows that a partial file is never stored, and that the upload fails after several attempts."""
    counter.host.files["a"], counter.host.breaks_off = PDF, True
    item = counter.item("a")
    with pytest.raises(DeliveryError):
        await counter.intake.take(item)
    assert counter.files() == []
    with shift_wall_clock(MAX_FETCH_TIME):
        assert await counter.said(item) == WORDS.upload_unfetched(file="a.pdf")
    counter.host.breaks_off = False
    assert await counter.said(item) == WORDS.upload_taken(file="a.pdf")


async def test_an_unwritable_folder_is_reported(counter: Counter, caplog: pytest.LogCaptureFixture) -> None:
    """Shows it with a missing inbox, like an unmounted share; the log names no path."""
    counter.host.files["a"] = PDF
    counter.inbox.rmdir()
    with caplog.at_level(logging.WARNING):
        assert await counter.said(counter.item("a")) == WORDS.upload_no_folder(file="a.pdf")
    assert "FileNotFoundError" in caplog.text
    assert str(counter.inbox) not in caplog.text
    assert not counter.inbox.exists()


async def test_a_file_that_could_not_be_renamed_can_be_uploaded_again(counter: Counter) -> None:
    """Shows that a full disk leaves neither a file nor an upload, so that it is not reported as known."""
    counter.host.files["a"] = counter.host.files["b"] = PDF
    with full_disk():
        assert await counter.said(counter.item("a")) == WORDS.upload_no_folder(file="a.pdf")
    assert (counter.files(), await counter.names()) == ([], [])
    assert await counter.said(counter.item("b")) == WORDS.upload_taken(file="b.pdf")


async def test_a_question_with_a_file_waits_until_it_is_read(counter: Counter) -> None:
    """Shows that they wait until the file is read or unreadable, up to a limit."""
    counter.host.files["a"] = PDF
    item = counter.item("a", "When do backups run?")
    for state in ("", "reading"):
        counter.states["uploads/a.pdf"] = state
        with pytest.raises(FileNotReady):
            await counter.intake.take(item)
    for state in ("live", "quarantined"):
        counter.states["uploads/a.pdf"] = state
        assert await counter.intake.take(item) is None
    counter.states.clear()
    with shift_wall_clock(timedelta(minutes=5)):
        assert await counter.intake.take(item) is None
    assert counter.host.fetched == ["a"]
