"""Removal of uploads by their uploader and by admins: the file, its document, and the upload."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from fakes.core import ASKED_AT, WORDS
from fakes.notice_shelf import NoticeShelf, open_shelf
from harness.empty_homes import make_sqlite
from harness.tables import for_each

from bot.answers.understanding.channel_documents import ChannelView
from bot.chat.commands.chat_commands import ChatCommands
from bot.chat.commands.chat_intents import ChatIntent, recognize
from bot.chat.commands.upload_commands import UploadCommands
from bot.core.models import LOCAL_ASKER, Answer, Language, Question
from bot.core.wording import reply_words
from storage.chat.channels import Channels
from storage.chat.uploads import Uploads
from storage.chat_models import NewUpload, Upload, UploadQuota
from storage.documents.catalog import Catalog
from storage.folders.folders import Folders
from storage.models import ChannelKey, Platform
from storage.sql.audit import AuditLog
from storage.sql.database import Database
from storage.sql.tables import DocumentRow, FolderRow

IT = ChannelKey(Platform("slack"), "T1", "C1")
HR = ChannelKey(Platform("slack"), "T1", "C2")
ALICE, BOB, ADMIN = "slack:T1:U1", "slack:T1:U2", "slack:T1:U3"
NAME = "[1] Plan – draft (2).pdf"


@dataclass
class Registry:
    """A channel with a live upload by Alice."""

    database: Database
    inbox: Path
    shelf: NoticeShelf
    upload: Upload
    version: int

    async def say(self, text: str, asker: str, key: ChannelKey = IT) -> str:
        """Return the text of the reply to a message."""
        return (await self.reply(text, asker, key)).text

    async def reply(self, text: str, asker: str, key: ChannelKey = IT) -> Answer:
        """Return the reply to a message."""
        channel = await Channels(self.database).ensure(key)
        question = Question("1", text, channel, ASKED_AT, thread="17.1", asker=asker)
        command = recognize(text, Language.ENGLISH)
        assert command is not None
        uploads = UploadCommands(
            [ADMIN], Uploads(self.database), Folders(self.database), AuditLog(self.database), self.inbox
        )
        view = ChannelView(Catalog(self.database), channel)
        answer = await ChatCommands(uploads=uploads).reply(command, question, view)
        assert answer is not None
        return answer

    @property
    def file(self) -> Path:
        """Path of the uploaded file."""
        return self.inbox / IT.tenant / "uploads" / NAME

    async def left(self) -> tuple[bool, str, int]:
        """Return (is the file there, state of its document, number of uploads)."""
        async with self.database.snapshot() as session:
            document = await session.get_one(DocumentRow, await self.shelf.document_of(self.version))
        uploads = await Uploads(self.database).of_channel(self.shelf.channel.id)
        return self.file.exists(), document.state, len(uploads)

    async def audit(self) -> list[tuple[str, str, str, bool]]:
        """Return (actor, action, subject, is_done) of the audit entries, oldest first."""
        entries = await AuditLog(self.database).latest()
        return [(one.actor, one.action, one.subject, one.is_done) for one in entries]


@pytest.fixture
async def registry(tmp_path: Path) -> AsyncIterator[Registry]:
    """Yield the upload with its file and its document."""
    database = await Database.open(make_sqlite(tmp_path / "home"))
    shelf = await open_shelf(database, IT)
    async with database.transaction() as session:
        (await session.get_one(FolderRow, shelf.folder)).origin = "inbox"
    new = NewUpload(shelf.channel.id, "m1", ALICE, "s1", 1, {})
    upload = await Uploads(database).keep(new, lambda taken: NAME, UploadQuota(9, 99))
    assert isinstance(upload, Upload)
    version = await shelf.add(f"uploads/{NAME}")
    await shelf.publish(version)
    registry = Registry(database, tmp_path / "inbox", shelf, upload, version)
    registry.file.parent.mkdir(parents=True)
    registry.file.write_bytes(b"%PDF-")
    yield registry
    await database.aclose()


async def test_a_request_for_a_human_names_uploaders_and_admins(registry: Registry) -> None:
    """Shows the people known to an installation, and the reply if it knows none."""
    answer = await registry.reply("Who can I ask?", BOB)
    assert (answer.text, answer.people) == (WORDS.people_to_ask, (ALICE, ADMIN))
    elsewhere = await registry.reply("I need to talk to a human", BOB, HR)
    assert elsewhere.people == (ADMIN,)
    strange = ChannelKey(Platform("slack"), "T2", "C9")
    nobody = await registry.reply("I need to talk to a human", BOB, strange)
    assert (nobody.text, nobody.people) == (WORDS.nobody_to_ask, ())


@for_each("language", list(Language))
def test_the_command_suggested_by_a_reply_removes_the_file(language: Language) -> None:
    """Shows that the suggested command is understood in each language, with the file's name."""
    words = reply_words(language)
    for sentence in (words.upload_taken(file=NAME), words.upload_too_many(2, file=NAME)):
        said = [text.strip() for text in re.findall("[“„«]([^”“»]+)[”“»]", sentence)]
        command = recognize(said[-1], language)
        assert command is not None
        assert command.intent is ChatIntent.REMOVE_UPLOAD
        assert command.name in (NAME, "NAME", "NOM", "NOMBRE", "NOME", "NAAM")


GONE, HERE = (False, "deleted", 0), (True, "present", 1)


@pytest.mark.parametrize("asker", [ALICE, ADMIN, LOCAL_ASKER])
async def test_uploaders_and_admins_can_remove_an_upload(registry: Registry, asker: str) -> None:
    """Shows that its document no longer answers, with an audit entry; a second removal finds none."""
    assert await registry.say(f"remove upload {NAME}", asker) == WORDS.upload_removed(
        file=NAME.replace("[1]", "(1)")
    )
    assert await registry.left() == GONE
    assert await registry.audit() == [(asker, "remove_upload", str(registry.upload.id), True)]
    said = await registry.say("delete my upload plan.pdf", asker)
    assert said == WORDS.no_such_upload(name="plan.pdf")


@pytest.mark.parametrize("asker", [BOB, ""])
async def test_other_people_cannot_remove_an_upload(registry: Registry, asker: str) -> None:
    """Shows the refusal, unchanged state, and the refusal in the audit log."""
    shown = NAME.replace("[1]", "(1)")
    assert await registry.say(f"remove upload {NAME}", asker) == WORDS.upload_not_yours(file=shown)
    assert await registry.left() == HERE
    assert await registry.audit() == [(asker, "remove_upload", str(registry.upload.id), False)]


async def test_an_anonymous_upload_is_removed_by_admins_only(registry: Registry) -> None:
    """Shows that an anonymous asker is not taken for the anonymous uploader."""
    new = NewUpload(registry.shelf.channel.id, "m2", "", "s2", 1, {})
    await Uploads(registry.database).keep(new, lambda taken: "b.pdf", UploadQuota(9, 99))
    assert await registry.say("remove upload b.pdf", "") == WORDS.upload_not_yours(file="b.pdf")
    assert await registry.say("remove upload b.pdf", ADMIN) == WORDS.upload_removed(file="b.pdf")


async def test_an_upload_is_removed_in_its_own_channel_only(registry: Registry) -> None:
    """Shows that even an admin neither removes nor sees an upload from another channel."""
    said = await registry.say("remove upload Plan draft 2", ADMIN, HR)
    assert said == WORDS.no_such_upload(name="Plan draft 2")
    assert await registry.left() == HERE
    assert await registry.say("remove upload 1 plan draft 2", ALICE) != said


@pytest.mark.parametrize("step", ["file", "document"])
async def test_an_interrupted_removal_is_completed_by_repeating_it(registry: Registry, step: str) -> None:
    """Shows recovery after a crash at each step, when the command is retried."""
    registry.file.unlink()
    if step == "document":
        document = await registry.shelf.document_of(registry.version)
        await Folders(registry.database).delete(registry.shelf.folder, {document: f"uploads/{NAME}"})
    assert await registry.say(f"remove upload {NAME}", ALICE) == WORDS.upload_removed(
        file=NAME.replace("[1]", "(1)")
    )
    assert await registry.left() == GONE


async def test_a_file_that_cannot_be_removed_stays_live(registry: Registry) -> None:
    """Shows a folder replaced by a symlink: nothing is removed halfway."""
    elsewhere = registry.inbox / "elsewhere"
    registry.file.parent.rename(elsewhere)
    registry.file.parent.symlink_to(elsewhere)
    shown = NAME.replace("[1]", "(1)")
    assert await registry.say(f"remove upload {NAME}", ALICE) == WORDS.upload_not_removed(file=shown)
    assert await registry.left() == HERE
