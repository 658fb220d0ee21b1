"""A worker crashes at each step of an answer: the messages that Teams shows after another worker's turn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from fakes.teams_connector import Teams, running_teams
from harness.crash_points import arm, passed
from harness.empty_homes import make_sqlite
from harness.waiting import until, until_true
from sqlalchemy import select, update

from bot.chat.conversation.conversation import Conversation
from bot.core.models import Answer, AnswerFigure, AnswerState, Citation, Question
from bot.core.ports import AnswerListener, IncomingMessage
from bot.platforms.teams.connector import Connector, is_local
from bot.platforms.teams.messenger import TeamsMessenger
from bot.settings import BotSettings
from storage.chat.channels import Channels
from storage.chat.inbox import Inbox
from storage.chat.thread_memory import ThreadMemory
from storage.clock import utc_now
from storage.crash_points import ANSWER_POINTS
from storage.models import Box, ChannelKey, Platform
from storage.sql.database import Database
from storage.sql.tables import InboxRow

ANSWER = Answer(
    AnswerState.GROUNDED,
    "Daily [1].",
    (Citation(1, "Backups", "sop.pdf", 2, "daily", (), "https://f.example/v/1"),),
    figures=(
        AnswerFigure(
            "sop.pdf", 2, "Runs", Box(0, 0, 1, 1), "https://f.example/v/2", "https://f.example/f/2", 1
        ),
    ),
)
LISTED = "https://f.example/v/1"
# After these, a repeated delivery finds the stream ended, and updates its text.
LATE = {"amid-card", "after-card", "before-delivered"}
PLACES = {"channel": {}, "personal chat": {"is_personal": True}}


class Killed(BaseException):
    """Simulates SIGKILL: the process does nothing afterwards."""


def die() -> None:
    """Crash in place of SIGKILL."""
    raise Killed


class Answers:
    """Gives the same answer to every question."""

    async def answer(self, question: Question, listener: AnswerListener | None = None) -> Answer:
        """Return the answer."""
        return ANSWER


@dataclass
class World:
    """World with one database and one Teams, in which workers start and die without memory."""

    database: Database
    teams: Teams

    @asynccontextmanager
    async def running(self, drain_seconds: float = 1) -> AsyncIterator[Conversation]:
        """Run a worker."""
        messenger = TeamsMessenger(Connector(None, is_local, pause=0.01), BotSettings())
        worker = Conversation(
            Inbox(self.database, max_backoff_seconds=0.2),
            Channels(self.database),
            Answers(),
            ThreadMemory(self.database, 30),
            {Platform("teams"): messenger},
            settings=BotSettings(),
            poll_seconds=0.05,
        )
        task = asyncio.create_task(worker.run())
        try:
            yield worker
        finally:
            await worker.drain(drain_seconds)
            await task
            await messenger.connector.aclose()

    def question(self, **address: Any) -> IncomingMessage:
        """Return a question in a channel."""
        return IncomingMessage(
            key=ChannelKey(Platform("teams"), "t", "19:ops@thread.tacv2"),
            channel_name="ops",
            event_key="e1",
            message_key="m1",
            thread="",
            text="When do backups run?",
            address=self.teams.address | address,
        )

    async def until_done(self) -> None:
        """Wait until the question is answered."""

        async def is_done() -> bool:
            async with self.database.snapshot() as session:
                return await session.scalar(select(InboxRow.state)) == "done"

        await until(is_done)

    async def end_leases(self) -> None:
        """Expire all leases, as time does after a crash."""
        async with self.database.transaction() as session:
            await session.execute(update(InboxRow).values(lease_until=utc_now() - timedelta(seconds=1)))

    def counted(self) -> tuple[int, int, int]:
        """Return (answers, cards, messages that are never updated again)."""
        messages = list(self.teams.shown.values())
        cards = [one for one in messages if "attachments" in one]
        answers = [one for one in messages if one.get("text", "").startswith(ANSWER.text)]
        return (
            len(answers),
            len(cards),
            sum(one not in cards and one not in answers for one in messages) + bool(self.teams.streaming),
        )


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """Yield a world with a fresh database."""
    database = await Database.open(make_sqlite(tmp_path))
    async with running_teams() as teams:
        yield World(database, teams)
    await database.aclose()


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("point", ANSWER_POINTS)
async def test_a_crash_leaves_one_answer_and_never_a_second_card(
    world: World, point: str, place: str
) -> None:
    """A placeholder whose id Teams never returned may remain: it cannot be found.

    The text lists the sources. The card of a personal chat ends the stream together with it.
    """
    before = passed[point]
    arm(point, die)
    try:
        async with world.running() as worker:
            await worker.receive(world.question(**PLACES[place]))
            await until_true(lambda: passed[point] > before)
    finally:
        arm("")
    await world.end_leases()
    async with world.running():
        await world.until_done()
    is_unnamed = point == "amid-placeholder"
    is_lost = point == "before-card" or (place == "personal chat" and point in LATE)
    assert world.counted() == (1, 0 if is_lost else 1, int(is_unnamed))
    (answer,) = [one for one in world.teams.shown.values() if one.get("text", "").startswith(ANSWER.text)]
    assert LISTED in answer["text"]


@pytest.mark.parametrize("place", PLACES)
async def test_a_shutdown_waits_for_the_placeholder_being_posted(world: World, place: str) -> None:
    """During a graceful shutdown the worker still receives the id of a slow post."""
    world.teams.gate.clear()
    async with world.running(drain_seconds=0) as worker:
        await worker.receive(world.question(**PLACES[place]))
        await world.teams.took.wait()
        asyncio.get_running_loop().call_later(0.3, world.teams.gate.set)
    async with world.running():
        await world.until_done()
    assert world.counted() == (1, 1, 0)
