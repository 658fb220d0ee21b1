"""Bursts of signed Slack events, retried until acknowledged, and a model that is slow or fails."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

import aiohttp
from fakes.counting_slack import CountingSlack
from fakes.model_server import Handler, always, completion, response, slowly, stream
from fakes.slack_events import BOT, TEAM, Signed, envelope

ACKNOWLEDGED = 200
# Fraction of events sent twice, as Slack retries what it considers lost.
REPEATED = 0.1
# Seconds without any progress after which the rest counts as lost.
PATIENCE_SECONDS = 180.0
HANG_SECONDS = 30.0
# Bytes per half second of a slow reply.
SLOW_BYTES = 1500
# Maximum backoff before an event is sent again.
MAX_REST_SECONDS = 8.0
_LINE = re.compile(r"zq\w+zq zq\w+zq [^.\n]*\.")
_PASSAGE = re.compile(r"<passage (\d+) ")


@dataclass
class Questions:
    """Questions sent, and their outcomes."""

    signed: Signed
    slack: CountingSlack
    chance: Random
    patience: float = PATIENCE_SECONDS
    acknowledged_at: dict[str, float] = field(default_factory=dict)
    # Responses that are neither an acknowledgement nor retryable.
    refusals: list[str] = field(default_factory=list)
    _sending: set[asyncio.Task[None]] = field(default_factory=set)
    _count: int = 0

    def burst(self, count: int, about: Callable[[], tuple[str, str]]) -> None:
        """Send ``count`` questions at once; ``about`` returns (channel id, word) of each."""
        for _ in range(count):
            self._count += 1
            channel, word = about()
            for _ in range(1 + (self.chance.random() < REPEATED)):
                task = asyncio.create_task(self._send(self._count, channel, word))
                self._sending.add(task)
                task.add_done_callback(self._sending.discard)

    async def _send(self, number: int, channel: str, word: str) -> None:
        """Send an event with retries until it is acknowledged, as Slack does."""
        ts, user = f"{1_700_000_000 + number}.000100", f"U{number % 40:02}ASKER01"
        text = f"<@{BOT}> What is known about {word}?"
        event = envelope(
            f"Ev{number}", type="app_mention", user=user, channel=channel, text=text, ts=ts,
            team=TEAM, channel_type="channel",
        )  # fmt: skip
        rest = 0.5
        while (status := await self._status(event)) != ACKNOWLEDGED:
            if status and status < 500:
                self.refusals.append(f"a question was refused with {status}")
                return
            await asyncio.sleep(rest)
            rest = min(2 * rest, MAX_REST_SECONDS)
        self.acknowledged_at.setdefault(ts, time.monotonic())

    async def _status(self, event: dict[str, object]) -> int:
        """Return the response status; 0 without a response."""
        try:
            return await self.signed.send(event)
        except (aiohttp.ClientError, TimeoutError, OSError):
            return 0

    async def all_answered(self) -> None:
        """Wait until every question is acknowledged and answered, or nothing makes progress any more."""
        before, end = -1, time.monotonic()
        while self._sending or self.unanswered:
            if (now := len(self.slack.answers) + len(self.acknowledged_at)) != before:
                before, end = now, time.monotonic() + self.patience
            if time.monotonic() > end:
                break
            await asyncio.sleep(0.5)
        self.refusals += [f"{len(self._sending)} events were never acknowledged"] * bool(self._sending)
        for task in self._sending:
            task.cancel()

    @property
    def unanswered(self) -> list[str]:
        """Timestamps (ts) of acknowledged questions without an answer."""
        return [ts for ts in self.acknowledged_at if ts not in self.slack.answers]

    @property
    def doubled(self) -> list[str]:
        """Timestamps (ts) of questions with more than one message."""
        return [ts for ts, posted in self.slack.posted.items() if posted > 1]

    @property
    def longest(self) -> float:
        """Longest time from the first acknowledgement to the answer, in seconds."""
        answered = self.slack.answered_at
        return max(
            (answered[ts] - at for ts, at in self.acknowledged_at.items() if ts in answered), default=0.0
        )


def unsteady_model(chance: Random) -> Handler:
    """Return a fake model that mostly quotes a passage, at once or slowly, and fails in many other ways."""

    async def handle(request: bytes, writer: asyncio.StreamWriter) -> None:
        reply = _quoting(request)
        whole = stream(reply)
        ways: list[tuple[float, Handler]] = [
            (4, always(whole)),
            (2, slowly([whole[at : at + SLOW_BYTES] for at in range(0, len(whole), SLOW_BYTES)], 0.5)),
            (1, slowly([whole[:SLOW_BYTES]], 0)),
            (1, always(response(completion(reply)))),
            (1, always(response(b"{}", status="500 Internal Server Error"))),
            (1, always(response(b"{}", status="429 Too Many Requests", more="Retry-After: 1\r\n"))),
            (1, always(stream("I am sorry, I cannot tell."))),
            (1, _hang),
            (1, _hang_up),
        ]
        (way,) = chance.choices([way for _, way in ways], [weight for weight, _ in ways])
        await way(request, writer)

    return handle


async def _hang(request: bytes, writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(HANG_SECONDS)


async def _hang_up(request: bytes, writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


def _quoting(request: bytes) -> str:
    """Return the reply of a good model: the first line of the first passage."""
    prompt = "\n".join(str(one.get("content")) for one in json.loads(request).get("messages", ()))
    for passage in _PASSAGE.finditer(prompt):
        if line := _LINE.search(prompt, passage.end()):
            quote = {"passage": int(passage[1]), "quote": line[0]}
            return json.dumps({"sufficient": True, "claims": [{"text": line[0], "quotes": [quote]}]})
    return json.dumps({"sufficient": False, "claims": []})
