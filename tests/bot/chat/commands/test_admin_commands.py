"""Admin and thread commands in chats on a real database: permission, effect and audit."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import pytest
from fakes.core import WORDS
from fakes.notice_shelf import NoticeShelf, open_shelf
from fakes.web_house import House, make_pdf
from harness.empty_homes import make_sqlite
from harness.lasting_pool import LastingPdf
from sqlalchemy import select, update
from sqlmodel import col

from bot.answers.citations.citations import CitationService
from bot.answers.understanding.channel_documents import ChannelView
from bot.chat.commands.admin_commands import AdminCommands
from bot.chat.commands.chat_commands import ChatCommands
from bot.chat.commands.chat_intents import recognize
from bot.chat.commands.thread_commands import ThreadCommands
from bot.core.models import LOCAL_ASKER, Answer, Language, Question
from storage.chat.answer_sources import Subscriptions
from storage.chat.channels import Channels
from storage.chat.traces import QuestionRecords
from storage.chat_models import NewTurn
from storage.clock import utc_now
from storage.documents.catalog import Catalog
from storage.erasure.eraser import Eraser
from storage.files.reading_files import ReadingFiles
from storage.folders.folders import Folders
from storage.index.embedded.index import EmbeddedIndex
from storage.models import Channel, ChannelKey, Platform
from storage.queues.reading_repair import retry_failed
from storage.settings import StorageSettings
from storage.sql.audit import AuditLog
from storage.sql.database import Database
from storage.sql.tables import DocumentRow, FolderRow, ReadingRow, TurnRow

ADMIN, OTHER = "slack:T1:U0ADMIN1", "slack:T1:U0ALICE1"
IT, HR, DIRECT = (ChannelKey(Platform("slack"), "T1", one) for one in ("C0IT", "C0HR", "D0ADMIN"))


@dataclass
class Office:
    """Chat commands on a complete home."""

    database: Database
    commands: ChatCommands
    house: House
    asked: int = field(default=0)

    async def say(
        self, channel: Channel, text: str, asker: str = ADMIN, thread: str | None = "17.1"
    ) -> Answer | None:
        """Return the reply to a message; None if it is searched for."""
        question = Question("q", text, channel, utc_now(), asker=asker, thread=thread)
        command = recognize(text, Language.ENGLISH)
        assert command is not None
        return await self.commands.reply(command, question, ChannelView(Catalog(self.database), channel))

    async def words(self, channel: Channel, text: str, asker: str = ADMIN) -> str:
        """Return the reply's text."""
        answer = await self.say(channel, text, asker)
        assert answer is not None
        return answer.text

    async def audit(self) -> list[tuple[str, str, str, bool]]:
        """Return (actor, action, subject, is_done) of the audit entries, oldest first."""
        entries = await AuditLog(self.database).latest()
        return [(one.actor, one.action, one.subject, one.is_done) for one in entries]


def eraser_of(house: House, database: Database, home: Path) -> Eraser:
    """Return an eraser that acts at once, since no other process is running."""
    return Eraser(
        database,
        blobs=house.blobs,
        files=ReadingFiles(home / "readings"),
        index=EmbeddedIndex(home / "index", 10),
        settle_seconds=0,
    )


@pytest.fixture
async def office(tmp_path: Path) -> AsyncIterator[Office]:
    """Yield a fresh home with one admin."""
    async with AsyncExitStack() as stack:
        database = await Database.open(make_sqlite(tmp_path / "home"))
        stack.push_async_callback(database.aclose)
        house = House(tmp_path / "home", database, LastingPdf(StorageSettings(home=tmp_path / "home")))
        thread = ThreadCommands(
            house.memory,
            QuestionRecords(database, 30),
            CitationService(house.citations, house.links, house.catalog),
            Subscriptions(database),
        )
        admin = AdminCommands(
            [ADMIN],
            Folders(database),
            AuditLog(database),
            retry_failed=partial(retry_failed, database),
            erase_document=eraser_of(house, database, tmp_path / "home").erase_document,
        )
        yield Office(database, ChatCommands(thread=thread, admin=admin), house)


@pytest.fixture
async def shelf(office: Office) -> NoticeShelf:
    """Return a channel with documents."""
    shelf = await open_shelf(office.database, IT)
    await shelf.publish(await shelf.add("good.pdf"))
    return shelf


@pytest.mark.parametrize("text", ["status of the folders", "pause", "resume folders", "approve 1"])
async def test_admin_commands_are_refused_to_others(office: Office, shelf: NoticeShelf, text: str) -> None:
    """Shows the refusal in the asker's language, also for an unknown person, and the audit entry."""
    assert await office.words(shelf.channel, text, OTHER) == WORDS.admins_only
    assert await office.words(shelf.channel, text, "") == WORDS.admins_only
    assert [(who, is_done) for who, _, _, is_done in await office.audit()] == [(OTHER, False), ("", False)]
    assert await Folders(office.database).paused() == frozenset()


async def test_status_lists_own_folders_and_all_folders_to_admins(office: Office, shelf: NoticeShelf) -> None:
    """Shows number and files, without the folders of another channel; the console counts as an admin.

    A folder's location is shown to admins only, never to a channel.
    """
    other = await open_shelf(office.database, HR)
    await other.publish(await other.add("secret.pdf"))
    said = await office.words(shelf.channel, "status")
    assert said.splitlines() == [
        "I’m watching 1 folder here:",
        f"• {shelf.folder} · {shelf.channel.name}: 1 file",
    ]
    place = f"/srv/{shelf.channel.id} → {shelf.channel.name}: 1 file"
    assert place in await office.words(shelf.channel, "status", LOCAL_ASKER)
    direct = await Channels(office.database).ensure(DIRECT, is_direct=True)
    assert f"/srv/{other.channel.id}" in await office.words(direct, "status")
    assert [entry[:2] for entry in await office.audit()] == [
        (ADMIN, "status"),
        (LOCAL_ASKER, "status"),
        (ADMIN, "status"),
    ]


async def test_folders_are_paused_and_resumed_by_channel(office: Office, shelf: NoticeShelf) -> None:
    """Shows that another channel's folder is still scanned, and that repeating a command changes nothing."""
    await open_shelf(office.database, HR)
    assert (await office.words(shelf.channel, "pause")).startswith("Paused 1 folder.")
    assert await Folders(office.database).paused() == {shelf.folder}
    assert "paused" in await office.words(shelf.channel, "status")
    assert (await office.words(shelf.channel, "pause")).startswith("Paused 0 folders.")
    assert await office.words(shelf.channel, "resume folders") == "I’m scanning 1 folder again."
    assert [what for _, what, _, _ in await office.audit()] == ["pause", "status", "resume"]


async def test_a_deletion_is_approved_in_its_folders_channel(office: Office, shelf: NoticeShelf) -> None:
    """Shows that exactly the pending deletions are approved and audited, and none from another channel."""
    document = await shelf.document_of(await shelf.add("gone.pdf"))
    async with office.database.transaction() as session:
        await session.execute(
            update(FolderRow).where(col(FolderRow.id) == shelf.folder).values(asked=[str(document)])
        )
    elsewhere = await Channels(office.database).ensure(HR)
    assert await office.words(elsewhere, f"approve {shelf.folder}") == WORDS.nothing_to_approve
    assert "1 file disappeared. Confirm the deletion" in await office.words(shelf.channel, "status")
    said = await office.words(shelf.channel, f"approve deletion in folder {shelf.folder}")
    assert said.startswith("Approved. The next scan removes 1 document,")
    assert await office.words(shelf.channel, f"approve {shelf.folder}") == WORDS.nothing_to_approve
    approval = await Folders(office.database).deletion_approval(shelf.folder)
    assert approval.approved == {document}
    assert (ADMIN, "approve", str(shelf.folder), True) in await office.audit()


async def test_an_unreadable_file_is_read_again_on_retry(office: Office, shelf: NoticeShelf) -> None:
    """Shows its reading pending again, and that any other name may be part of a question."""
    version = await shelf.add("scan.pdf", "failed")
    assert await office.say(shelf.channel, "retry good.pdf") is None
    assert await office.say(shelf.channel, "retry the payment", OTHER) is None
    assert await office.audit() == []
    assert await office.words(shelf.channel, "retry scan.pdf", OTHER) == WORDS.admins_only
    assert await office.words(shelf.channel, "retry scan.pdf") == "I’m reading 1 file again."
    async with office.database.snapshot() as session:
        states = list(await session.scalars(select(col(ReadingRow.state)).order_by(col(ReadingRow.sha256))))
    assert sorted(states) == ["done", "waiting"]
    document = str(await shelf.document_of(version))
    assert (ADMIN, "retry", document, True) in await office.audit()


async def test_only_the_requested_thread_is_deleted(office: Office, shelf: NoticeShelf) -> None:
    """Shows that turns of other threads stay, and that the audit names the person but no text."""
    for key, thread in (("1", "17.1"), ("2", "17.1"), ("3", "18.1")):
        await office.house.memory.store(turn(shelf.channel, key, thread))
    forgot = await office.words(shelf.channel, "forget this thread", OTHER)
    assert forgot.startswith("I forgot 2 questions of this thread")
    assert await office.words(shelf.channel, "forget this thread", OTHER) == WORDS.nothing_to_forget
    async with office.database.snapshot() as session:
        assert list(await session.scalars(select(col(TurnRow.key)))) == ["3"]
    assert await office.audit() == [(OTHER, "forget", "17.1", True)]


def turn(channel: Channel, key: str, thread: str, *versions: int) -> NewTurn:
    """Return a stored turn."""
    return NewTurn(key, channel.id, thread, "When?", "When?", "Daily [1].", versions, utc_now())


async def test_why_explains_the_last_answer_of_the_thread(office: Office) -> None:
    """Shows the text of the *Why?* button, and a hint if there is no answer to explain."""
    channel = await office.house.channel("alpha")
    await office.house.memory.store(turn(channel, "q1", "17.1"))
    searched = {"answered_from": {"channel_id": channel.id}, "searched": "When?", "searches": []}
    await QuestionRecords(office.database, 30).keep("q1", channel.id, utc_now(), "grounded", searched)
    assert await office.words(channel, "why?") == WORDS.why_asked(question="When?")
    elsewhere = await office.say(channel, "why?", OTHER, "99.9")
    assert elsewhere is not None
    assert elsewhere.text == WORDS.incomplete
    await QuestionRecords(office.database, 30).keep(
        "q2", channel.id, utc_now(), "grounded", searched | {"answered_from": {"channel_id": channel.id + 1}}
    )
    await office.house.memory.store(turn(channel, "q2", "18.1"))
    left = await office.say(channel, "why?", OTHER, "18.1")
    assert left is not None
    assert left.text == WORDS.incomplete


async def test_the_sources_of_the_last_answer_are_shown_again(office: Office) -> None:
    """Shows the same quotes and numbers with new links, and none in a thread without an answer."""
    house, channel = office.house, await office.house.channel("alpha")
    shelved = await house.shelve(channel, "sop.pdf", make_pdf([["Backups run daily at 2:00 AM."]]), "Backups")
    (record,) = await house.cite_answer(channel, (shelved, 1, "Backups run daily"))
    kept = {"number": 1, "kind": "pdf", "file": "sop.pdf", "page": 1, "quote": "Backups run daily"}
    web = kept | {"number": 2, "kind": "web", "file": "https://a.example/", "page": None}
    web |= {"host": "a.example", "fetched": "2026-11-28T09:00:00+00:00"}
    await house.memory.store(turn(channel, "q1", "17.1", shelved.version))
    record_of_answer = {"answered_from": {"channel_id": channel.id}, "citations": [kept, web]}
    await QuestionRecords(office.database, 30).keep("q1", channel.id, utc_now(), "grounded", record_of_answer)
    answer = await office.say(channel, "sources of the last answer", OTHER)
    assert answer is not None
    assert answer.text.splitlines() == [
        WORDS.sources_again,
        "[1] “Backups run daily”",
        "[2] “Backups run daily”",
    ]
    first, second = answer.citations
    assert (first.page, first.boxes, second.url) == (1, record.boxes, "https://a.example/")
    assert house.links.read(first.url.rpartition("/")[2]).citation_id == record.id
    elsewhere = await office.say(channel, "sources", OTHER, "99.9")
    assert elsewhere is not None
    assert (elsewhere.text, elsewhere.citations) == (WORDS.no_sources, ())
    alone = await office.say(replace(channel), "sources", OTHER, None)
    assert alone is not None
    assert alone.text == WORDS.no_sources


async def test_a_document_is_erased_after_an_admin_confirms(office: Office, shelf: NoticeShelf) -> None:
    """Shows a confirmation first, then the audited erasure; refused to others and for watched files."""
    document = await shelf.document_of(await shelf.add("old.pdf"))
    assert await office.say(shelf.channel, "erase the blackboard for good") is None
    assert await office.words(shelf.channel, "erase old.pdf for good", OTHER) == WORDS.admins_only
    assert await office.words(shelf.channel, "erase old.pdf for good") == WORDS.still_in_folder
    async with office.database.transaction() as session:
        gone = update(DocumentRow).where(col(DocumentRow.id) == document)
        await session.execute(gone.values(state="deleted", deleted_at=utc_now()))
    asked = await office.words(shelf.channel, "erase old.pdf")
    assert asked == WORDS.confirm_erasure(document="old.pdf", count=0)
    assert "“erase old.pdf for good”" in asked
    assert await office.words(shelf.channel, "erase old for good") == WORDS.erased(count=0)
    assert await office.say(shelf.channel, "erase old.pdf for good") is None
    async with office.database.snapshot() as session:
        assert list(await session.scalars(select(col(DocumentRow.file)))) == ["good.pdf"]
    assert await office.audit() == [
        (OTHER, "erase_for_good", "", False),
        (ADMIN, "erase", str(document), True),
    ]


async def test_an_ambiguous_file_name_is_resolved_by_its_path(office: Office, shelf: NoticeShelf) -> None:
    """Shows that an ambiguous name erases nothing."""
    for file in ("a/old.pdf", "b/old.pdf"):
        await shelf.add(file)
    said = await office.words(shelf.channel, "erase old.pdf for good")
    assert said.splitlines() == [WORDS.which_document, "• a/old.pdf", "• b/old.pdf"]
