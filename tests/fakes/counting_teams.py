"""A Bot Framework connector that counts the posts and answers in each thread."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field

from aiohttp import web

from storage.models import ChannelKey, Platform

ENTRA_TENANT = "6a2f3c1e-0b7d-4c58-9e11-2f4d5a6b7c8d"
BOT = {"id": "28:footnote", "name": "Footnote"}
PATH = "/connector/v3/conversations/{conversation}/activities"


@dataclass
class CountingTeams:
    """Counts under each thread's key, as ``CountingSlack`` does."""

    # Text messages, without their cards.
    posted: Counter[str] = field(default_factory=Counter)
    answers: Counter[str] = field(default_factory=Counter)
    # Time of the first message of each thread.
    shown_at: dict[str, float] = field(default_factory=dict)

    def routes(self) -> list[web.RouteDef]:
        """Return the routes to post and update messages."""
        return [web.post(PATH, self.handle), web.put(f"{PATH}/{{activity}}", self.handle)]

    async def handle(self, request: web.Request) -> web.Response:
        """Accept a message or an update; only answers have feedback buttons."""
        activity, thread = await request.json(), request.match_info["conversation"].rpartition("=")[2]
        if request.method == "PUT":
            self.answers[thread] += "feedbackLoop" in activity.get("channelData", {})
        elif activity["type"] == "message" and not activity.get("attachments"):
            self.posted[thread] += 1
            self.shown_at.setdefault(thread, time.monotonic())
        return web.json_response({"id": f"m{thread}"}, status=201)


def teams_channel(name: str) -> ChannelKey:
    """Return a channel of the team."""
    return ChannelKey(Platform("teams"), ENTRA_TENANT, f"19:{name}@thread.tacv2")


def teams_mention(number: int, channel: str, person: str, text: str, service_url: str) -> dict[str, object]:
    """Return a channel post that mentions the bot; its thread's key is its number."""
    conversation = teams_channel(channel).conversation
    mention = f"<at>{BOT['name']}</at>"
    return {
        "type": "message",
        "id": str(number),
        "channelId": "msteams",
        "serviceUrl": service_url,
        "from": {"id": f"29:{person}", "aadObjectId": person, "name": person},
        "recipient": BOT,
        "conversation": {
            "id": f"{conversation};messageid={number}",
            "isGroup": True,
            "conversationType": "channel",
        },
        "channelData": {"tenant": {"id": ENTRA_TENANT}, "channel": {"id": conversation}},
        "text": f"{mention} {text}",
        "entities": [{"type": "mention", "mentioned": BOT, "text": mention}],
    }
