"""Crashes while a thread's answers are streamed: in the end each question has one message, its answer.

Streams name no question, so those left by a crash are interchangeable.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from fakes.streaming_slack import StreamingSlack, streaming_slack
from harness.crash_points import arm
from harness.empty_homes import make_sqlite
from harness.waiting import PATIENCE
from sqlalchemy import select, update

from bot.chat.conversation.conversation import Conversation
from bot.core.errors import DeliveryUnclear
from bot.core.models import Answer, AnswerState, Language, Question
from bot.core.ports import AnswerListener
from bot.platforms.slack.messenger import SlackMessenger
from bot.platforms.slack.web_api import web_client
from bot.settings import BotSettings
from storage.chat.channels import Channels
from storage.chat.inbox import Inbox
from storage.chat.thread_memory import ThreadMemory
from storage.clock import utc_now
from storage.errors import MessageTaken
from storage.models import ChannelKey, Platform
from storage.sql.database import Database
from storage.sql.tables import InboxRow

POINTS = ("before-placeholder", "amid-placeholder", "after-placeholder", "after-answer", "before-delivered")


class Killed(BaseException):
    """Simulates SIGKILL: the process does nothing afterwards."""


@dataclass
class Life:
    """Lifetime of a process; afterwards its calls have no effect and return nothing."""

    is_over: bool = False

    def end(self) -> None:
        """End the current process in place of SIGKILL; calls of other processes are ignored."""
        if _current.get() is self:
            self.is_over = True
            raise Killed

    def mortal(self, inner: Any) -> Any:
        """Wrap a collaborator so that it works during this lifetime only."""
        return Mortal(inner, self)


# Lifetime of the process that a task belongs to.
_current: ContextVar[Life] = ContextVar("life")


class Mortal:
    """Forwards calls while its process lives."""

    def __init__(self, inner: Any, life: Life) -> None:
        self._inner, self._life = inner, life

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        async def call(*given: Any, **options: Any) -> Any:
            if self._life.is_over:
                raise Killed
            result = await getattr(self._inner, name)(*given, **options)
            if self._life.is_over:
                raise Killed
            return result

        return call


class Answers:
    """Answers each question with its own text, sentence by sentence."""

    async def answer(self, question: Question, listener: AnswerListener | None = None) -> Answer:
        """Stream and return the answer."""
        if listener:
            listener.show(f"{question.text} One.")
        await asyncio.sleep(0.01)
        return Answer(AnswerState.GROUNDED, f"{question.text} One. Two.", is_generated=True)


@dataclass
class World:
    """World with one database and one Slack thread, in which processes start and die."""

    database: Database
    slack: StreamingSlack
    count: int = 0
    # Message keys of all questions.
    asked: list[str] = field(default_factory=list)

    def messenger(self) -> SlackMessenger:
        """Return the messenger of one process."""
        return SlackMessenger(
            web_client("xoxb-test", self.slack.url), BotSettings(openai_base_url="http://m")
        )

    @asynccontextmanager
    async def running(self, life: Life) -> AsyncIterator[Conversation]:
        """Run a process."""
        worker = Conversation(
            life.mortal(Inbox(self.database, max_backoff_seconds=0.05)),
            Channels(self.database),
            Answers(),
            ThreadMemory(self.database, 30),
            {Platform("slack"): life.mortal(self.messenger())},
            settings=BotSettings(),
            poll_seconds=0.02,
        )
        _current.set(life)
        task = asyncio.create_task(worker.run())
        try:
            yield worker
        finally:
            if life.is_over:  # a dead process is not drained
                task.cancel()
            else:
                await worker.drain(2)
            await asyncio.gather(task, return_exceptions=True)

    async def ask(self) -> None:
        """Ask another question in the thread; the first one opens it."""
        self.count += 1
        ts = f"17.{self.count}"
        self.asked.append(f"T1:C1:{ts}")
        address = {"channel": "C1", "ts": ts, "thread": "17.1", "key": self.asked[-1]}
        channel = await Channels(self.database).ensure(ChannelKey(Platform("slack"), "T1", "C1"))
        await Inbox(self.database).receive(
            channel,
            event_key=ts,
            message_key=self.asked[-1],
            thread="17.1",
            text=f"Question {ts}?",
            address=address | {"user": "U1", "team": "T1", "bot": "UBOT"},
        )

    async def withdraw(self, key: str) -> None:
        """Delete a question, repeating Slack's event until it is handled."""
        self.asked.remove(key)
        inbox = Inbox(self.database)
        while withdrawn := await inbox.withdraw(Platform("slack"), key):
            with contextlib.suppress(DeliveryUnclear):
                await self.messenger().delete(withdrawn, partial(inbox.take_message, Platform("slack"), key))
                return

    async def end_leases(self) -> None:
        """Expire all leases and reset their attempts, so that three crashes do not fail a question."""
        async with self.database.transaction() as session:
            past = utc_now() - timedelta(seconds=1)
            values = {"lease_until": past, "next_attempt_at": None, "attempts": 0}
            await session.execute(update(InboxRow).where(InboxRow.state == "waiting").values(values))

    async def is_done(self) -> bool:
        """True if no question is waiting."""
        async with self.database.snapshot() as session:
            return "waiting" not in list(await session.scalars(select(InboxRow.state)))

    async def live(self, life: Life, seconds: float = PATIENCE) -> None:
        """Run a process until it dies or has nothing left to do."""
        async with self.running(life):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    while not life.is_over and not await self.is_done():
                        await asyncio.sleep(0.02)

    def answers(self) -> dict[str, str]:
        """Return the text of each message of ours by the key of its question."""
        assert not self.slack.streaming
        named = [
            (one["metadata"]["event_payload"]["message_key"], one["text"])
            for one in self.slack.messages.values()
        ]
        assert len(dict(named)) == len(named), "a question has two messages"
        return dict(named)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """Yield a world with a fresh database."""
    database = await Database.open(make_sqlite(tmp_path))
    async with streaming_slack() as slack:
        yield World(database, slack)
    arm("")
    await database.aclose()


def expected(world: World) -> dict[str, str]:
    """Return each remaining question with its own answer."""
    return {key: f"Question {key.rpartition(':')[2]}? One. Two." for key in world.asked}


@pytest.mark.parametrize("point", POINTS)
async def test_a_crash_during_two_follow_ups_leaves_each_its_answer(world: World, point: str) -> None:
    """Two answers were in progress; the next process finds as many streams as were started."""
    for _ in range(3):
        await world.ask()
    life = Life()
    arm(f"{point}:2", life.end)
    await world.live(life)
    assert life.is_over
    arm("")
    await world.end_leases()
    await world.live(Life())
    assert world.answers() == expected(world)


async def test_a_stream_of_a_live_process_may_be_claimed_by_another(world: World) -> None:
    """The stream has no name yet; its starter claims another one, or starts one."""
    for _ in range(2):
        await world.ask()
    inbox, messenger = Inbox(world.database), world.messenger()
    items = [await inbox.claim(owner, 60, [Platform("slack")]) for owner in ("dead", "live")]
    dead, live = (one for one in items if one)
    for one in (dead, live):
        await inbox.mark_posting(one)
    begun = await messenger.post_placeholder(live.address, Language.ENGLISH)
    found = await messenger.find_placeholder(dead.address, await inbox.other_messages(dead))
    assert found == begun
    await inbox.mark_placed(dead, found)
    with pytest.raises(MessageTaken):
        await inbox.mark_placed(live, begun)
    await world.end_leases()
    await world.live(Life())
    assert world.answers() == expected(world)
    assert world.slack.calls.count("chat.startStream") == 2


async def crash_at_random(world: World, seed: int) -> None:
    """Run a few lives of one or two processes, with lost replies and deleted questions."""
    dice = random.Random(seed)
    for _ in range(4):
        for _ in range(dice.randint(0, 3)):
            await world.ask()
        world.slack.lost = {"chat.startStream"} if dice.random() < 0.4 else set()
        life = Life()
        arm(f"{dice.choice(POINTS)}:{dice.randint(1, 3)}", life.end)
        seconds = dice.choice([0.1, 0.2, 0.4])
        others = [world.live(Life(), seconds)] if dice.random() < 0.5 else []
        await asyncio.gather(world.live(life, seconds), *others, return_exceptions=True)
        arm("")
        await world.end_leases()
        if world.asked and dice.random() < 0.3:
            await world.withdraw(dice.choice(world.asked))
    world.slack.lost = set()
    await world.live(Life())
    assert await world.is_done()
    assert world.answers() == expected(world)


@pytest.mark.parametrize("seed", range(3))
async def test_each_question_has_one_message_after_random_crashes(world: World, seed: int) -> None:
    """No answer is lost, duplicated, mixed up or left over."""
    await crash_at_random(world, seed)


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(100, 124))
async def test_each_question_has_one_message_after_many_crashes(world: World, seed: int) -> None:
    """The same with more seeds."""
    await crash_at_random(world, seed)
