"""Announcements of files to channels, with a real database and a fake platform."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from fakes.core import WORDS, Register, make_status, place_words
from fakes.memory_inbox import service_with
from fakes.notice_shelf import NoticeShelf, open_shelf, recent_notices
from harness.clocks import shift_wall_clock
from harness.empty_homes import make_sqlite

from bot.answers.citations.citations import CitationService
from bot.answers.understanding.channel_folders import ChannelFolders
from bot.chat.chat_service import ChatService
from bot.chat.notifications.notification_wording import WELCOME_LEAD, more_unreadable
from bot.chat.notifications.notifier import NotificationTiming, Notifier, Routes
from bot.chat.notifications.receipts import ReceiptBuilder, announcement_paragraphs
from bot.chat.notifications.suggested_questions import MAX_OFFERED
from bot.core.errors import ChannelClosed, DeliveryError, DeliveryUnclear
from bot.core.ports import Announcement
from storage.chat.channels import Channels, DirectLibrary
from storage.chat.notification_events import record_folder, record_source_changed, record_source_failed
from storage.chat.notifications import Notices
from storage.chat.uploads import Uploads
from storage.chat_models import CHAT_KEY, NewUpload, Upload, UploadQuota
from storage.clock import utc_now
from storage.folders.folders import Folders
from storage.models import Channel, ChannelKey, Chunk, Platform
from storage.sql.database import Database
from storage.sql.tables import FolderRow, WebPageRow

IT = ChannelKey(Platform("slack"), "T1", "C0IT")
HR = ChannelKey(Platform("slack"), "T1", "C0HR")
ADMINS = ChannelKey(Platform("slack"), "T1", "C0ADMINS")
TEXT = "Backups run daily at 2:00 AM. The tapes are kept for 30 days. Restores are tested every quarter."
HEADINGS = ("When do backups run?", "Where are tapes kept?", "Who tests a restore?")
HURRIED = NotificationTiming(debounce=0, retry_delay=0)


@dataclass
class Platforms:
    """A fake chat platform that records announcements, and fails on demand."""

    can_look: bool = True
    faults: list[Exception] = field(default_factory=list)
    posted: list[tuple[str, Announcement]] = field(default_factory=list)
    # Thread of each post; None for a post in the channel.
    below: list[Any] = field(default_factory=list)
    # The next post succeeds, but its response is lost.
    is_lost: bool = False

    def announcement_address(self, channel: Channel, address: dict[str, Any] | None) -> dict[str, Any] | None:
        return {"channel": channel.tenant}

    async def announce(self, place: dict[str, Any], announcement: Announcement) -> None:
        if self.faults:
            raise self.faults.pop(0)
        self.posted.append((place["channel"], announcement))
        self.below.append(place.get("below"))
        if self.is_lost:
            self.is_lost = False
            raise DeliveryUnclear("the connection broke")

    async def has_announced(self, place: dict[str, Any], announcement: str, since: datetime) -> bool | None:
        stands = any((place["channel"], announcement) == (where, one.id) for where, one in self.posted)
        return stands if self.can_look else None

    def words(self, key: ChannelKey) -> list[str]:
        """Return the texts of all announcements to a channel."""
        return ["\n".join(announcement_paragraphs(one)) for where, one in self.posted if where == key.tenant]


class OneText:
    """Readings whose chunks all have the same text, each under its own heading."""

    async def chunks_at(self, places: Sequence[tuple[UUID, int]]) -> list[Chunk]:
        words = place_words(TEXT, [(0, 1)])
        return [Chunk(ordinal, TEXT, 20, (HEADINGS[ordinal],), words, ((0, 1),)) for _, ordinal in places]


@dataclass
class Office:
    """Announcements on a real database."""

    database: Database
    inbox: Path
    slack: Platforms = field(default_factory=Platforms)
    register: Register = field(default_factory=Register)

    async def shelf(self, key: ChannelKey = IT) -> NoticeShelf:
        """Return the documents of a channel."""
        return await open_shelf(self.database, key)

    async def upload(self, shelf: NoticeShelf, name: str, **where: int) -> Upload:
        """Add a file uploaded in the thread of its name; ``where``: the chat of an upload to a library."""
        async with self.database.transaction() as session:
            (await session.get_one(FolderRow, shelf.folder)).origin = "inbox"
        new = NewUpload(shelf.channel.id, name, "slack:T1:U1", name, 1, {"thread": name} | where)
        kept = await Uploads(self.database).keep(new, lambda taken: name, UploadQuota(9, 99))
        assert isinstance(kept, Upload)
        return kept

    async def announcing(
        self, receipts: str = "channel", admin: ChannelKey | None = None, pace: NotificationTiming = HURRIED
    ) -> Notifier:
        """Return a notifier of a new process, which waits for no quiet period."""
        channels, register = Channels(self.database), self.register
        shelf = NoticeShelf(self.database, await channels.ensure(IT), 0)
        receipt_builder = ReceiptBuilder(
            shelf.notices,
            channels,
            OneText(),
            CitationService(register, register, register),
            catalog=register,
            folders=ChannelFolders(Folders(self.database), self.inbox),
        )
        routes = Routes(receipts, await channels.ensure(admin) if admin else None)
        announcers = {Platform("slack"): self.slack}
        return Notifier(
            shelf.notices,
            channels,
            receipt_builder,
            routes=routes,
            announcers=announcers,
            pace=pace,
            uploads=Uploads(self.database),
        )


@pytest.fixture
async def office(tmp_path: Path) -> AsyncIterator[Office]:
    """Yield announcements on a fresh SQLite database."""
    database = await Database.open(make_sqlite(tmp_path / "home"))
    (tmp_path / "inbox").mkdir()
    yield Office(database, tmp_path / "inbox")
    await database.aclose()


async def states(shelf: NoticeShelf) -> list[str]:
    """Return the states of all notices."""
    return [notice.state for notice in await shelf.told()]


async def join(office: Office, key: ChannelKey, **more: Any) -> None:
    """Record that the bot was added to a channel."""
    service = service_with(channels=Channels(office.database), notices=Notices(office.database))
    await ChatService.join(service, key, **more)


async def test_a_new_file_is_announced_once_with_suggested_questions(office: Office) -> None:
    """Shows that a second tick posts nothing more."""
    shelf = await office.shelf()
    await shelf.publish(await shelf.add("backup.pdf"))
    announcing = await office.announcing()
    for _ in range(2):
        await announcing.tick()
    (words,) = office.slack.words(IT)
    assert words == "Added “backup.pdf” (2 pages)."
    questions = [one for _, one in await shelf.notices.sample_questions(shelf.channel.id, 5)]
    assert "When do backups run?" in questions


async def test_many_files_are_one_message_with_failures_first(office: Office) -> None:
    """Shows that twelve files are one line, with their pages, and that two failures are named."""
    shelf = await office.shelf()
    for number in range(12):
        await shelf.publish(await shelf.add(f"good-{number}.pdf"))
    for number in range(2):
        await shelf.fail(await shelf.add(f"bad-{number}.pdf", state="failed"))
    await (await office.announcing()).tick()
    (words,) = office.slack.words(IT)
    lines = words.splitlines()
    assert lines[0] == "Added 12 documents (24 pages). I couldn’t read 2 files."
    assert lines[1].startswith("I couldn’t read bad-0.pdf")
    assert words.count("good-") == 0


async def test_live_files_are_counted_next_to_many_failures(office: Office) -> None:
    """Shows five of seven failures, and three new files in the first line."""
    shelf = await office.shelf()
    for number in range(7):
        await shelf.fail(await shelf.add(f"bad-{number}.pdf", state="failed"))
    for number in range(3):
        await shelf.publish(await shelf.add(f"good-{number}.pdf"))
    await (await office.announcing()).tick()
    (words,) = office.slack.words(IT)
    assert (words.count("bad-"), words.count("good-")) == (5, 0)
    assert words.startswith("Added 3 documents (6 pages). I couldn’t read 7 files.")
    assert words.endswith(more_unreadable(2))


async def test_a_batch_waits_for_quiet_up_to_a_limit(office: Office) -> None:
    """Shows that a batch waits for a quiet period, with an upper limit."""
    shelf = await office.shelf()
    await shelf.publish(await shelf.add("a.pdf"))
    busy = await office.announcing(pace=NotificationTiming(debounce=3600, max_delay=7200))
    await busy.tick()
    assert not office.slack.posted
    with shift_wall_clock(timedelta(seconds=7201)):
        await busy.tick()
    assert len(office.slack.posted) == 1


async def test_files_dropped_together_are_one_receipt(office: Office) -> None:
    """Shows that a batch waits for files that are being read or published, however long that takes."""
    shelf = await office.shelf()
    first, second, third = [await shelf.add(f"{number}.pdf", state="waiting") for number in range(3)]
    announcing = await office.announcing()
    for version in (first, second):
        await shelf.publish(version)
        await announcing.tick()
    await shelf.finish(third)
    await announcing.tick()
    assert not office.slack.posted
    await shelf.go_live()
    await announcing.tick()
    assert office.slack.words(IT) == ["Added 3 documents (6 pages)."]


async def test_a_receipt_waits_for_no_file_in_vain(office: Office) -> None:
    """Covers a file that waits for its next attempt, one that is read again, and another channel's."""
    shelf = await office.shelf()
    await shelf.publish(await shelf.add("a.pdf"))
    await shelf.add("postponed.pdf", state="waiting", next_attempt_at=utc_now() + timedelta(minutes=5))
    await shelf.add("again.pdf", state="waiting", again=True)
    await (await office.shelf(HR)).add("hr.pdf", state="waiting")
    await (await office.announcing()).tick()
    assert office.slack.words(IT) == ["Added “a.pdf” (2 pages)."]


async def test_a_receipt_waits_for_a_slow_file_up_to_a_limit(office: Office) -> None:
    """Shows that the others are announced without it."""
    shelf = await office.shelf()
    await shelf.add("huge.pdf", state="waiting")
    await shelf.publish(await shelf.add("a.pdf"))
    announcing = await office.announcing()
    await announcing.tick()
    assert not office.slack.posted
    with shift_wall_clock(timedelta(seconds=301)):
        await announcing.tick()
    assert len(office.slack.posted) == 1


async def test_a_notice_dated_by_a_wrong_clock_is_not_delayed(office: Office) -> None:
    """Shows that a timestamp two hours in the future does not delay the batch."""
    shelf = await office.shelf()
    with shift_wall_clock(timedelta(hours=2)):
        await shelf.publish(await shelf.add("a.pdf"))
    await (await office.announcing(pace=NotificationTiming(retry_delay=0))).tick()
    assert len(office.slack.posted) == 1


async def test_each_channel_gets_receipts_of_its_own_files_only(office: Office) -> None:
    """Shows that no document's name reaches another channel."""
    for key, file in ((IT, "it.pdf"), (HR, "hr.pdf")):
        shelf = await office.shelf(key)
        await shelf.publish(await shelf.add(file))
    await (await office.announcing()).tick()
    assert "hr.pdf" not in office.slack.words(IT)[0]
    assert "it.pdf" not in office.slack.words(HR)[0]


async def test_the_admin_setting_sends_one_message_to_the_admins(office: Office) -> None:
    """Shows that the files' own channels get no message, and that the message names the channels."""
    for key, file in ((IT, "it.pdf"), (HR, "hr.pdf")):
        shelf = await office.shelf(key)
        await shelf.publish(await shelf.add(file))
    await (await office.announcing("admin", ADMINS)).tick()
    (words,) = office.slack.words(ADMINS)
    assert f"it.pdf in {IT.tenant}" in words
    assert "hr.pdf" in words
    assert not office.slack.words(IT)
    assert not office.slack.posted[0][1].sources


@pytest.mark.parametrize("receipts", ["off", "admin"])
async def test_without_a_recipient_the_console_shows_the_notice(office: Office, receipts: str) -> None:
    """Shows that notices are stored without being posted."""
    shelf = await office.shelf()
    await shelf.publish(await shelf.add("a.pdf"))
    await (await office.announcing(receipts)).tick()
    assert not office.slack.posted
    assert await states(shelf) == ["kept"]
    assert len(await recent_notices(office.database, shelf.channel.id, 5)) == 1


async def test_a_local_channels_questions_are_suggested_in_the_console(office: Office) -> None:
    """Shows that the console can suggest questions although nothing is posted."""
    shelf = await office.shelf(ChannelKey(Platform.LOCAL, "", "it"))
    await shelf.publish(await shelf.add("a.pdf"))
    await (await office.announcing()).tick()
    (notice,) = await recent_notices(office.database, shelf.channel.id, 5)
    assert notice.questions
    assert "When do backups run?" in notice.questions


async def test_web_pages_that_fail_or_lost_a_quote_reach_the_admins(office: Office) -> None:
    """Shows a single message with page names and problems, without pages removed from the list."""
    shelf = await office.shelf()
    gone, other, off = (f"https://example.org/{name}" for name in ("gone", "other", "off"))
    async with shelf.database.transaction() as session:
        for url in (gone, other):
            page = WebPageRow(url=url, error="the server answers 404", failing_since=utc_now())
            session.add(page)
            await session.flush()
            if url == gone:
                await record_source_failed(session, page, shelf.channel.id)
            else:
                await record_source_changed(session, url, shelf.channel.id, 1, "within <30> days")
        await record_source_failed(session, WebPageRow(url=off, error="no"), shelf.channel.id)
    await (await office.announcing("off", ADMINS)).tick()
    (words,) = office.slack.words(ADMINS)
    assert words.startswith("Something changed on the approved web pages.")
    assert f"I haven’t been able to fetch the web page {gone} for a week: The server answers 404." in words
    assert f"The web page {other} has changed. An answer in" in words
    assert "within <30> days" in words
    assert off not in words
    assert not office.slack.words(IT)


async def test_a_folders_problem_is_reported_to_admins_only(office: Office) -> None:
    """Shows where problems are posted, independent of the receipts setting."""
    shelf = await office.shelf()
    await set_problem(shelf, "it is empty: is the share mounted?")
    await (await office.announcing("off", ADMINS)).tick()
    (words,) = office.slack.words(ADMINS)
    assert "is the share mounted?" in words
    assert not office.slack.words(IT)


@pytest.mark.parametrize(
    ("told", "unseen", "heard"),
    [
        ([], ["It did not answer.", None], []),
        (["It did not answer."], [None, "It did not answer."], []),
        (["It did not answer."], [None, "It is empty."], ["It is empty."]),
        (["It did not answer."], [None], ["everything works again"]),
        (["It did not answer.", None], ["It is empty.", None], []),
    ],
)
async def test_a_flapping_folder_is_announced_only_on_change(
    office: Office, told: list[str | None], unseen: list[str | None], heard: list[str]
) -> None:
    """Shows that changes undone between two messages are not announced."""
    shelf = await office.shelf()
    announcing = await office.announcing("off", ADMINS)
    for problem in told:
        await set_problem(shelf, problem)
        await announcing.tick()
    before = len(office.slack.posted)
    assert before == len(told)
    for problem in unseen:
        await set_problem(shelf, problem)
    await announcing.tick()
    since = office.slack.words(ADMINS)[before:]
    assert [part for words in since for part in heard if part in words] == heard
    assert len(since) == len(heard)


async def set_problem(shelf: NoticeShelf, problem: str | None) -> None:
    """Record a problem of the folder, as a scan does."""
    async with shelf.database.transaction() as session:
        await record_folder(session, shelf.folder, problem)
        (await session.get_one(FolderRow, shelf.folder)).problem = problem


async def test_an_unclear_post_is_searched_and_not_repeated(office: Office) -> None:
    """Shows that an unclear outcome leads to one message."""
    assert await states_after_a_lost_post(office) == ["posted"]
    assert len(office.slack.posted) == 1


async def states_after_a_lost_post(office: Office) -> list[str]:
    """Announce a file while the response gets lost; let another process check five minutes later."""
    shelf = await office.shelf()
    await shelf.publish(await shelf.add("a.pdf"))
    office.slack.is_lost = True
    await (await office.announcing()).tick()
    with shift_wall_clock(timedelta(minutes=5)):
        await (await office.announcing()).tick()
    return await states(shelf)


async def test_a_crash_before_posting_is_recovered(office: Office) -> None:
    """Shows that a batch marked as being posted, but found nowhere, is posted once."""
    shelf = await office.shelf()
    await shelf.publish(await shelf.add("a.pdf"))
    batch = await shelf.notices.claim(await shelf.notices.waiting(), 60)
    await shelf.notices.mark_posting(batch, shelf.channel.id, 60)
    await (await office.announcing()).tick()
    assert not office.slack.posted
    with shift_wall_clock(timedelta(minutes=5)):
        for _ in range(2):
            await (await office.announcing()).tick()
    assert [one.id for _, one in office.slack.posted] == [batch]


async def test_an_unclear_post_without_search_is_not_repeated(office: Office) -> None:
    """Shows that a platform without search gets no second message, and that the console shows the notice."""
    office.slack.can_look = False
    assert await states_after_a_lost_post(office) == ["kept"]
    assert len(office.slack.posted) == 1


async def test_a_temporary_refusal_leads_to_one_combined_message(office: Office) -> None:
    """Shows that after an outage all notices come in one batch."""
    shelf = await office.shelf()
    announcing = await office.announcing()
    office.slack.faults = [DeliveryError("Slack could not be reached") for _ in range(3)]
    for number in range(4):
        await shelf.publish(await shelf.add(f"{number}.pdf"))
        await announcing.tick()
    (words,) = office.slack.words(IT)
    assert "4 documents" in words


async def test_notices_for_a_closed_channel_are_dropped(office: Office) -> None:
    """Shows that a closed channel is not retried forever."""
    shelf = await office.shelf()
    await shelf.publish(await shelf.add("a.pdf"))
    office.slack.faults = [ChannelClosed("Slack refused: not_in_channel")]
    await (await office.announcing()).tick()
    assert await states(shelf) == ["dropped"]


async def test_receipts_are_not_posted_in_direct_chats(office: Office) -> None:
    """A receipt for a private chat is only shown in the console; one for the admins' own chat is posted."""
    key = ChannelKey(Platform("slack"), "T1", "D1ALICE")
    shelf = await office.shelf(key)
    await Channels(office.database).ensure(key, is_direct=True)
    await shelf.publish(await shelf.add("backup.pdf"))
    await (await office.announcing()).tick()
    assert office.slack.posted == []
    assert await states(shelf) == ["kept"]
    await shelf.publish(await shelf.add("restore.pdf"))
    admins = await office.announcing(admin=key)
    await Channels(office.database).ensure(key, is_direct=True)
    await admins.tick()
    assert len(office.slack.posted) == 1


async def test_a_joined_channel_is_welcomed_once(office: Office) -> None:
    """Shows document list and suggested questions without a quiet period; a second join posts nothing."""
    shelf = await office.shelf()
    await shelf.publish(await shelf.add("backup.pdf"))
    office.register.statuses = [make_status("backup.pdf", "live")]
    await (await office.announcing()).tick()
    for _ in range(2):
        await join(office, IT)
        await (await office.announcing(pace=NotificationTiming(debounce=3600, max_delay=7200))).tick()
    receipt, welcome = [announcement for _, announcement in office.slack.posted]
    assert welcome.lead == WELCOME_LEAD
    assert welcome.more == ("I know 1 document in this channel:\n• backup.pdf · 2 pages",)
    assert welcome.questions == ("When do backups run?", *welcome.questions[1:])
    assert len(welcome.questions) == MAX_OFFERED
    assert "backup.pdf" in receipt.lead


@pytest.mark.parametrize("has_library", [False, True])
async def test_a_direct_chat_is_welcomed_with_library_or_hint(office: Office, has_library: bool) -> None:
    """Shows the library's documents and questions, or a hint; the chat gets no folder."""
    channels, key = Channels(office.database), ChannelKey(Platform("slack"), "T1", "D1ALICE")
    library = await channels.ensure_library("policies")
    shelf = NoticeShelf(office.database, library, (await office.shelf()).folder)
    if has_library:
        await channels.set_direct_library(DirectLibrary(library))
        await shelf.publish(await shelf.add("backup.pdf"))
        office.register.statuses = [make_status("backup.pdf", "live")]
        await (await office.announcing()).tick()
    for _ in range(2):
        await join(office, key, is_direct=True, address={"channel": "D"})
        await (await office.announcing()).tick()
    ((place, welcome),) = office.slack.posted
    assert place == key.tenant
    assert ("library" in welcome.lead) is has_library
    assert bool(welcome.questions) is has_library
    said = (
        "I know 1 document in this channel:\n• backup.pdf · 2 pages"
        if has_library
        else WORDS.no_direct_library
    )
    assert welcome.more == (said,)
    assert not (office.inbox / key.tenant).exists()
    chat = await channels.ensure(key)
    assert await shelf.notices.last_address(chat.id) == {"channel": "D"}


@pytest.mark.parametrize("is_mapped", [False, True], ids=["inbox", "map"])
async def test_an_empty_channel_gets_a_welcome_and_a_folder(
    office: Office, is_mapped: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """A folder in the inbox, named in the log and not in the chat; none if an admin mapped another one."""
    caplog.set_level(logging.INFO, "bot.answers.understanding.channel_folders")
    channel = await Channels(office.database).ensure(HR, "#hr")
    mapped = "s3://company/hr"
    if is_mapped:
        await Folders(office.database).ensure(channel.id, mapped, watched=True, origin="map")
    await join(office, HR)
    await (await office.announcing()).tick()
    folder = office.inbox / HR.tenant
    (words,) = office.slack.words(HR)
    assert words.endswith(WORDS.empty_named_channel(channel="#hr"))
    assert not any(place in words for place in (mapped, str(folder), HR.tenant))
    assert folder.is_dir() is not is_mapped
    assert (str(folder) in caplog.text) is not is_mapped


async def test_a_welcome_does_not_need_the_inbox(office: Office) -> None:
    """Shows that a missing inbox is logged and does not prevent the welcome."""
    office.inbox.rmdir()
    await join(office, HR)
    await (await office.announcing()).tick()
    (words,) = office.slack.words(HR)
    assert words.endswith(WORDS.empty_chat_channel)


async def test_a_refused_welcome_is_posted_on_rejoining(office: Office) -> None:
    """Shows that a channel we had left before the message gets it on rejoining, and only once."""
    office.slack.faults = [ChannelClosed("not_in_channel")]
    for _ in range(4):
        await join(office, HR)
        await (await office.announcing()).tick()
    assert len(office.slack.words(HR)) == 1


async def test_an_unclear_welcome_is_found_and_not_repeated(office: Office) -> None:
    """Shows that the process may die after posting without recording it."""
    office.slack.is_lost = True
    await join(office, HR)
    await (await office.announcing()).tick()
    with shift_wall_clock(timedelta(seconds=60)):
        await (await office.announcing()).tick()
        await join(office, HR)
        await (await office.announcing()).tick()
    assert len(office.slack.words(HR)) == 1


async def test_logs_name_no_document(office: Office, caplog: pytest.LogCaptureFixture) -> None:
    """Shows that the log of a posted announcement contains only ids."""
    caplog.set_level("INFO")
    shelf = await office.shelf()
    await shelf.publish(await shelf.add("Zanzibarium.pdf"))
    await (await office.announcing()).tick()
    assert "announcement=" in caplog.text
    assert "Zanzibarium" not in json.dumps(caplog.text)


@pytest.mark.parametrize("receipts", ["channel", "admin", "off"])
async def test_an_uploads_receipt_is_posted_at_once_in_its_thread(office: Office, receipts: str) -> None:
    """Shows two uploads, each announced in its thread at once, and a dropped file that waits."""
    shelf = await office.shelf()
    for name in ("a.pdf", "b.pdf"):
        await office.upload(shelf, name)
    await shelf.publish(await shelf.add("uploads/a.pdf"))
    await shelf.publish(await shelf.add("dropped.pdf"))
    await shelf.fail(await shelf.add("uploads/b.pdf", state="failed"))
    busy = NotificationTiming(debounce=3600, retry_delay=0)
    for _ in range(2):
        await (await office.announcing(receipts, pace=busy)).tick()
    assert sorted(one["thread"] for one in office.slack.below) == ["a.pdf", "b.pdf"]
    assert ["dropped.pdf" in words for words in office.slack.words(IT)] == [False, False]
    await (await office.announcing(receipts)).tick()
    assert office.slack.below[2:] == ([None] if receipts == "channel" else [])


async def test_a_library_uploads_receipt_is_posted_in_its_chat(office: Office) -> None:
    """Shows that a direct chat gets receipts of its own uploads only; the library belongs to no chat."""
    channels = Channels(office.database)
    direct = ChannelKey(Platform("slack"), "T1", "D1")
    chat = await channels.ensure(direct, is_direct=True)
    library = await channels.ensure_library("policies")
    shelf = await open_shelf(office.database, ChannelKey(Platform.LOCAL, "", library.name))
    assert shelf.channel.id == library.id
    await office.upload(shelf, "a.pdf", **{CHAT_KEY: chat.id})
    await shelf.publish(await shelf.add("uploads/a.pdf"))
    await shelf.publish(await shelf.add("dropped.pdf"))
    for _ in range(2):
        await (await office.announcing()).tick()
    assert [one["thread"] for one in office.slack.below] == ["a.pdf"]
    (words,) = office.slack.words(direct)
    assert "a.pdf" in words
    assert "dropped.pdf" not in words
    ((_, announcement),) = office.slack.posted
    assert [one.label for one in announcement.sources] == ["Show"], "it opens, as in a channel"


async def test_an_unclear_upload_receipt_is_posted_once(office: Office) -> None:
    """Shows that an unclear post is found, and that one that did not arrive is posted again in the thread."""
    shelf = await office.shelf()
    await office.upload(shelf, "a.pdf")
    await shelf.publish(await shelf.add("uploads/a.pdf"))
    office.slack.is_lost = True
    await (await office.announcing()).tick()
    with shift_wall_clock(timedelta(minutes=1)):
        await (await office.announcing()).tick()
    assert office.slack.below == [{"thread": "a.pdf"}]
    await office.upload(shelf, "b.pdf")
    await shelf.publish(await shelf.add("uploads/b.pdf"))
    office.slack.faults = [DeliveryUnclear("the connection broke")]
    await (await office.announcing()).tick()
    with shift_wall_clock(timedelta(minutes=1)):
        await (await office.announcing()).tick()
    assert office.slack.below == [{"thread": "a.pdf"}, {"thread": "b.pdf"}]


async def test_a_removed_upload_gets_no_receipt(office: Office) -> None:
    """Shows that a deleted document is not announced."""
    shelf = await office.shelf()
    upload = await office.upload(shelf, "a.pdf")
    version = await shelf.add("uploads/a.pdf")
    await shelf.publish(version)
    await Folders(office.database).delete(shelf.folder, {await shelf.document_of(version): "uploads/a.pdf"})
    await Uploads(office.database).forget(upload)
    await (await office.announcing()).tick()
    assert office.slack.posted == []
