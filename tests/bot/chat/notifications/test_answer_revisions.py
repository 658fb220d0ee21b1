"""Revision of posted answers after their sources change: a real database and readings, a fake platform."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from fakes.web_house import House, Shelved, make_pdf
from harness.clocks import shift_wall_clock
from harness.empty_homes import make_sqlite
from harness.lasting_pool import LastingPdf
from sqlalchemy import update
from sqlmodel import col

from bot.answers.citations.relocation import PassageLocator
from bot.chat.conversation.answer_json import answer_to_json
from bot.chat.conversation.memory import cited_versions
from bot.chat.notifications.answer_revisions import MAX_REFUSALS, AnswerReviser
from bot.core.errors import ChannelClosed, DeliveryError
from bot.core.models import Answer, AnswerState, Citation, Language, SourceChange
from bot.core.wording import reply_words
from storage.chat.answer_sources import AnswerSources, mark_outdated
from storage.chat.inbox import Inbox
from storage.chat.retention import quoted_rows
from storage.models import Channel, ChannelKey, Platform
from storage.settings import StorageSettings
from storage.sql.audit import AuditedAction
from storage.sql.database import Database
from storage.sql.tables import DocumentRow

QUOTE = "backups run daily at 2:00 AM"
OLD = make_pdf([["Cover"], [f"All {QUOTE}"]])
MOVED = make_pdf([["Cover"], ["Foreword"], [f"All {QUOTE}"]])
REWORDED = make_pdf([["Cover"], ["All backups run weekly"]])
OTHER = make_pdf([["Something else"]])
REVOKE = AuditedAction("local", "revoke links", "", "citation")


@dataclass
class Platforms:
    """Records updates of messages, and fails on demand."""

    faults: list[Exception] = field(default_factory=list)
    revised: list[tuple[dict[str, Any], Sequence[SourceChange]]] = field(default_factory=list)
    retracted: list[tuple[dict[str, Any], Answer]] = field(default_factory=list)

    async def revise(
        self,
        address: dict[str, Any],
        message: dict[str, Any],
        answer: Answer,
        changes: Sequence[SourceChange],
    ) -> None:
        if self.faults:
            raise self.faults.pop(0)
        self.revised.append((message, changes))

    async def replace_erased(self, address: dict[str, Any], message: dict[str, Any], answer: Answer) -> None:
        if self.faults:
            raise self.faults.pop(0)
        self.retracted.append((message, answer))


@dataclass
class World:
    """A channel with one document and an answer that quotes it."""

    house: House
    channel: Channel
    shelved: Shelved
    platform: Platforms

    @cached_property
    def reviser(self) -> AnswerReviser:
        """A reviser of a new process."""
        return self.reviser_of(AnswerSources(self.house.database))

    def reviser_of(self, sources: AnswerSources) -> AnswerReviser:
        """Return a reviser that stores its progress in ``sources``."""
        return AnswerReviser(
            sources,
            {Platform("slack"): self.platform},  # type: ignore[dict-item]  # it only revises
            channels=self.house.channels,
            catalog=self.house.catalog,
            citations=self.house.citations,
            locator=PassageLocator(self.house.stores.readings),
            links=self.house.links,
        )

    async def replace(self, pdf: bytes, *headings: str) -> Shelved:
        """Publish a new version, like a worker does."""
        newer = await self.house.shelve(
            self.channel, "sop.pdf", pdf, "Backups", replaces=self.shelved, headings=headings
        )
        await self.mark()
        return newer

    async def mark(self) -> None:
        """Mark the document as changed, as every transaction that changes it does."""
        async with self.house.database.transaction() as session:
            await mark_outdated(session, [self.shelved.document])

    async def set_state(self, state: str) -> None:
        """Withdraw the document, or bring it back."""
        row = update(DocumentRow).where(col(DocumentRow.id) == self.shelved.document)
        async with self.house.database.transaction() as session:
            await session.execute(row.values(state=state))
        await self.mark()

    async def settle(self) -> int:
        """Run the reviser until idle; return the number of messages it checked."""
        count = 0
        while await self.reviser.tick() is not None:
            count += 1
        return count


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """Yield a world with one posted answer."""
    async with AsyncExitStack() as stack:
        database = await Database.open(make_sqlite(tmp_path / "home"))
        stack.push_async_callback(database.aclose)
        house = House(tmp_path / "home", database, LastingPdf(StorageSettings(home=tmp_path / "home")))
        channel = await house.channels.ensure(ChannelKey(Platform("slack"), "T1", "C1"))
        shelved = await house.shelve(channel, "sop.pdf", OLD, "Backups", headings=("Cover", "Schedule"))
        one = World(house, channel, shelved, Platforms())
        await post(one, "m1")
        assert (await one.settle(), one.platform.revised) == (0, [])
        yield one


async def post(world: World, key: str, citation_id: int = 0) -> None:
    """Post an answer that quotes page 2."""
    inbox = Inbox(world.house.database)
    message = {"thread": "1", "text": "?", "address": {"channel": "C1"}}
    await inbox.receive(world.channel, event_key=key, message_key=key, **message)
    item = await inbox.claim("w", 60, (Platform("slack"),))
    assert item is not None
    await inbox.mark_posting(item)
    await inbox.mark_placed(item, {"ts": key})
    quoted = (1, "Backups", "sop.pdf", 2, QUOTE, (), "https://f.example/v/1", world.shelved.version)
    citation = Citation(*quoted, section=("Schedule",), citation_id=citation_id)
    answer = Answer(AnswerState.GROUNDED, "“…” [1]", (citation,))
    await inbox.save_answer(item, answer_to_json(answer), versions=cited_versions(answer))
    await inbox.mark_delivered(item)


@pytest.mark.parametrize(
    ("pdf", "headings", "page", "words"),
    [
        (MOVED, ("Cover", "Foreword", "Plan"), 3, "It says the same on page 3."),
        (REWORDED, ("Cover", "2. Schedule"), 2, "Its section is now on page 2."),
        (OTHER, ("Other",), 1, "the text below is the old one"),
    ],
    ids=["text", "section", "page 1"],
)
async def test_a_replaced_source_is_reported_once_with_a_button(
    world: World, pdf: bytes, headings: Sequence[str], page: int, words: str
) -> None:
    """Shows the line that says how the place was found, and a link to that page."""
    newer = await world.replace(pdf, *headings)
    await world.settle()
    ((message, (change,)),) = world.platform.revised
    assert message == {"ts": "m1"}
    assert change.line.startswith("“Backups” was updated on 20")
    assert words in change.line
    assert change.page
    assert change.page.label == f"p. {page} · Backups"
    claims = world.house.links.read(change.page.url.rpartition("/")[2])
    assert (claims.version_id, claims.page) == (newer.version, page)
    kept = await world.house.citations.get(claims.citation_id)
    assert kept
    assert (kept.quote, bool(kept.boxes), kept.number) == (
        (QUOTE, True, 1) if pdf == MOVED else ("", False, 1)
    )
    assert await world.house.citations.shown_in(kept.id) == ({"channel": "C1"}, message)
    assert await world.settle() == 0
    await world.mark()
    assert await world.settle() == 1
    assert len(world.platform.revised) == 1


async def test_a_revised_answer_gets_no_fresh_link_for_a_revoked_one(world: World) -> None:
    """The new link is derived from the original citation, and revoked with it."""
    cited = await world.house.cite(world.channel, world.shelved, 2, QUOTE)
    await world.house.citations.revoke([cited.id], REVOKE)
    await post(world, "m2", citation_id=cited.id)
    await world.settle()
    await world.replace(MOVED, "Cover", "Foreword", "Plan")
    await world.settle()
    revoked = {}
    for message, (change,) in world.platform.revised:
        assert change.page
        made = await world.house.citations.get(
            world.house.links.read(change.page.url.rpartition("/")[2]).citation_id
        )
        assert made
        revoked[message["ts"]] = made.revoked_at is not None
    assert revoked == {"m1": False, "m2": True}


async def test_a_withdrawn_source_is_reported_until_it_is_restored(world: World) -> None:
    """Shows a line without a button, and the original message once the document is back."""
    await world.set_state("deleted")
    await world.settle()
    await world.set_state("present")
    await world.settle()
    (_, (gone,)), (_, back) = world.platform.revised
    assert (gone.line, gone.page) == (
        "“Backups” was removed from this channel.",
        None,
    )
    assert back == []


async def test_rate_limited_updates_are_retried_one_by_one(world: World) -> None:
    """Shows that a rate limit loses no update, and that every message is updated exactly once."""
    for number in range(2, 5):
        await post(world, f"m{number}")
    await world.settle()
    world.platform.faults = [DeliveryError("slow down", retry_after=90)]
    await world.replace(MOVED, "Cover", "Foreword", "Plan")
    assert await world.settle() == 4
    assert len(world.platform.revised) == 3
    with shift_wall_clock(timedelta(seconds=91)):
        assert await world.settle() == 1
    assert sorted(message["ts"] for message, _ in world.platform.revised) == ["m1", "m2", "m3", "m4"]


async def test_a_message_that_cannot_be_updated_is_logged(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """Shows that deleted or forbidden messages are dropped at once, repeatedly refused ones after a while."""
    caplog.set_level(logging.WARNING)
    world.platform.faults = [ChannelClosed("Slack refused: message_not_found")]
    await world.replace(MOVED, "Cover", "Foreword", "Plan")
    assert (await world.settle(), await world.settle()) == (1, 0)
    assert "answer=1 not updated: Slack refused: message_not_found" in caplog.text
    world.platform.faults = [DeliveryError("Slack refused: x")] * MAX_REFUSALS
    await world.set_state("deleted")
    for minutes in range(MAX_REFUSALS + 2):
        with shift_wall_clock(timedelta(minutes=2 * minutes)):
            await world.settle()
    assert (world.platform.faults, world.platform.revised) == ([], [])


class LosingSources(AnswerSources):
    """Simulates a process that dies before it records its progress."""

    async def finish(self, *_: object, **__: object) -> None:
        """Raise ConnectionError."""
        raise ConnectionError


async def test_a_crash_after_an_update_repeats_the_same_text(world: World) -> None:
    """Shows that after the claim expires the next process writes the same text."""
    await world.replace(REWORDED, "Cover", "2. Schedule")
    with pytest.raises(ConnectionError):
        await world.reviser_of(LosingSources(world.house.database)).tick()
    with shift_wall_clock(timedelta(seconds=121)):
        await world.settle()
    (_, (first,)), (_, (second,)) = world.platform.revised
    assert first.line == second.line


async def test_an_erased_answer_is_overwritten_once(
    world: World,
) -> None:
    """Shows the message overwritten despite a refusal, with no text of the answer, and only once."""
    database = world.house.database
    rows = await quoted_rows(database, world.channel.id, [world.shelved.document])
    assert await rows.erase(database, told=True) == 1
    world.platform.faults = [DeliveryError("slow down", retry_after=90)]
    assert (await world.settle(), world.platform.retracted) == (1, [])
    with shift_wall_clock(timedelta(seconds=91)):
        assert await world.settle() == 1
    ((message, answer),) = world.platform.retracted
    assert message == {"ts": "m1"}
    assert answer.text == reply_words(Language.ENGLISH).answer_removed
    assert (answer.citations, answer.state) == ((), AnswerState.CHAT)
    await world.mark()
    assert await world.settle() == 0
    # The question is edited: its new answer is an ordinary one.
    assert await Inbox(database).requeue_edited(Platform("slack"), "m1", "anew?")
    item = await Inbox(database).claim("w", 60, (Platform("slack"),))
    assert item is not None
    fresh = Answer(AnswerState.NOT_FOUND, "Nothing.")
    await Inbox(database).save_answer(item, answer_to_json(fresh), versions=(world.shelved.version,))
    await Inbox(database).mark_delivered(item)
    await world.settle()
    assert (len(world.platform.retracted), world.platform.revised) == (1, [])
