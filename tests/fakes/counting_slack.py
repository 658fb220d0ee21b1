"""A Slack Web API that counts the posts and updates in each question's thread.

Unlike local-slack it keeps message metadata, so that a placeholder is found after a crash.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from fakes.slack_events import BOT, TEAM

BOT_ID = "B0FOOT001"
# Messages that a channel may post at once where Slack allows one a second.
BURST = 5


@dataclass
class CountingSlack:
    """Fake Web API: counts posts per thread, and which of these messages became answers."""

    posted: Counter[str] = field(default_factory=Counter)
    threads: dict[str, str] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    answers: Counter[str] = field(default_factory=Counter)
    # Time of the first message of each thread.
    shown_at: dict[str, float] = field(default_factory=dict)
    # Text of the last answer of each thread.
    texts: dict[str, str] = field(default_factory=dict)
    # Time of the first answer of each thread.
    answered_at: dict[str, float] = field(default_factory=dict)
    # Channel with a rate limit of one message a second.
    limited: str = ""
    tokens: float = BURST
    refilled_at: float = 0.0
    # Rate-limited posts.
    refused: int = 0

    def is_too_soon(self, channel: str) -> bool:
        """True if the rate limit is exceeded: one message a second and channel, after a short burst."""
        if channel != self.limited:
            return False
        now = time.monotonic()
        self.tokens = min(BURST, self.tokens + now - self.refilled_at)
        self.refilled_at = now
        if self.tokens < 1:
            self.refused += 1
            return True
        self.tokens -= 1
        return False

    async def handle(self, request: web.Request) -> web.Response:
        """Do the visible effect of a method."""
        sent = dict(request.query)
        sent |= await request.json() if request.content_type == "application/json" else await request.post()
        reply: dict[str, Any] = {"ok": True, "team_id": TEAM, "user_id": BOT, "bot_id": BOT_ID}
        channel, method = str(sent.get("channel") or ""), request.match_info["method"]
        if method in ("chat.postMessage", "chat.startStream"):
            if self.is_too_soon(channel):
                slow = {"ok": False, "error": "ratelimited"}
                return web.json_response(slow, status=429, headers={"Retry-After": "1"})
            reply |= {"ts": self._post(str(sent["thread_ts"]), sent.get("metadata")), "channel": channel}
        elif method == "chat.stopStream":
            self.metadata[str(sent["ts"])] = _read(sent.get("metadata"))
        elif method == "conversations.replies":
            own = [ts for ts, thread in self.threads.items() if thread == sent["ts"]]
            reply["messages"] = [
                {"ts": ts, "bot_id": BOT_ID, "user": BOT, "metadata": self.metadata[ts]} for ts in own
            ]
        elif method == "chat.update" and sent.get("blocks"):
            thread = self.threads[str(sent["ts"])]
            self.answers[thread] += 1
            self.answered_at.setdefault(thread, time.monotonic())
            self.texts[thread] = str(sent.get("text"))
        return web.json_response(reply | {"channel": {"id": channel, "name": "bench"}, **reply})

    def _post(self, thread: str, metadata: Any) -> str:
        """Post a message or stream; return its ts, which is later than any question's."""
        ts = f"{1_900_000_000 + len(self.threads)}.000100"
        self.threads[ts], self.metadata[ts] = thread, _read(metadata)
        self.posted[thread] += 1
        self.shown_at.setdefault(thread, time.monotonic())
        return ts


def _read(metadata: Any) -> Any:
    return json.loads(metadata) if isinstance(metadata, str) else metadata
