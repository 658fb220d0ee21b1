"""Event endpoints of Slack and Teams, with generators for benchmark events."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from fakes.counting_teams import teams_mention
from fakes.slack_events import BOT, TEAM
from slack_sdk.signature import SignatureVerifier

SECRET = "secret-of-the-benchmark"
QUESTIONS = ("How often do backups run?", "How long are backups kept?", "Who approves remote work?")


class Counting(Protocol):
    """Fake chat platform that counts posts by the thread of their question."""

    posted: Counter[str]
    answers: Counter[str]
    shown_at: dict[str, float]


@dataclass(frozen=True)
class EventEndpoint:
    """Event endpoint of a platform, with its event generator and the fake that counts replies."""

    # Name of its events in tables.
    name: str
    url: str
    platform: Counting
    # (number, channel, user) -> (thread, body) of a question.
    make: Callable[[int, str, str], tuple[str, bytes]]
    # (body, whether it is a retry) -> request headers.
    headers: Callable[[bytes, bool], dict[str, str]]


def slack_endpoint(base_url: str, platform: Counting) -> EventEndpoint:
    """Return the endpoint of signed Slack events."""
    return EventEndpoint("signed events", f"{base_url}/slack/events", platform, _mention, _signed)


def teams_endpoint(base_url: str, platform: Counting, service_url: str) -> EventEndpoint:
    """Return the endpoint of Teams activities, without the token that only Microsoft can sign."""

    def make(number: int, channel: str, person: str) -> tuple[str, bytes]:
        text = QUESTIONS[number % len(QUESTIONS)]
        return str(number), json.dumps(teams_mention(number, channel, person, text, service_url)).encode()

    return EventEndpoint("Teams activities", f"{base_url}/api/messages", platform, make, _plain)


def _mention(number: int, channel: str, user: str) -> tuple[str, bytes]:
    ts = f"{1_700_000_000 + number}.000100"
    text = f"<@{BOT}> {QUESTIONS[number % len(QUESTIONS)]}"
    event = {"type": "app_mention", "user": user, "channel": channel, "text": text, "ts": ts}
    authorization = {"team_id": TEAM, "user_id": BOT, "is_bot": True, "is_enterprise_install": False}
    envelope = {
        "type": "event_callback",
        "team_id": TEAM,
        "api_app_id": "A0BENCH01",
        "event_id": f"Ev{number}",
        "event": {**event, "team": TEAM, "channel_type": "channel"},
        "authorizations": [authorization],
    }
    return ts, json.dumps(envelope).encode()


def _signed(body: bytes, is_again: bool) -> dict[str, str]:
    stamp = str(int(time.time()))
    headers = {
        "Content-Type": "application/json",
        "X-Slack-Request-Timestamp": stamp,
        "X-Slack-Signature": SignatureVerifier(SECRET).generate_signature(timestamp=stamp, body=body) or "",
    }
    return headers | ({"X-Slack-Retry-Num": "1", "X-Slack-Retry-Reason": "http_timeout"} if is_again else {})


def _plain(body: bytes, is_again: bool) -> dict[str, str]:
    return {"Content-Type": "application/json"}
