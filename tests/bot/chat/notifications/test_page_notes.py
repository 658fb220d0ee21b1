"""Notes to threads that follow a page, one per new version: a real database and readings."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from fakes.web_house import House, Shelved, make_pdf
from harness.empty_homes import make_sqlite
from harness.lasting_pool import LastingPdf
from sqlalchemy import select
from sqlmodel import col

from bot.chat.notifications.page_notes import PageNotes
from storage.chat.answer_sources import NOTE, Subscriptions, record_page_notes
from storage.chat.inbox import Inbox
from storage.chat_models import InboxItem
from storage.models import Channel, ChannelKey, CitedPlace, Platform
from storage.settings import StorageSettings
from storage.sql.audit import AuditedAction
from storage.sql.database import Database
from storage.sql.tables import PublicationRow

RULE = "Backups run daily at 2:00 AM."
OLD = make_pdf([["Cover"], [RULE, "Tapes are kept for a year."]])
NEW = make_pdf([["Cover"], ["Foreword"], [RULE, "Tapes are kept for a month."]])
OTHER = make_pdf([["Something else entirely."]])


@dataclass
class World:
    """A channel with a document whose page 2 was cited in a thread."""

    house: House
    channel: Channel
    shelved: Shelved
    notes: PageNotes
    subscriptions: Subscriptions
    inbox: Inbox

    async def replace(self, pdf: bytes, before: Shelved, *headings: str) -> Shelved:
        """Publish a new version, like a worker does."""
        newer = await self.house.shelve(
            self.channel, "sop.pdf", pdf, "Backups", replaces=before, headings=headings
        )
        async with self.house.database.transaction() as session:
            live = select(PublicationRow).where(col(PublicationRow.version_id) == newer.version)
            await record_page_notes(session, (await session.scalars(live)).one())
        return newer

    async def claimed(self) -> list[InboxItem]:
        """Claim and return all pending notes."""
        found = []
        while item := await self.inbox.claim("w", 60, (Platform("slack"),)):
            found.append(item)
        return found


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """Yield a world without subscriptions, in which the thread's question was answered."""
    async with AsyncExitStack() as stack:
        database = await Database.open(make_sqlite(tmp_path / "home"))
        stack.push_async_callback(database.aclose)
        house = House(tmp_path / "home", database, LastingPdf(StorageSettings(home=tmp_path / "home")))
        channel = await house.channels.ensure(ChannelKey(Platform("slack"), "T1", "C1"))
        shelved = await house.shelve(channel, "sop.pdf", OLD, "Backups", headings=("Cover", "Schedule"))
        notes = PageNotes(
            Subscriptions(database),
            channels=house.channels,
            catalog=house.catalog,
            citations=house.citations,
            readings=house.stores.readings,
            links=house.links,
        )
        inbox = Inbox(database)
        address = {
            "channel": "C1",
            "ts": "17.1",
            "thread": "17.1",
            "key": "T1:C1:17.1",
            "asker": "slack:T1:U1",
        }
        await inbox.receive(
            channel, event_key="T1:e", message_key="T1:C1:17.1", thread="17.1", text="?", address=address
        )
        item = await inbox.claim("w", 60, (Platform("slack"),))
        assert item is not None
        await inbox.fail(item, "answered elsewhere")
        yield World(house, channel, shelved, notes, Subscriptions(database), inbox)


async def follow(world: World) -> bool:
    """Subscribe the thread to the page."""
    return await world.subscriptions.add("1", CitedPlace(world.shelved.version, 2, RULE), "en")


async def test_a_thread_gets_one_note_per_new_version(world: World) -> None:
    """Shows removed and added text with a link, and the next version compared with this one.

    A repeated subscription counts once.
    """
    assert await follow(world)
    assert await follow(world)
    newer = await world.replace(NEW, world.shelved, "Cover", "Foreword", "Schedule")
    (item,) = await world.claimed()
    assert (item.thread, item.address["thread"], "asker" in item.address) == ("17.1", "17.1", False)
    assert await world.notes.due(item.address[NOTE])
    for _ in range(2):  # as after a crash between writing and recording it
        answer = await world.notes.write(item.address[NOTE])
        assert answer.text.splitlines() == [
            "“Backups” has a new version. The passage this thread follows is now on page 3. [1]",
            "Removed: “Tapes are kept for a year.”",
            "New: “Tapes are kept for a month.”",
        ]
        (cited,) = answer.citations
        assert (cited.page, cited.version_id, cited.quote) == (3, newer.version, RULE)
        assert world.house.links.read(cited.url.rpartition("/")[2]).page == 3
    await world.inbox.fail(item, "delivered")
    await world.replace(OTHER, newer, "Other")
    (item,) = await world.claimed()
    assert item.address[NOTE] == {"subscription": 1, "version": newer.version, "page": 3}
    answer = await world.notes.write(item.address[NOTE])
    assert "I couldn’t find the passage this thread follows. Here is page 1. [1]" in answer.text


async def test_a_note_gets_no_fresh_link_for_a_revoked_one(world: World) -> None:
    """The link of a note is derived from the thread's citation and revoked with it; so is the next one."""
    cited = await world.house.cite(world.channel, world.shelved, 2, RULE)
    await world.house.citations.revoke([cited.id], AuditedAction("local", "revoke links", "", "citation"))
    await follow(world)
    newer = await world.replace(NEW, world.shelved, "Cover", "Foreword", "Schedule")
    for replacement in (OTHER, None):
        (item,) = await world.claimed()
        (shown,) = (await world.notes.write(item.address[NOTE])).citations
        made = await world.house.citations.get(shown.citation_id)
        assert made
        assert made.revoked_at is not None
        assert world.house.links.read(shown.url.rpartition("/")[2]).citation_id == made.id
        await world.inbox.fail(item, "delivered")
        if replacement:
            await world.replace(replacement, newer, "Other")


@pytest.mark.parametrize("name", ["", "#it-ops"])
async def test_a_note_in_a_direct_chat_names_its_pages_channel(world: World, name: str) -> None:
    """Shows it for a channel whose name only its platform knows; other notes name no channel."""
    shown = CitedPlace(world.shelved.version, 2, RULE)
    assert await world.subscriptions.add("1", shown, "en", name)
    await world.replace(NEW, world.shelved, "Cover", "Foreword", "Schedule")
    (item,) = await world.claimed()
    assert (await world.notes.write(item.address[NOTE])).channel_name == name
    await world.house.channels.ensure(ChannelKey(Platform("slack"), "T1", "C1"), "#operations")
    assert (await world.notes.write(item.address[NOTE])).channel_name == ("#operations" if name else "")


async def test_an_ended_subscription_gets_no_note(world: World) -> None:
    """Covers pending notes, and shows that a page can only be followed in a chat thread."""
    assert not await world.subscriptions.add("0a1b", CitedPlace(world.shelved.version, 2, RULE), "en")
    assert not await world.subscriptions.add("99", CitedPlace(world.shelved.version, 2, RULE), "en")
    await follow(world)
    await world.replace(NEW, world.shelved, "Cover", "Foreword", "Schedule")
    assert await world.subscriptions.remove(world.channel.id, "18.1") == 0
    assert await world.subscriptions.remove(world.channel.id, "17.1") == 1
    (item,) = await world.claimed()
    assert not await world.notes.due(item.address[NOTE])
