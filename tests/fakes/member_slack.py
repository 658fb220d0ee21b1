"""Who is in which channel of a Slack, as tests say it: in front of our double, or with a Web API in memory.

``users.conversations`` lists what Slack documents: a person's channels, and the token's own where nobody is
named.
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
    """Answers for people's channels; without a double it also keeps what is posted."""

    # Person -> the channels that they are in.
    members: dict[str, set[str]]
    # Channel -> its name.
    names: dict[str, str]
    double: SlackDouble | None = None
    # Direct chat -> its person.
    directs: dict[str, str] = field(default_factory=dict)
    # It does not say who is where.
    is_silent: bool = False
    api_url: str = ""
    # Whose channels were asked for, in order.
    asked: list[str] = field(default_factory=list)
    # Place -> all that was shown there, as JSON: a channel, a person's home, or a path of ours.
    shown: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    numbers: count[int] = field(default_factory=lambda: count(1))

    async def handle(self, request: web.Request) -> web.Response:
        """One call of the Web API."""
        method, body = request.match_info["method"], await read_body(request)
        if method == "users.conversations":
            return self._conversations(str(body.get("user") or ""))
        if self.double is not None:
            return await pass_on(self.double, request, method)
        return self._answer(method, body)

    async def reply(self, request: web.Request) -> web.Response:
        """What is sent to a response URL."""
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
    """Serves it; its address is ``api_url``."""
    app = web.Application()
    app.router.add_route("*", "/api/{method}", slack.handle)
    app.router.add_post("/response/{name}", slack.reply)
    async with TestServer(app) as server:
        slack.api_url = str(server.make_url("/api/"))
        yield slack
