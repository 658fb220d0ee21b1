"""Events that local-slack does not send, signed, over HTTP."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import aiohttp

TEAM, BOT = "T0ACME001", "U0FOOT001"


@dataclass(frozen=True, slots=True)
class Signed:
    """Posts to a bot's ``/slack/events`` as Slack does."""

    session: aiohttp.ClientSession
    url: str
    secret: str

    async def send(self, envelope: dict[str, Any]) -> int:
        """Send an event; return the status of the reply."""
        return (await self._post(json.dumps(envelope), "application/json"))[0]

    async def click(self, payload: dict[str, Any]) -> int:
        """Send an interaction; return the status of the reply."""
        form = urlencode({"payload": json.dumps(payload)})
        return (await self._post(form, "application/x-www-form-urlencoded"))[0]

    async def command(self, **fields: str) -> tuple[int, str]:
        """Send a slash command; return status and body of the reply."""
        return await self._post(urlencode(fields), "application/x-www-form-urlencoded")

    async def _post(self, body: str, content_type: str) -> tuple[int, str]:
        stamp = str(int(time.time()))
        digest = hmac.new(self.secret.encode(), f"v0:{stamp}:{body}".encode(), hashlib.sha256).hexdigest()
        headers = {
            "Content-Type": content_type,
            "X-Slack-Request-Timestamp": stamp,
            "X-Slack-Signature": f"v0={digest}",
        }
        async with self.session.post(f"{self.url}/slack/events", data=body, headers=headers) as response:
            return response.status, await response.text()


async def deliver(send: Callable[[], Awaitable[int]]) -> None:
    """Send again, up to three times, what a busy machine did not acknowledge in time (503), as Slack does."""
    statuses = [await send()]
    while statuses[-1] == 503 and len(statuses) < 3:
        statuses.append(await send())
    assert statuses[-1] == 200, f"never acknowledged: {statuses}"


def envelope(event_id: str, **event: Any) -> dict[str, Any]:
    """Return an event of the workspace where the bot is installed."""
    authorization = {"enterprise_id": None, "team_id": TEAM, "user_id": BOT, "is_bot": True}
    return {
        "type": "event_callback",
        "team_id": TEAM,
        "event_id": event_id,
        "authorizations": [authorization | {"is_enterprise_install": False}],
        "event": event,
    }


def joined(channel: str, event_id: str, user: str = BOT) -> dict[str, Any]:
    """Return the event that a user, by default the bot itself, was added to a channel."""
    return envelope(
        event_id, type="member_joined_channel", user=user, channel=channel, channel_type="C", team=TEAM
    )
