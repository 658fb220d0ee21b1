"""Scripted channel memberships in Slack: in front of the double, or with an in-memory Web API.

``users.conversations`` follows Slack's documentation: it lists a user's channels, or the token's own without
a user.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer
from engines.slack import SlackDouble

from fakes.agent_slack import pass_on, read_body


@dataclass
class MemberSlack:
    """Answers membership calls; without a double it also records messages."""

    # Person -> their channels.
    members: dict[str, set[str]]
    # Channel -> name.
    names: dict[str, str]
    double: SlackDouble | None = None
    # Direct chat -> person.
    directs: dict[str, str] = field(default_factory=dict)
    # Membership calls fail.
    is_silent: bool = False
    api_url: str = ""
    # People whose channels were requested, in order.
    asked: list[str] = field(default_factory=list)
    # Messages as JSON, by channel, App Home or response path.
    shown: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    numbers: count[int] = field(default_factory=lambda: count(1))

    async def handle(self, request: web.Request) -> web.Response:
        """Handle a call of the Web API."""
        method, body = request.match_info["method"], await read_body(request)
        if method == "users.conversations":
            return self._conversations(str(body.get("user") or ""))
        if self.double is not None:
            return await pass_on(self.double, request, method)
        return self._answer(method, body)

    async def reply(self, request: web.Request) -> web.Response:
        """Record what is sent to a response URL."""
        self.shown[request.path].append(json.dumps(await request.json(), ensure_ascii=False))
        return web.Response(text="ok")

    def _conversations(self, user: str) -> web.Response:
        self.asked.append(user)
        if self.is_silent:
            return web.json_response({"ok": False, "error": "internal_error"})
        channels = self.members.get(user, set()) if user else set(self.names)
        listed = [{"id": one, "name": self.names[one]} for one in sorted(channels)]
        return web.json_response({"ok": True, "channels": listed})

    def _answer(self, method: str, body: dict[str, Any]) -> web.Response:
        place, ts = str(body.get("channel") or body.get("user_id") or ""), str(body.get("ts") or "")
        if method == "conversations.info":
            is_im = place in self.directs
            told = {"user": self.directs[place], "is_im": True} if is_im else {"name": self.names[place]}
            return web.json_response({"ok": True, "channel": {"id": place, **told}})
        if method in {"chat.postMessage", "chat.update", "chat.postEphemeral", "views.publish"}:
            self.shown[place].append(json.dumps(body, ensure_ascii=False))
        return web.json_response({"ok": True, "channel": place, "ts": ts or f"{next(self.numbers)}.000100"})


@asynccontextmanager
async def serve_members(slack: MemberSlack) -> AsyncIterator[MemberSlack]:
    """Serve the fake; its URL is ``api_url``."""
    app = web.Application()
    app.router.add_route("*", "/api/{method}", slack.handle)
    app.router.add_post("/response/{name}", slack.reply)
    async with TestServer(app) as server:
        slack.api_url = str(server.make_url("/api/"))
        yield slack
