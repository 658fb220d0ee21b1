"""Socket Mode stores an event before it acknowledges it, against a small fake Socket Mode server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import WSMsgType, web
from aiohttp.test_utils import TestServer
from harness.waiting import until, until_true

from bot.core.ports import ACK_SECONDS
from bot.platforms.slack.adapter import SlackAdapter
from bot.settings import BotSettings
from storage.errors import DatabaseUnavailable, SettingsError

EVENT = {
    "type": "event_callback",
    "event_id": "Ev1",
    "authorizations": [{"team_id": "T0ACME001", "user_id": "U0FOOT001"}],
    "event": {"type": "message", "channel_type": "im", "channel": "D0ALICE01", "user": "U1", "ts": "1.0"},
}


@dataclass
class SocketServer:
    """A one-socket server: sends events and records which were acknowledged."""

    url: str = ""
    acknowledged: set[str] = field(default_factory=set)
    socket: web.WebSocketResponse | None = None
    tokens: dict[str, str | None] = field(default_factory=dict)
    refusal: str | None = None
    opened: asyncio.Event = field(default_factory=asyncio.Event)
    # If set, opened sockets get a hello.
    greets: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        """Send hello at once."""
        self.greets.set()

    async def call(self, request: web.Request) -> web.Response:
        """Handle ``auth.test`` and ``apps.connections.open``."""
        method = request.match_info["method"]
        self.tokens[method] = request.headers.get("Authorization")
        if self.refusal:
            return web.json_response({"ok": False, "error": self.refusal})
        return web.json_response({"ok": True, "url": self.url.replace("http", "ws") + "/socket"})

    async def connect(self, request: web.Request) -> web.WebSocketResponse:
        """Receive acknowledgements until the bot disconnects."""
        self.socket = web.WebSocketResponse()
        await self.socket.prepare(request)
        self.opened.set()
        await self.greets.wait()
        await self.socket.send_json({"type": "hello", "num_connections": 1})
        async for message in self.socket:
            if message.type is WSMsgType.TEXT:
                self.acknowledged.add(json.loads(message.data)["envelope_id"])
        return self.socket

    async def send(self, envelope_id: str) -> None:
        """Send the event in an envelope."""
        assert self.socket
        payload = {"type": "events_api", "envelope_id": envelope_id, "payload": EVENT}
        await self.socket.send_json(payload | {"accepts_response_payload": False})


@pytest.fixture
async def server() -> AsyncIterator[SocketServer]:
    """Yield the server on loopback."""
    server, app = SocketServer(), web.Application()
    app.router.add_post("/api/{method}", server.call)
    app.router.add_get("/socket", server.connect)
    async with TestServer(app) as running:
        server.url = str(running.make_url("")).rstrip("/")
        yield server


@pytest.fixture
async def inbox(
    server: SocketServer,
    settings_for: Callable[..., BotSettings],
    new_inbox: Callable[[], Any],
    door_for: Callable[..., SlackAdapter],
) -> AsyncIterator[Any]:
    """Yield the inbox behind an adapter that is connected to the server."""
    inbox = new_inbox()
    door = door_for(settings_for(f"{server.url}/api", slack_app_token="xapp-test"), inbox)
    await door.start()
    await _until_ready(door)
    yield inbox
    await door.stop()


async def test_an_event_is_stored_before_it_is_acknowledged(server: SocketServer, inbox: Any) -> None:
    """The envelope is acknowledged only after the commit."""
    inbox.gate = asyncio.Event()
    await server.send("first")
    await until_true(lambda: inbox.arrivals)
    assert server.acknowledged == set()
    inbox.gate.set()
    await until_true(lambda: server.acknowledged)
    assert (len(inbox.kept), server.acknowledged) == (1, {"first"})


async def test_an_event_stored_too_late_is_resent_and_stored_once(server: SocketServer, inbox: Any) -> None:
    """With a locked database the envelope is never acknowledged: Slack has resent it by then."""
    inbox.gate = asyncio.Event()
    await server.send("first")
    await asyncio.sleep(ACK_SECONDS + 0.5)
    inbox.gate.set()
    await server.send("again")
    await until_true(lambda: server.acknowledged)
    assert (len(inbox.kept), server.acknowledged) == (1, {"again"})


async def test_an_event_that_is_not_stored_is_never_acknowledged(server: SocketServer, inbox: Any) -> None:
    """Slack resends an unacknowledged event, which is then stored."""
    inbox.failure = DatabaseUnavailable("disk full")
    await server.send("lost")
    await until_true(lambda: inbox.arrivals)
    inbox.failure = None
    await server.send("repeated")
    await until_true(lambda: server.acknowledged)
    assert (len(inbox.kept), server.acknowledged) == (1, {"repeated"})


async def test_the_socket_is_opened_by_the_app_token_and_nothing_else(
    server: SocketServer, inbox: Any
) -> None:
    """The bot token posts and the app token connects, both at the configured URL."""
    assert server.tokens == {"auth.test": "Bearer xoxb-test", "apps.connections.open": "Bearer xapp-test"}
    assert inbox.arrivals == 0


async def test_a_refused_bot_token_is_reported_at_startup(
    server: SocketServer,
    settings_for: Callable[..., BotSettings],
    new_inbox: Callable[[], Any],
    door_for: Callable[..., SlackAdapter],
) -> None:
    """A wrong token raises a SettingsError that names the variable."""
    server.refusal = "invalid_auth"
    door = door_for(settings_for(f"{server.url}/api/", slack_app_token="xapp-test"), new_inbox())
    with pytest.raises(SettingsError, match=r"SLACK_BOT_TOKEN.*invalid_auth"):
        await door.start()


async def test_an_unreachable_slack_does_not_prevent_startup(
    settings_for: Callable[..., BotSettings],
    new_inbox: Callable[[], Any],
    door_for: Callable[..., SlackAdapter],
) -> None:
    """The service starts, is not ready, and stops at once even while it waits for Slack."""
    door = door_for(settings_for("http://127.0.0.1:9/api/", slack_app_token="xapp-test"), new_inbox())
    await door.start()
    assert not await door.is_ready()
    await door.stop()


async def test_the_socket_is_ready_once_slack_says_hello(
    server: SocketServer,
    settings_for: Callable[..., BotSettings],
    new_inbox: Callable[[], Any],
    door_for: Callable[..., SlackAdapter],
) -> None:
    """An open WebSocket delivers no events yet; after a disconnect the next hello counts."""
    server.greets.clear()
    door = door_for(settings_for(f"{server.url}/api", slack_app_token="xapp-test"), new_inbox())
    await door.start()
    await server.opened.wait()
    await asyncio.sleep(0.1)
    assert not await door.is_ready()
    server.greets.set()
    await _until_ready(door)
    server.greets.clear()
    server.opened.clear()
    assert server.socket
    await server.socket.send_json({"type": "disconnect", "reason": "refresh_requested"})
    await server.opened.wait()
    await asyncio.sleep(0.1)
    assert not await door.is_ready()
    server.greets.set()
    await _until_ready(door)
    await door.stop()


async def _until_ready(door: SlackAdapter) -> None:
    await until(door.is_ready, every=0.02)
