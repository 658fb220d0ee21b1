"""Channels searched by a direct message: the library, and the person's channels by membership lookup."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from fakes.core import ASKED_AT, WORDS
from fakes.notice_shelf import open_shelf
from harness.empty_homes import make_sqlite
from sqlalchemy import update
from sqlmodel import col

from bot.answers.understanding.direct_libraries import DirectLibraries
from bot.chat.conversation.direct_chats import MAX_MEMBER_CHANNELS, DirectChats
from bot.core.errors import MembershipsUnknown
from bot.core.models import Answer, AnswerState, Question
from storage.chat.channels import Channels, DirectLibrary
from storage.chat.thread_memory import ThreadMemory
from storage.chat_models import InboxItem, NewTurn
from storage.clock import utc_now
from storage.models import Channel, ChannelKey, Platform, TenantName
from storage.sql.database import Database
from storage.sql.tables import DocumentRow

SLACK = Platform("slack")
DIRECT = ChannelKey(SLACK, "T1ABC", "D1ABC")


@dataclass
class Lookup:
    """A platform on which one person is a member of these channels."""

    names: dict[TenantName, str] = field(default_factory=dict)
    is_silent: bool = False

    async def channels_of_asker(self, address: Mapping[str, Any]) -> Mapping[TenantName, str]:
        """Return the person's channels."""
        if self.is_silent:
            raise MembershipsUnknown("silent")
        return self.names

    async def may_read(self, address: Mapping[str, Any], tenants: Collection[TenantName]) -> bool:
        """True if all of these are the person's."""
        return set(tenants) <= (await self.channels_of_asker(address)).keys()


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    """Yield a fresh database."""
    opened = await Database.open(make_sqlite(tmp_path))
    yield opened
    await opened.aclose()


def key(number: int) -> ChannelKey:
    """Return a channel of the workspace."""
    return ChannelKey(SLACK, "T1ABC", f"C{number:03}")


async def ask(
    database: Database,
    lookup: Lookup,
    text: str = "Why?",
    *,
    ask_channels: bool = True,
    platform: Platform = SLACK,
    shared: Collection[Platform] = (),
) -> tuple[Question | Answer, Channel]:
    """Return the resolved question, or an answer in its place, and the direct chat."""
    channels = Channels(database)
    chat = await channels.ensure(DIRECT, is_direct=True)
    item = InboxItem(
        1, 1, 0, platform, chat.id, "", text, {}, utc_now(), is_posting=False, message=None, answer=None
    )
    memory, memberships = ThreadMemory(database, 30), {SLACK: lookup}
    libraries = DirectLibraries(channels, shared)
    direct = DirectChats(channels, libraries, memory, memberships, ask_channels=ask_channels)
    return await direct.question(item, Question("1", text, chat, ASKED_AT)), chat


async def test_the_first_twenty_channels_and_the_library_are_searched(
    database: Database,
) -> None:
    """Channels are ordered by name, without those lacking documents or membership.

    Turns belong to the chat.
    """
    for number in range(MAX_MEMBER_CHANNELS + 3):
        shelf = await open_shelf(database, key(number))
        await shelf.add("a.pdf")
    library = await Channels(database).ensure_library("policies")
    await Channels(database).set_direct_library(DirectLibrary(library))
    await Channels(database).ensure(key(100))
    emptied = await open_shelf(database, key(101))
    await emptied.add("a.pdf")
    async with database.transaction() as session:
        gone = update(DocumentRow).where(col(DocumentRow.channel_id) == emptied.channel.id)
        await session.execute(gone.values(state="deleted"))
    of = [100, 101, *range(1, MAX_MEMBER_CHANNELS + 3)]
    question, chat = await ask(database, Lookup({key(one).tenant: f"#room-{one:03}" for one in of}))
    assert isinstance(question, Question)
    assert (question.chat, question.conversation_channel, question.channel) == (chat, chat, library)
    names = [one.channel.name for one in question.members]
    assert names == ["library/policies", *(f"#room-{one:03}" for one in range(1, MAX_MEMBER_CHANNELS + 1))]


@pytest.mark.parametrize("elsewhere", [{"ask_channels": False}, {"platform": Platform("teams")}], ids=str)
async def test_by_default_and_in_teams_only_the_library_is_searched(
    database: Database, elsewhere: dict[str, Any]
) -> None:
    """The platform is not asked; without a library the chat searches its own documents."""
    shelf = await open_shelf(database, key(1))
    await shelf.add("a.pdf")
    silent = Lookup(is_silent=True)
    question, chat = await ask(database, silent, **elsewhere)
    assert isinstance(question, Question)
    assert (question.channel, question.members, question.chat) == (chat, (), None)
    library = await Channels(database).ensure_library("policies")
    await Channels(database).set_direct_library(DirectLibrary(library))
    question, chat = await ask(database, silent, **elsewhere)
    assert isinstance(question, Question)
    assert (question.channel, question.members, question.chat) == (library, (), chat)


@pytest.mark.parametrize("ask_channels", [False, True])
async def test_an_unlisted_workspace_does_not_search_the_library(
    database: Database, ask_channels: bool
) -> None:
    """With public installation only workspaces named by an admin search the library."""
    channels, lookup = Channels(database), Lookup({})
    library = await channels.ensure_library("policies")
    for named, asked in (((), False), (("T9",), False), (("T9", DIRECT.installation), True)):
        await channels.set_direct_library(DirectLibrary(library, frozenset(named)))
        made, chat = await ask(database, lookup, ask_channels=ask_channels, shared=(SLACK,))
        is_asked = isinstance(made, Question) and made.channel == library
        assert is_asked is asked
        assert isinstance(made, Answer) or made.channel in (library, chat)


async def test_each_channel_gets_only_history_of_its_own_documents(database: Database) -> None:
    """A turn that cites another channel too is not included."""
    versions = {}
    for number in (1, 2):
        shelf = await open_shelf(database, key(number))
        versions[number] = await shelf.add("a.pdf")
    chat = await Channels(database).ensure(DIRECT, is_direct=True)
    for name, cited in (("first", [1]), ("second", [2]), ("both", [1, 2]), ("none", [])):
        asked_at = utc_now() - timedelta(minutes=1)
        of = chat.id, "", name, name, f"answer to {name}", tuple(versions[one] for one in cited), asked_at
        await ThreadMemory(database, 30).store(NewTurn(name, *of))
    question, _ = await ask(database, Lookup({key(one).tenant: f"#room-{one}" for one in (1, 2)}))
    assert isinstance(question, Question)
    told = {one.channel.name: [turn.question for turn in one.history] for one in question.members}
    assert told == {"#room-1": ["first", "none"], "#room-2": ["second", "none"]}
    assert [turn.answer for turn in question.members[0].history] == ["answer to first", ""]


@pytest.mark.parametrize("is_silent", [True, False], ids=["silent", "in none"])
async def test_without_known_channels_a_notice_is_returned(database: Database, is_silent: bool) -> None:
    """Covers a platform that does not answer, and a person without any channel with documents."""
    shelf = await open_shelf(database, key(1))
    await shelf.add("a.pdf")
    answer, _ = await ask(database, Lookup(is_silent=is_silent), "When do backups run?")
    assert isinstance(answer, Answer)
    said = WORDS.memberships_unknown if is_silent else WORDS.no_member_channels
    assert (answer.text, answer.state) == (said, AnswerState.FAILED if is_silent else AnswerState.CHAT)
