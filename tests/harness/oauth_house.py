"""A multi-workspace app: real adapter, conversation and database, with a fake Slack."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import aiohttp
from aiohttp import web
from aiohttp.test_utils import TestServer
from engines.support.ports import free_port
from fakes.oauth_slack import CLIENT_ID, CLIENT_SECRET, OAuthSlack
from fakes.slack_events import deliver
from sqlalchemy import select

from bot.answers.citations.signed_links import KeyRing, Links
from bot.bootstrap import build_chat_service
from bot.chat.conversation.conversation import Conversation
from bot.core.models import Answer, AnswerFigure, AnswerState, Question
from bot.core.ports import AnswerListener, Messenger
from bot.platforms.slack.adapter import PATH, SlackAdapter
from bot.platforms.slack.address import SLACK
from bot.platforms.slack.installations.oauth import INSTALL, REDIRECT
from bot.platforms.slack.platform import open_slack
from bot.settings import BotSettings
from harness.empty_homes import make_sqlite
from harness.waiting import until
from storage.chat.inbox import Inbox
from storage.errors import DocumentError
from storage.installations.slack_installations import SlackInstallations
from storage.models import PageImage, Platform
from storage.settings import StorageSettings
from storage.sql.tables import InboxRow
from storage.stores import Stores, open_stores

SECRET = "signing-secret-CANARY"
COOKIE = "slack-app-oauth-state"
# Slack's channel ids are unique, but the code must not rely on it: two workspaces share this one.
CHANNEL = "C0SAME001"


@dataclass
class Answers:
    """Answers every question with its channel, once the gate is open."""

    gate: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer(self, question: Question, listener: AnswerListener | None = None) -> Answer:
        """Return the answer."""
        await self.gate.wait()
        return Answer(AnswerState.GROUNDED, f"For {question.channel.tenant}.")


@dataclass(frozen=True)
class Outside:
    """Browsers and Slack, as clients of the app."""

    # URL of the app.
    url: str
    slack: OAuthSlack
    session: aiohttp.ClientSession

    async def begin(self, team: str = "") -> tuple[str, dict[str, str], str]:
        """Start an installation in a browser; return state, cookies and Slack's page."""
        async with self.session.get(f"{self.url}{INSTALL}?team={team}", allow_redirects=False) as response:
            assert response.status == 302, await response.text()
            page = response.headers["Location"]
            cookies = {COOKIE: response.cookies[COOKIE].value}
        return parse_qs(urlsplit(page).query)["state"][0], cookies, page

    async def finish(self, cookies: dict[str, str], **query: str) -> tuple[int, str]:
        """Return status and text of the page that a browser is redirected to."""
        async with self.session.get(f"{self.url}{REDIRECT}", params=query, cookies=cookies) as response:
            return response.status, await response.text()

    async def install(self, team: str) -> str:
        """Install the app in a workspace; return the text of the last page."""
        _, cookies, page = await self.begin(team)
        async with self.session.get(page, allow_redirects=False) as response:
            back = parse_qs(urlsplit(response.headers["Location"]).query)
        status, words = await self.finish(cookies, **{name: values[0] for name, values in back.items()})
        assert status == 200, words
        return words

    async def send(self, event: dict[str, Any], team: str, **envelope: Any) -> int:
        """Post a signed event of a workspace; return the status of the reply."""
        authorization = {
            "enterprise_id": None,
            "team_id": team,
            "user_id": f"U{team}"[:11],
            "is_bot": True,
            "is_enterprise_install": False,
        }
        body = json.dumps(
            {
                "type": "event_callback",
                "team_id": team,
                "event_id": f"Ev{hash(json.dumps(event))}",
                "event_time": int(time.time()),
                "authorizations": [authorization],
                "event": event,
                **envelope,
            }
        )
        stamp = str(int(time.time()))
        digest = hmac.new(SECRET.encode(), f"v0:{stamp}:{body}".encode(), hashlib.sha256).hexdigest()
        headers = {
            "Content-Type": "application/json",
            "X-Slack-Request-Timestamp": stamp,
            "X-Slack-Signature": f"v0={digest}",
        }
        async with self.session.post(f"{self.url}{PATH}", data=body, headers=headers) as response:
            return response.status

    async def ask(
        self, team: str, ts: str, channel: str = CHANNEL, text: str = "when?", **envelope: Any
    ) -> None:
        """Mention the bot in a workspace."""
        event = {
            "type": "app_mention",
            "user": "U0ALICE01",
            "team": team,
            "channel": channel,
            "ts": ts,
            "text": text,
        }
        await deliver(lambda: self.send(event, team, **envelope))


@dataclass(frozen=True)
class House(Outside):
    """The app from the inside, too."""

    home: Path
    stores: Stores
    door: SlackAdapter
    answers: Answers

    @property
    def installations(self) -> SlackInstallations:
        """Store of installations."""
        return SlackInstallations(self.stores.database)

    async def states(self) -> list[tuple[str, str | None]]:
        """Return (state, reason) of every question, in order."""
        async with self.stores.database.snapshot() as session:
            rows = (await session.scalars(select(InboxRow).order_by(InboxRow.id))).all()  # type: ignore[arg-type]
        return [(row.state, row.reason) for row in rows]

    async def until_ended(self, count: int) -> list[tuple[str, str | None]]:
        """Return the states once ``count`` questions are done or failed."""

        async def look() -> list[tuple[str, str | None]] | None:
            states = await self.states()
            is_over = len(states) == count and all(state != "waiting" for state, _ in states)
            return states if is_over else None

        return await until(look, every=0.05)

    async def end_token(self, team: str, left: timedelta) -> None:
        """Let a workspace's token expire soon."""
        held = await self.installations.get(team)
        assert held is not None
        assert await self.installations.renew(held, held.sealed, datetime.now(UTC) + left)


async def draw_nothing(figure: AnswerFigure) -> PageImage:
    """Raise: no page can be rendered here."""
    raise DocumentError(f"page {figure.page} is damaged and cannot be drawn")


def oauth_settings(api_url: str, url: str, **others: Any) -> BotSettings:
    """Return the settings of an app for many workspaces."""
    given: dict[str, Any] = {
        "slack_client_id": CLIENT_ID,
        "slack_client_secret": CLIENT_SECRET,
        "slack_signing_secret": SECRET,
        "slack_api_url": api_url,
        "public_url": url,
    }
    return BotSettings(**(given | others))


@asynccontextmanager
async def open_house(slack: OAuthSlack, home: Path) -> AsyncIterator[House]:
    """Yield the running app on a new home."""
    make_sqlite(home)
    async with AsyncExitStack() as stack:
        stores = await stack.enter_async_context(open_stores(StorageSettings(home=home)))
        answers, messengers = Answers(), dict[Platform, Messenger]()
        answers.gate.set()
        conversation = Conversation(
            Inbox(stores.database),
            stores.channels,
            answers,
            stores.memory,
            messengers,
            settings=BotSettings(),
            poll_seconds=0.05,
        )
        app = web.Application()
        server = TestServer(app, port=free_port())
        url = f"http://127.0.0.1:{server.port}"
        settings = oauth_settings(slack.api_url, url)
        links = Links(KeyRing(home / "link_keys.json"), url, timedelta(days=7), lambda: datetime.now(UTC))
        service = build_chat_service(SLACK, settings, stores, conversation, links=links, draw=draw_nothing)
        door = open_slack(settings, service, stores)
        assert door is not None
        messengers[SLACK] = door.messenger
        door.add_routes(app)
        await stack.enter_async_context(server)
        await door.start()
        stack.push_async_callback(door.aclose)
        stack.push_async_callback(door.stop)
        working = asyncio.create_task(conversation.run())

        async def drain() -> None:
            await conversation.drain(1)
            await working

        stack.push_async_callback(drain)
        session = await stack.enter_async_context(aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()))
        yield House(url, slack, session, home, stores, door, answers)
