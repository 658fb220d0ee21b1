"""In-memory Slack Web API for streams in one thread, following Slack's documentation."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from fakes.slack_api import slack_api


@dataclass
class StreamingSlack:
    """A thread whose messages stream until they are stopped."""

    url: str = ""
    calls: list[str] = field(default_factory=list)
    sent: list[dict[str, Any]] = field(default_factory=list)
    messages: dict[str, dict[str, Any]] = field(default_factory=dict)
    posted: int = 0
    streaming: set[str] = field(default_factory=set)
    # Errors by method.
    refusals: dict[str, str] = field(default_factory=dict)
    # Methods that take effect and then cut the connection.
    lost: set[str] = field(default_factory=set)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Handle a call of the Web API."""
        method = request.match_info["method"]
        body = await request.json() if request.content_type == "application/json" else {}
        body |= dict(request.query) | dict(await request.post())
        self.calls.append(method)
        self.sent.append(body)
        error = self.refusals.get(method) or self._fault(method, body)
        if error == "ratelimited":
            reply = {"ok": False, "error": error}
            return web.json_response(reply, status=429, headers={"Retry-After": "60"})
        if error:
            return web.json_response({"ok": False, "error": error})
        done = self._do(method, body)
        if method in self.lost and request.transport:
            request.transport.close()
        return web.json_response({"ok": True, **done})

    def _fault(self, method: str, body: dict[str, Any]) -> str:
        ts = body.get("ts", "")
        if method in ("chat.appendStream", "chat.stopStream") and ts not in self.streaming:
            return "message_not_in_streaming_state"
        if method == "chat.update" and ts in self.streaming:
            return "streaming_state_conflict"
        return "message_not_found" if method.startswith("chat.") and ts and ts not in self.messages else ""

    def _do(self, method: str, body: dict[str, Any]) -> dict[str, Any]:
        if method.startswith("agents."):
            return {}
        if method == "conversations.replies":
            return {"messages": [{"ts": "17.1", "user": "U1"}, *self.messages.values()]}
        if method in ("chat.postMessage", "chat.startStream"):
            ts, self.posted = f"18.{self.posted}", self.posted + 1
            self.messages[ts] = {"ts": ts, "user": "UBOT", "shown": list(body.get("chunks") or ())}
            if method == "chat.startStream":
                self.streaming.add(ts)
            return {"channel": body["channel"], "ts": ts} | self._keep(ts, body)
        ts = body["ts"]
        if method == "chat.stopStream":
            self.streaming.discard(ts)
        if method == "chat.appendStream":
            self.messages[ts]["shown"] += body["chunks"]
        if method == "chat.delete":
            del self.messages[ts]
            return {}
        return self._keep(ts, body)

    def _keep(self, ts: str, body: dict[str, Any]) -> dict[str, Any]:
        kept = {name: body[name] for name in ("metadata", "blocks", "text") if name in body}
        self.messages[ts] |= kept
        return {}


@asynccontextmanager
async def streaming_slack() -> AsyncIterator[StreamingSlack]:
    """Serve the fake on loopback."""
    slack = StreamingSlack()
    async with slack_api(slack.handle) as slack.url:
        yield slack
