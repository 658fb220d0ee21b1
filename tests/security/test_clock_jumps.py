"""Probe: the clock jumps two hours while leases are held; no work is delayed by that.

Run alone: ``make test TESTS=tests/security/test_clock_jumps.py``. Leases of readings, folders, notices and
Slack tokens have such tests elsewhere: ``test_reading_queue.py``, ``test_folder_leases.py``,
``test_notification_events.py``, ``test_slack_installations.py``.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from fakes.echo_chat import Echo, EchoChat, answering
from harness.clocks import shift_wall_clock
from harness.empty_homes import make_sqlite
from harness.waiting import until
from sqlalchemy import select, update

from bot.chat.conversation.answer_json import answer_to_json
from bot.chat.conversation.conversation import Conversation
from bot.core.models import Answer, AnswerState
from bot.core.ports import IncomingMessage
from bot.settings import BotSettings
from storage.chat.answer_sources import AnswerSources
from storage.chat.channels import Channels
from storage.chat.inbox import Inbox
from storage.chat.thread_memory import ThreadMemory
from storage.clock import utc_now
from storage.files.reading_files import ReadingFiles
from storage.models import ChannelKey, Platform
from storage.queues.inventory import Inventory
from storage.sql.database import Database
from storage.sql.tables import InboxRow, OutboxRow
from storage.web_pages.page_store import WebPageStore

JUMPS = [timedelta(hours=2), timedelta(hours=-2)]
# Lease of questions in ``serve``: each has its answer within this time after the jump.
LEASE = 20.0
URL = "https://housing.example/rules"


class World:
    """World with one database and one chat, in which workers start and die."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.inbox = Inbox(database)
        self.chat = EchoChat()
        self.echo = Echo()

    def worker(self, lease_seconds: float = LEASE) -> Conversation:
        """Return a worker that is not running yet."""
        messengers: dict[Platform, Any] = {Platform("slack"): self.chat}
        return Conversation(
            self.inbox,
            Channels(self.database),
            self.echo,
            ThreadMemory(self.database, 30),
            messengers,
            settings=BotSettings(),
            poll_seconds=0.1,
            lease_seconds=lease_seconds,
        )

    async def is_answered(self) -> bool:
        """True if the question is done."""
        async with self.database.snapshot() as session:
            return (await session.scalars(select(InboxRow.state))).all() == ["done"]


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """Yield a world with a fresh database."""
    database = await Database.open(make_sqlite(tmp_path))
    async with aclosing(database):
        yield World(database)


def message() -> IncomingMessage:
    """Return a question in a channel."""
    key = ChannelKey(Platform("slack"), "T1ABC", "C1ABC")
    return IncomingMessage(key, "general", "e1", "m1", "17.1", "When?", {"event": "e1"})


@pytest.mark.parametrize("jump", JUMPS, ids=["ahead", "back"])
async def test_a_question_in_progress_during_a_jump_is_answered_once(world: World, jump: timedelta) -> None:
    """The worker survives, renewing its lease by the wrong clock, then by the correct one."""
    world.echo.gate.clear()
    worker = world.worker(lease_seconds=0.6)
    async with answering(worker):
        await worker.receive(message())
        await until(lambda: is_true(bool(world.echo.asked)))
        with shift_wall_clock(jump):
            await asyncio.sleep(1)
        world.echo.gate.set()
        await until(world.is_answered)
    assert world.chat.texts == ["When?"]


@pytest.mark.parametrize("jump", JUMPS, ids=["ahead", "back"])
async def test_a_dead_workers_question_is_answered_after_a_jump(world: World, jump: timedelta) -> None:
    """Shows that a lease that ends two hours later or earlier delays no answer."""
    await world.worker().receive(message())
    with shift_wall_clock(jump):
        assert await world.inbox.claim("of a process that was killed", LEASE, [Platform("slack")])
    async with answering(world.worker()):
        await until(world.is_answered)
    assert world.chat.texts == ["When?"]


@pytest.mark.parametrize("jump", JUMPS, ids=["ahead", "back"])
async def test_an_answer_deferred_by_a_wrong_clock_is_delivered(world: World, jump: timedelta) -> None:
    """Shows that an answer in the outbox with a retry in ten seconds is not delayed by hours."""
    await world.worker().receive(message())
    with shift_wall_clock(jump):
        item = await world.inbox.claim("of a process that was killed", LEASE, [Platform("slack")])
        assert item
        await world.inbox.mark_posting(item)
        message_id = await world.chat.post_placeholder(item.address)
        await world.inbox.mark_placed(item, message_id)
        await world.inbox.save_answer(item, answer_to_json(Answer(AnswerState.CHAT, "It was kept.")))
        await world.inbox.retry_later(item, "the platform is busy", at_least=10)
    async with answering(world.worker()):
        await until(world.is_answered)
    assert (world.chat.texts, world.echo.asked) == (["It was kept."], [])


@pytest.mark.parametrize("step", ["changed", "claimed", "put off"])
async def test_a_message_update_is_not_delayed_by_a_wrong_clock(world: World, step: str) -> None:
    """Shows that timestamps from a fast clock at any step of a posted answer do not delay its update."""
    async with answering(world.worker()):
        await world.worker().receive(message())
        await until(world.is_answered)
    sources, platforms = AnswerSources(world.database), [Platform("slack")]
    assert await sources.claim(platforms, 60) is None
    with shift_wall_clock(timedelta(hours=2)):
        async with world.database.transaction() as session:
            await session.execute(update(OutboxRow).values(changed_at=utc_now()))
        if step != "changed":
            posted = await sources.claim(platforms, 60)
            assert posted
            if step == "put off":
                await sources.retry_later(posted, 60)
    assert await sources.claim(platforms, 60) is not None
    assert await sources.claim(platforms, 60) is None


@pytest.mark.parametrize("is_failing", [False, True])
async def test_a_web_page_is_not_delayed_beyond_its_interval(world: World, is_failing: bool) -> None:
    """Shows that a refresh or retry scheduled by a fast clock is due once the clock is correct."""
    pages = WebPageStore(world.database, ReadingFiles(Path()), cache_days=1 / 48)
    await pages.approve([URL])
    with shift_wall_clock(timedelta(hours=2)):
        assert await pages.claim(URL)
        await (pages.record_failure(URL, "it is away") if is_failing else pages.store_listing(URL, [], {}))
    assert await pages.due() == [URL]
    assert await pages.claim(URL)


async def test_a_comparison_leased_by_a_wrong_clock_is_made(world: World) -> None:
    """Shows that the reconciler's lease and pause end for processes with the correct time."""
    inventory, lease = Inventory(world.database), timedelta(seconds=15)
    with shift_wall_clock(timedelta(hours=2)):
        assert await inventory.acquire_lease(lease, is_wanted_now=False)
    assert await inventory.acquire_lease(lease, is_wanted_now=False)
    with shift_wall_clock(timedelta(hours=2)):
        await inventory.release_lease(timedelta(hours=1))
    assert await inventory.acquire_lease(lease, is_wanted_now=False)


async def is_true(value: bool) -> bool:
    """Return the awaited value."""
    return value
