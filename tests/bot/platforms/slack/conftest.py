"""A complete Slack adapter on a loopback server, with an in-memory inbox."""

from __future__ import annotations

import hashlib
import hmac
import io
import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from engines.support.slack_judges import RESPONSE_URL, faults_of
from fakes.memory_inbox import MemoryInbox
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.webhook.async_client import AsyncWebhookClient

from bot.core.models import Answer, AnswerState, Citation
from bot.core.ports import IncomingMessage
from bot.platforms.slack.adapter import SlackAdapter
from bot.platforms.slack.workspace.app_manifest import PATH
from bot.settings import BotSettings
from bot.uploads.upload_intake import UploadPolicy

SECRET = "signing-secret-of-the-test"


def answer_to(message: IncomingMessage) -> Answer:
    """Return an answer about its own channel: one cited page, or seven for "all the rules"."""
    channel = message.key.conversation
    count = 7 if "all the rules" in message.text else 1
    citations = tuple(
        Citation(
            n, f"Rules of {channel}", f"{n}.pdf", n + 1, "daily", (), f"http://127.0.0.1:8765/v/{channel}{n}"
        )
        for n in range(1, count + 1)
    )
    marks = "".join(f"[{n}]" for n in range(1, count + 1))
    text = f"For {channel}: backups <b>run</b> *daily* at 2:00 AM {marks}."
    return Answer(AnswerState.GROUNDED, text, citations)


@dataclass(frozen=True)
class Street:
    """The adapter's HTTP server: the URL to post events to, and the inbox that receives them."""

    url: str
    session: aiohttp.ClientSession
    inbox: MemoryInbox

    async def post(self, body: bytes, **headers: str) -> int:
        """Post raw bytes with these headers and return the status."""
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.session.post(self.url, data=io.BytesIO(body), headers=names) as response:
            return response.status

    async def send(self, envelope: dict[str, Any], secret: str = SECRET, age: int = 0) -> int:
        """Post an event like Slack does, signed with ``secret`` ``age`` seconds ago; return the status."""
        body = json.dumps(envelope).encode()
        return await self.post(body, Content_Type="application/json", **sign(body, secret, age))


def sign(body: bytes, secret: str = SECRET, age: int = 0) -> dict[str, str]:
    """Return the signature headers that Slack would send with a body."""
    stamp = str(int(time.time()) - age)
    digest = hmac.new(secret.encode(), f"v0:{stamp}:".encode() + body, hashlib.sha256).hexdigest()
    return {"X_Slack_Request_Timestamp": stamp, "X_Slack_Signature": f"v0={digest}"}


def slack_settings(api_url: str = "http://127.0.0.1:9/api/", **others: Any) -> BotSettings:
    """Return bot settings that point at a Slack API URL."""
    return BotSettings(slack_bot_token="xoxb-test", slack_api_url=api_url, **others)


def open_door(settings: BotSettings, inbox: MemoryInbox) -> SlackAdapter:
    """Return a Slack adapter with these settings and this inbox."""
    inbox.uploads = UploadPolicy(settings.uploads)
    return SlackAdapter(settings, inbox.service)


@pytest.fixture(autouse=True)
def _judged(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Check every payload sent to Slack against its documented schema and limits, then send it unchanged."""
    faults: list[str] = []
    api_call, send = AsyncWebClient.api_call, AsyncWebhookClient.send_dict

    async def call(client: AsyncWebClient, method: str, **given: Any) -> Any:
        sent = given.get("json") or given.get("params") or given.get("data") or {}
        if who := given.get("auth"):  # Slack also accepts client id and secret in a header
            sent = {**sent, **who}
        faults.extend(faults_of(method, sent))
        return await api_call(client, method, **given)

    async def reply(client: AsyncWebhookClient, body: dict[str, Any], **given: Any) -> Any:
        said = {name: value for name, value in body.items() if value is not None}
        faults.extend(faults_of(RESPONSE_URL, said))
        return await send(client, body, **given)

    monkeypatch.setattr(AsyncWebClient, "api_call", call)
    monkeypatch.setattr(AsyncWebhookClient, "send_dict", reply)
    yield
    assert "\n".join(sorted(set(faults))) == ""


@pytest.fixture
async def street() -> AsyncIterator[Street]:
    """Yield an adapter that receives signed events over HTTP; it needs no Slack API."""
    inbox = MemoryInbox(answer_to)
    door = open_door(slack_settings(slack_signing_secret=SECRET), inbox)
    app = web.Application()
    door.add_routes(app)
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(TestServer(app))
        session = await stack.enter_async_context(aiohttp.ClientSession())
        yield Street(str(server.make_url(PATH)), session, inbox)


@pytest.fixture(name="sign")
def signing() -> Any:
    """Return ``sign(body)``, which makes the signature headers of a request from Slack."""
    return sign


@pytest.fixture
def settings_for() -> Any:
    """Return ``settings_for(api_url, **settings)``."""
    return slack_settings


@pytest.fixture
def new_inbox() -> Any:
    """Return ``new_inbox()``."""
    return partial(MemoryInbox, answer_to)


@pytest.fixture
def door_for() -> Any:
    """Return ``door_for(settings, inbox)``."""
    return open_door
