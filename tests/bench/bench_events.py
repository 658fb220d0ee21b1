"""``make bench-events``: signed Slack events at a steady rate: how soon acknowledged, seen and answered.

The whole program runs beside a Slack Web API that only counts. Each event is a question of its own; every
tenth comes twice, as Slack repeats what it thinks was lost. A bare aiohttp server that checks the same
signatures and keeps nothing gets as many events in the same run, and posts a bare message for each, as many
at once as the program: what any bot does before a person sees that the question was heard, and the most that
sender and Web API of this bench can take.

After the steady rate over many channels comes the flood: one channel asks 400 questions at once, then a few
people ask in another one. It comes twice; the second time Slack takes one message a second from that channel.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from statistics import median
from typing import Any

import aiohttp
from aiohttp import web
from engines.support.ports import free_port
from fakes.counting_slack import CountingSlack
from fakes.slack_events import BOT, TEAM
from figures import Figure, table
from harness.program import SAMPLES, Program
from slack_sdk.signature import SignatureVerifier
from slack_sdk.web.async_client import AsyncWebClient

from bot.core.conversation.conversation import MAX_PLACED_AT_ONCE

SECRET = "secret-of-the-benchmark"
CHANNELS = [f"C{number:02}BENCH01" for number in range(20)]
FLOODED, OTHER = "C90BENCH01", "C91BENCH01"
RATE, SECONDS, REPEATED = 100, 60, 10
FLOOD, LIMITED_FLOOD, AFTERWARDS = 400, 60, 5
"""Questions of the channel that floods, of the same while Slack slows it down, and of the other one."""
SEEN_SECONDS, OTHER_SECONDS = 3.0, 2.0
"""Within which a question's first sign is seen, of all and of the channel that does not flood."""
LONGEST = 1000.0
"""Milliseconds within which 99 of 100 are acknowledged; Slack sends again after 3,000."""
ANSWER_SECONDS = 1800
QUESTIONS = ("How often do backups run?", "How long are backups kept?", "Who approves remote work?")


@asynccontextmanager
async def served(routes: list[web.RouteDef]) -> AsyncIterator[str]:
    """An application on a free port; gives its URL."""
    app = web.Application()
    app.add_routes(routes)
    runner, port = web.AppRunner(app, access_log=None), free_port()
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", port).start()
        yield f"http://127.0.0.1:{port}"
    finally:
        await runner.cleanup()


@dataclass
class BareBot:
    """Checks who sent an event, acknowledges it, and posts one message; nothing is kept."""

    slack: AsyncWebClient
    slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_PLACED_AT_ONCE))
    posting: set[asyncio.Task[Any]] = field(default_factory=set)

    async def handle(self, request: web.Request) -> web.Response:
        """What any Slack bot must do."""
        body = await request.read()
        if not SignatureVerifier(SECRET).is_valid_request(body, dict(request.headers)):
            return web.Response(status=401)
        event = json.loads(body)["event"]
        task = asyncio.create_task(self._post(event["channel"], event["ts"]))
        self.posting.add(task)
        task.add_done_callback(self.posting.discard)
        return web.Response()

    async def _post(self, channel: str, thread: str) -> None:
        async with self.slots:
            await self.slack.chat_postMessage(channel=channel, thread_ts=thread, text="…")


@dataclass(frozen=True)
class Asked:
    """What was sent: how long each acknowledgement took, when each question was sent, refusals."""

    milliseconds: list[float] = field(default_factory=list)
    sent_at: dict[str, float] = field(default_factory=dict)
    refused: list[int] = field(default_factory=list)

    def waited(self, seen: Mapping[str, float]) -> list[float]:
        """Seconds from each question to when it is ``seen``; those that never are count as for ever."""
        return [seen.get(ts, inf) - at for ts, at in self.sent_at.items()]


def mention(number: int, channel: str, user: str) -> tuple[str, bytes]:
    """(ts, body) of one question."""
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


def spread(number: int) -> tuple[str, str]:
    """(channel, asker) of a question when many channels ask in turn, five people in each."""
    return CHANNELS[number % len(CHANNELS)], f"U{number // len(CHANNELS) % 5}ASKER01"


def flooded_channel(number: int) -> tuple[str, str]:
    """The channel that floods, with fifty people in it."""
    return FLOODED, f"U{number % 50}ASKER01"


def other_channel(number: int) -> tuple[str, str]:
    """The channel that asks meanwhile."""
    return OTHER, "U0OTHER01"


async def send(session: aiohttp.ClientSession, url: str, asked: Asked, ts: str, body: bytes) -> None:
    """Send one event, signed; a question that was sent before is Slack's repetition of it."""
    stamp = str(int(time.time()))
    headers = {
        "Content-Type": "application/json",
        "X-Slack-Request-Timestamp": stamp,
        "X-Slack-Signature": SignatureVerifier(SECRET).generate_signature(timestamp=stamp, body=body) or "",
    }
    if ts in asked.sent_at:
        headers |= {"X-Slack-Retry-Num": "1", "X-Slack-Retry-Reason": "http_timeout"}
    started = time.monotonic()
    asked.sent_at.setdefault(ts, started)
    async with session.post(url, data=body, headers=headers) as response:
        if response.status != 200:
            asked.refused.append(response.status)
    asked.milliseconds.append(1000 * (time.monotonic() - started))


async def send_all(
    url: str, rate: float, numbers: range, whence: Callable[[int], tuple[str, str]] = spread
) -> Asked:
    """Send these questions at this rate, every tenth twice; ``whence``: (channel, asker) of each."""
    asked = Asked()
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        began = time.monotonic()
        async with asyncio.TaskGroup() as sending:
            for place, number in enumerate(numbers):
                await asyncio.sleep(max(0.0, began + place / rate - time.monotonic()))
                ts, body = mention(number, *whence(number))
                sending.create_task(send(session, url, asked, ts, body))
                if place % REPEATED == REPEATED - 1:
                    sending.create_task(send(session, url, asked, ts, body))
    return asked


def at_most(values: Sequence[float], share: float) -> float:
    """What this share of them is at most."""
    return sorted(values)[int(share * (len(values) - 1))]


async def until_answered(slack: CountingSlack, sent: Iterable[str]) -> None:
    """Wait until each of these questions has its answer, for as long as that may take."""
    began, missing = time.monotonic(), set(sent)
    while (missing := missing - slack.answers.keys()) and time.monotonic() - began < ANSWER_SECONDS:
        print(f"    {len(missing):,} unanswered", flush=True)
        await asyncio.sleep(5)


class Bench:
    """The program and the bare bot, each beside a Web API of its own."""

    def __init__(
        self, program_url: str, slack: CountingSlack, bare_url: str, bare_slack: CountingSlack
    ) -> None:
        self._url, self._slack = program_url, slack
        self._bare_url, self._bare_slack = bare_url, bare_slack
        self._next = 0

    def _numbers(self, count: int) -> range:
        self._next += count
        return range(self._next - count, self._next)

    async def steady(self, rate: int, seconds: int) -> list[Figure]:
        """So many events a second over many channels."""
        bare = await send_all(self._bare_url, rate, self._numbers(rate * seconds))
        while self._bare_slack.posted.keys() < bare.sent_at.keys():
            await asyncio.sleep(0.1)
        asked = await send_all(self._url, rate, self._numbers(rate * seconds))
        await until_answered(self._slack, asked.sent_at)
        took = time.monotonic() - min(asked.sent_at.values())
        what = f"{rate} signed events a second for {seconds} s"
        slow, raw = at_most(asked.milliseconds, 0.99), at_most(bare.milliseconds, 0.99)
        refused = len(asked.refused)
        return [
            Figure(
                f"{what}: acknowledged",
                f"p99 <= {LONGEST:.0f} ms, none refused",
                f"p50 {median(asked.milliseconds):.0f} ms, p99 {slow:.0f} ms, {refused} refused",
                f"signature only: p50 {median(bare.milliseconds):.0f} ms, p99 {raw:.0f} ms",
                f"{slow / raw:.1f} x",
                slow <= LONGEST and not refused,
            ),
            self._lost(what, asked),
            self._seen(f"{what}, {len(CHANNELS)} channels: seen", asked, SEEN_SECONDS, bare),
            Figure(f"{what}: all answered", "", f"{len(asked.sent_at) / took:.0f} a second", "", "", None),
        ]

    async def flood(self, *, is_limited: bool) -> list[Figure]:
        """Many questions of one channel, then a few of another."""
        self._slack.limited = FLOODED if is_limited else ""
        count = LIMITED_FLOOD if is_limited else FLOOD
        what = f"{count} questions in one channel" + (", which may post 1 a second" if is_limited else "")
        bare = await send_all(self._bare_url, 1, self._numbers(AFTERWARDS), other_channel)
        refused = self._slack.refused
        flooding = asyncio.create_task(send_all(self._url, RATE, self._numbers(count), flooded_channel))
        await asyncio.sleep(count / RATE / 2)
        other = await send_all(self._url, 1, self._numbers(AFTERWARDS), other_channel)
        asked = await flooding
        await until_answered(self._slack, [*asked.sent_at, *other.sent_at])
        figures = [
            self._seen(f"{what}: another channel's seen", other, OTHER_SECONDS, bare),
            self._seen(f"{what}: its own seen", asked, 0 if is_limited else SEEN_SECONDS, bare),
            self._lost(what, asked),
        ]
        if is_limited:
            posts = f"{self._slack.refused - refused} beside {count}"
            figures.append(Figure(f"{what}: posts that Slack refused", "", posts, "", "", None))
        return figures

    def _seen(self, what: str, asked: Asked, bar: float, bare: Asked) -> Figure:
        waited, raw = asked.waited(self._slack.shown_at), bare.waited(self._bare_slack.shown_at)
        slow, quick = at_most(waited, 0.99), at_most(raw, 0.99)
        return Figure(
            what,
            f"p99 <= {bar:.0f} s" if bar else "",
            f"p50 {median(waited):.2f} s, p99 {slow:.2f} s",
            f"a post alone: p50 {1000 * median(raw):.0f} ms, p99 {1000 * quick:.0f} ms",
            f"{slow / quick:.0f} x",
            slow <= bar if bar else None,
        )

    def _lost(self, what: str, asked: Asked) -> Figure:
        lost = sum(ts not in self._slack.answers for ts in asked.sent_at)
        doubled = sum(self._slack.posted[ts] > 1 for ts in asked.sent_at)
        measured = f"{lost}, {doubled}"
        return Figure(f"{what}: lost, doubled", "0, 0", measured, "", "", not (lost or doubled))


async def run(rate: int, seconds: int, *, is_flooded: bool = True) -> list[Figure]:
    """Send to the bare bot and to the program, and wait until every question has its answer."""
    slack, bare_slack = CountingSlack(), CountingSlack()
    async with AsyncExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="footnote-bench-events-")))
        api = await stack.enter_async_context(served([web.post("/api/{method}", slack.handle)]))
        bare_api = await stack.enter_async_context(served([web.post("/api/{method}", bare_slack.handle)]))
        bare = BareBot(AsyncWebClient("xoxb-bench", base_url=f"{bare_api}/api/"))
        bare_url = await stack.enter_async_context(served([web.post("/slack/events", bare.handle)]))
        settings = {
            "SLACK_BOT_TOKEN": "xoxb-bench",
            "SLACK_SIGNING_SECRET": SECRET,
            "FOOTNOTE_RECEIPTS": "off",
        }
        program = Program(work, {**settings, "SLACK_API_URL": f"{api}/api/"})
        samples = list(SAMPLES.glob("*.pdf"))
        tenants = [f"sl_{TEAM}_{channel}" for channel in (*CHANNELS, FLOODED, OTHER)]
        for tenant in tenants:
            for sample in samples:
                program.drop(tenant, sample)
        await stack.enter_async_context(program.serving())
        for tenant in tenants:
            await program.until_live(tenant, len(samples), "full")
        bench = Bench(f"{program.url}/slack/events", slack, f"{bare_url}/slack/events", bare_slack)
        figures = await bench.steady(rate, seconds)
        for is_limited in (False, True) if is_flooded else ():
            print(table(figures), flush=True)
            figures += await bench.flood(is_limited=is_limited)
        return figures


def main() -> None:
    """Measure, print the table; the exit status says whether every bar was met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=int, default=RATE, help="events a second")
    parser.add_argument("--seconds", type=int, default=SECONDS, help="so long")
    parser.add_argument("--steady", action="store_true", help="without the floods")
    options = parser.parse_args()
    figures = asyncio.run(run(options.rate, options.seconds, is_flooded=not options.steady))
    print(f"\n{table(figures)}")
    sys.exit(any(figure.is_met is False for figure in figures))


if __name__ == "__main__":
    main()
