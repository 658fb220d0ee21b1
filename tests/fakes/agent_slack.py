"""Slack's methods for agents, in front of the double that lacks them: streams, sessions, prompts, previews.

Replies follow Slack's documentation; all other calls are forwarded to the double. A stream is a message there
that is updated, so that the double's browser UI shows it grow.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from engines.slack import SlackDouble

from fakes.slack_api import slack_api

MAX_PROMPTS = 4


@dataclass
class AgentSlack:
    """Fake of the agent methods; ``calls`` records them in order."""

    double: SlackDouble
    api_url: str = ""
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    # Blocks of each running stream, by ts.
    streams: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    # Status of each session, by channel and thread.
    statuses: dict[tuple[str, str], str] = field(default_factory=dict)
    titles: dict[tuple[str, str], str] = field(default_factory=dict)
    # Session of each stream, ended ones included, by ts.
    threads: dict[str, tuple[str, str]] = field(default_factory=dict)

    def called(self, method: str) -> list[dict[str, Any]]:
        """Return the arguments of all calls of a method."""
        return [body for name, body in self.calls if name == method]

    def press_stop(self, channel: str, thread: str) -> dict[str, Any]:
        """Press the stop button of a working session: end its streams and return Slack's event."""
        assert self.statuses[channel, thread] == "processing"
        halted = [ts for ts in self.streams if self.threads[ts] == (channel, thread)]
        for ts in halted:
            del self.streams[ts]
        stopped = {"type": "agent_session_stopped", "channel": channel, "thread_ts": thread}
        return stopped | {"event_ts": f"{time.time():.6f}", "streaming_message_ts": halted}

    async def handle(self, request: web.Request) -> web.Response:
        """Handle a call of the Web API."""
        method = request.match_info["method"]
        if method == "chat.update" and (await read_body(request)).get("ts") in self.streams:
            return _refuse("streaming_state_conflict")
        methods = {
            "agents.sessions.rename": self._rename,
            "agents.sessions.setStatus": self._set_status,
            "assistant.threads.setSuggestedPrompts": self._set_prompts,
            "chat.startStream": self._start,
            "chat.appendStream": self._append,
            "chat.stopStream": self._stop,
            "chat.unfurl": self._unfurl,
        }
        if method not in methods:
            return await pass_on(self.double, request, method)
        body = await read_body(request)
        self.calls.append((method, body))
        return await methods[method](body)

    async def _set_prompts(self, body: dict[str, Any]) -> web.Response:
        prompts = body["prompts"]
        if "thread_ts" in body or not 1 <= len(prompts) <= MAX_PROMPTS:
            return _refuse("invalid_arguments")
        return _accept() if all(one.keys() == {"title", "message"} for one in prompts) else _refuse("bad")

    async def _set_status(self, body: dict[str, Any]) -> web.Response:
        session = (body["channel_id"], body.get("thread_ts", ""))
        posted = [one["ts"] for one in await self.double.messages(session[0])]
        if session[1] not in posted:
            return _refuse("thread_ts_required")
        if body["status"] not in ("active", "processing", "suspended", "closed"):
            return _refuse("invalid_status")
        if session not in self.statuses and "title" in body:
            self.titles[session] = body["title"]
        self.statuses[session] = body["status"]
        return _accept(status=body["status"], agent_status=body["status"])

    async def _rename(self, body: dict[str, Any]) -> web.Response:
        session = (body["channel_id"], body.get("thread_ts", ""))
        if session not in self.statuses:
            return _refuse("session_not_found")
        self.titles[session] = body["title"]
        return _accept(title=body["title"])

    async def _start(self, body: dict[str, Any]) -> web.Response:
        if (
            not body.get("thread_ts")
            or not body.get("recipient_user_id")
            or not body.get("recipient_team_id")
        ):
            return _refuse("missing_recipient_user_id")
        place = {name: body[name] for name in ("channel", "thread_ts")}
        blocks = _blocks(body)
        reply = await self.double.post("/api/chat.postMessage", **place, text="…", blocks=blocks)
        self.streams[reply["ts"]] = blocks
        self.threads[reply["ts"]] = session = (body["channel"], body["thread_ts"])
        self.statuses[session] = "processing"
        return _accept(channel=reply["channel"], ts=reply["ts"])

    async def _append(self, body: dict[str, Any]) -> web.Response:
        blocks = self.streams.get(body["ts"])
        if blocks is None:
            return _refuse("message_not_in_streaming_state")
        blocks += _blocks(body)
        place = {name: body[name] for name in ("channel", "ts")}
        await self.double.post("/api/chat.update", **place, text="…", blocks=blocks)
        return _accept(**place)

    async def _stop(self, body: dict[str, Any]) -> web.Response:
        if self.streams.pop(body["ts"], None) is None:
            return _refuse("message_not_in_streaming_state")
        self.statuses[self.threads[body["ts"]]] = body.get("session_status", "active")
        return _accept(channel=body["channel"], ts=body["ts"])

    async def _unfurl(self, body: dict[str, Any]) -> web.Response:
        """Accept previews of links in the message only."""
        found = [one for one in await self.double.messages(body["channel"]) if one["ts"] == body["ts"]]
        is_known = bool(found) and all(url in found[0]["text"] for url in body["unfurls"])
        return _accept() if is_known else _refuse("cannot_unfurl_url")


async def pass_on(double: SlackDouble, request: web.Request, method: str) -> web.Response:
    """Forward a call to the double unchanged."""
    headers = {
        name: request.headers[name] for name in ("Content-Type", "Authorization") if name in request.headers
    }
    url = f"{double.url}/api/{method}"
    passed = double.session.request(
        request.method, url, params=request.query, data=await request.read(), headers=headers
    )
    async with passed as response:
        return web.Response(
            body=await response.read(), status=response.status, content_type="application/json"
        )


@asynccontextmanager
async def agent_slack(double: SlackDouble) -> AsyncIterator[AgentSlack]:
    """Serve the fake in front of a double."""
    slack = AgentSlack(double)
    async with slack_api(slack.handle) as slack.api_url:
        yield slack


async def read_body(request: web.Request) -> dict[str, Any]:
    """Return the arguments of a call."""
    if request.content_type == "application/json":
        return dict(await request.json())
    return dict(request.query) | dict(await request.post())


def _blocks(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the visible blocks of chunks; a task becomes a line of text."""
    shown: list[dict[str, Any]] = []
    for chunk in body.get("chunks") or ():
        if chunk["type"] == "task_update":
            text = {"type": "plain_text", "text": f"⏳ {chunk['title']}"}
            shown.append({"type": "context", "elements": [text]})
        else:
            shown += chunk["blocks"]
    return shown


def _accept(**reply: Any) -> web.Response:
    return web.json_response({"ok": True, **reply})


def _refuse(error: str) -> web.Response:
    return web.json_response({"ok": False, "error": error})
