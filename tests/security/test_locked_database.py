"""Probe: SQLite is locked while questions arrive; platforms get 503, and no question is lost.

Run alone: ``make test TESTS=tests/security/test_locked_database.py``.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import sqlite3
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from fakes.echo_chat import Echo, EchoChat, answering
from fakes.memory_inbox import MemoryInbox
from harness.empty_homes import make_sqlite
from harness.waiting import until
from sqlalchemy import select

from bot.chat.conversation.conversation import Conversation
from bot.core.models import Answer, AnswerState
from bot.core.ports import ACK_SECONDS, IncomingMessage
from bot.platforms.slack.adapter import SlackAdapter
from bot.platforms.slack.workspace.app_manifest import PATH as SLACK_PATH
from bot.platforms.teams.adapter import PATH as TEAMS_PATH
from bot.platforms.teams.adapter import TeamsAdapter
from bot.settings import BotSettings
from storage.chat.channels import Channels
from storage.chat.inbox import Inbox
from storage.chat.thread_memory import ThreadMemory
from storage.models import Platform
from storage.sql.database import Database
from storage.sql.tables import InboxRow

Json = dict[str, Any]
# Slack's documented timeout in seconds.
SLACK_SECONDS = 3.0
# Writers wait longer than the lock is held, so that only the acknowledgement deadline can end a request in
# time.
BUSY_SECONDS = 60.0
LOCKED_SECONDS = 5.0
SECRET = "signing-secret-of-the-test"
QUESTIONS = 8


@dataclass
class Office:
    """Both platform adapters on loopback, with one conversation on a real SQLite file."""

    file: Path
    database: Database
    url: str
    session: aiohttp.ClientSession
    chat: EchoChat

    async def send(self, number: int) -> int:
        """Send a question like its platform does, identical each time; return the status."""
        data = json.dumps(slack_event(number) if number % 2 else teams_activity(number)).encode()
        path, headers = (SLACK_PATH, signature(data)) if number % 2 else (TEAMS_PATH, {})
        headers |= {"Content-Type": "application/json"}
        async with self.session.post(self.url + path, data=data, headers=headers) as response:
            return response.status

    async def send_all(self) -> list[int]:
        """Send all questions at once; return the statuses."""
        return await asyncio.gather(*map(self.send, range(QUESTIONS)))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the file like another program's transaction."""
        other = sqlite3.connect(self.file, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            other.execute("ROLLBACK")
            other.close()

    async def states(self) -> list[str]:
        """Return the states of all stored questions."""
        async with self.database.snapshot() as session:
            return [row.state for row in await session.scalars(select(InboxRow))]

    async def all_are_answered(self) -> bool:
        """True if all questions are stored and answered."""
        return await self.states() == ["done"] * QUESTIONS


def slack_event(number: int) -> Json:
    """Return a mention in a channel."""
    authorization = {"team_id": "T0ACME001", "user_id": "U0FOOT001", "is_enterprise_install": False}
    text = f"<@U0FOOT001> question {number}?"
    said = {"type": "app_mention", "channel": "C0ITOPS01", "user": "U0ALICE01", "text": text}
    event = said | {"ts": f"17.{number:04}"}
    return {
        "type": "event_callback",
        "event_id": f"Ev{number}",
        "authorizations": [authorization],
        "event": event,
    }


def teams_activity(number: int) -> Json:
    """Return a message in a personal chat."""
    conversation = {"id": "a:1", "conversationType": "personal", "tenantId": "t"}
    said = {"type": "message", "id": str(number), "text": f"question {number}?", "from": {"id": "29:ann"}}
    return said | {"conversation": conversation, "serviceUrl": "http://127.0.0.1:9/", "channelId": "msteams"}


def signature(body: bytes) -> dict[str, str]:
    """Return the signature headers that Slack would send with a body."""
    stamp = str(int(time.time()))
    digest = hmac.new(SECRET.encode(), f"v0:{stamp}:".encode() + body, hashlib.sha256).hexdigest()
    return {"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": f"v0={digest}"}


class StoredQuestions(MemoryInbox):
    """Stores questions in the database, all else in memory."""

    conversation: Conversation

    async def receive(self, message: IncomingMessage) -> bool:
        """Store a question in the database."""
        return await self.conversation.receive(message)


def add_doors(app: web.Application, conversation: Conversation, stack: AsyncExitStack) -> None:
    """Add the routes of both platforms."""
    others = StoredQuestions(lambda message: Answer(AnswerState.CHAT, message.text))
    others.conversation = conversation
    settings = BotSettings(
        slack_bot_token="xoxb-test",
        slack_api_url="http://127.0.0.1:9/api/",
        slack_signing_secret=SECRET,
        teams_development=True,
    )
    for door in (SlackAdapter(settings, others.service), TeamsAdapter(settings, others.service)):
        door.add_routes(app)
        stack.push_async_callback(door.aclose)
        stack.push_async_callback(door.stop)


@pytest.fixture
async def office(tmp_path: Path) -> AsyncIterator[Office]:
    """Yield the office with the channels of both platforms known, so that each question is one write."""
    async with AsyncExitStack() as stack:
        database = await Database.open(make_sqlite(tmp_path), busy_seconds=BUSY_SECONDS)
        stack.push_async_callback(database.aclose)
        chat, app = EchoChat(), web.Application()
        messengers: dict[Platform, Any] = {Platform("slack"): chat, Platform("teams"): chat}
        memory = ThreadMemory(database, 30)
        conversation = Conversation(
            Inbox(database),
            Channels(database),
            Echo(),
            memory,
            messengers,
            settings=BotSettings(),
            poll_seconds=0.1,
        )
        await stack.enter_async_context(answering(conversation))
        add_doors(app, conversation, stack)
        server = await stack.enter_async_context(TestServer(app))
        session = await stack.enter_async_context(aiohttp.ClientSession())
        url = str(server.make_url("")).rstrip("/")
        yield Office(tmp_path / "footnote.db", database, url, session, chat)


async def test_platforms_retry_while_sqlite_is_locked(office: Office) -> None:
    """Each request gets 503 before Slack's timeout; resent during and after the lock, each gets one answer.

    Holds although the first request of each question was stored when the lock ended.
    """
    assert ACK_SECONDS < SLACK_SECONDS
    began = time.monotonic()
    with office.locked():
        first = await office.send_all()
        seconds = time.monotonic() - began
        again = await office.send_all()
        assert await office.states() == []
        await asyncio.sleep(max(0.0, began + LOCKED_SECONDS - time.monotonic()))
    print(f"{QUESTIONS} questions while SQLite was locked: answered after {seconds:.2f} s with {set(first)}")
    assert (set(first), set(again)) == ({503}, {503})
    assert seconds < BUSY_SECONDS / 2  # by the deadline, not because a writer timed out
    assert set(await office.send_all()) == {200}
    await until(office.all_are_answered)
    assert set(await office.send_all()) == {200}
    assert sorted(office.chat.texts) == [f"question {number}?" for number in range(QUESTIONS)]


async def test_questions_during_a_lock_are_answered_without_a_retry(
    office: Office,
) -> None:
    """The request continues after its 503, so a question that is not resent is answered, too."""
    with office.locked():
        assert set(await office.send_all()) == {503}
    await until(office.all_are_answered)
    assert sorted(office.chat.texts) == [f"question {number}?" for number in range(QUESTIONS)]
