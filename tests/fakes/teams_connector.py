"""A minimal Bot Framework connector that records activities, with scripted faults."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

CONVERSATION = "19:ops@thread.tacv2;messageid=17"


@dataclass
class Teams:
    """Records activities, with scripted faults."""

    url: str = ""
    # Responses in place of the real ones; None cuts the connection after the work was done.
    faults: list[web.Response | None] = field(default_factory=list)
    sent: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)
    shown: dict[str, dict[str, Any]] = field(default_factory=dict)
    authorizations: list[str | None] = field(default_factory=list)
    tokens: int = 0
    # Ended streams.
    ended: set[str] = field(default_factory=set)
    # The running stream: a chat has one at a time.
    streaming: str = ""
    # Status with which creating a direct chat fails; 0: it succeeds.
    refusal: int = 0
    # Blocks everything but a placeholder until it is set.
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    # Set once more than a placeholder was accepted.
    took: asyncio.Event = field(default_factory=asyncio.Event)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Post or replace an activity."""
        activity, known = await request.json(), request.match_info.get("activity")
        self.authorizations.append(request.headers.get("Authorization"))
        self.sent.append((request.method, request.match_info["conversation"], activity))
        fault = self.faults.pop(0) if self.faults and activity["type"] == "message" else False
        if isinstance(fault, web.Response):
            return fault
        name = known or f"m{len(self.shown)}"
        infos = [info for info in activity.get("entities", ()) if info["type"] == "streaminfo"]
        for info in infos:
            name = info.get("streamId", "stream")
            if not self._takes(info, name):
                return web.json_response({"error": {"code": "ContentStreamNotAllowed"}}, status=403)
        if activity["type"] == "message":
            self.shown[name] = activity
        if fault is None and request.transport:
            request.transport.close()
        if activity != {"type": "typing"}:
            self.took.set()
            await self.gate.wait()
        return web.json_response({"id": name}, status=201)

    def _takes(self, info: dict[str, Any], stream: str) -> bool:
        """True if a stream starts, continues or ends with this."""
        if stream in self.ended or (self.streaming and "streamId" not in info):
            return False
        self.streaming = stream
        if info["streamType"] == "final":
            self.ended.add(stream)
            self.streaming = ""
        return True

    async def open_chat(self, request: web.Request) -> web.Response:
        """Create the bot's direct chat with a person."""
        asked = await request.json()
        if self.refusal:
            return web.json_response({"error": {"code": "Refused"}}, status=self.refusal)
        (member,) = asked["members"]
        assert asked["bot"]["id"]
        assert asked["channelData"]["tenant"]["id"]
        return web.json_response({"id": f"a:{member['id']}"}, status=201)

    async def grant(self, request: web.Request) -> web.Response:
        """Issue a token, as Microsoft's endpoint does."""
        form = await request.post()
        assert form["scope"] == "https://api.botframework.com/.default"
        self.tokens += 1
        return web.json_response({"access_token": f"token-{self.tokens}", "expires_in": 3600})

    @property
    def address(self) -> dict[str, Any]:
        """Reply address of a question."""
        return {"service_url": f"{self.url}/connector/", "conversation": CONVERSATION}


@asynccontextmanager
async def running_teams() -> AsyncIterator[Teams]:
    """Yield the connector and the token endpoint on loopback."""
    teams, app = Teams(), web.Application()
    teams.gate.set()
    conversations = "/connector/v3/conversations"
    path = f"{conversations}/{{conversation}}/activities"
    app.router.add_post(conversations, teams.open_chat)
    app.router.add_post(path, teams.handle)
    app.router.add_put(path + "/{activity}", teams.handle)
    app.router.add_post("/tenant-1/oauth2/v2.0/token", teams.grant)
    async with TestServer(app) as server:
        teams.url = str(server.make_url("")).rstrip("/")
        yield teams
