"""``make bench-events``: Slack and Teams events at a steady rate, until acknowledged and visibly handled.

The whole program runs against fake platforms that only count. Each event is a question of its own; every
tenth is sent twice, as Slack retries what it considers lost. For comparison, a bare aiohttp server gets as
many events in the same run: it verifies Slack's signature, commits each event to SQLite and posts a bare
message, with the same concurrency as the program. That is the minimum for a bot that loses nothing, and shows
the limit of this benchmark's sender and Web API.

After the steady rates over many channels comes the flood: one channel asks 400 questions at once, then a few
people ask in another one. It runs twice; the second time Slack's rate limit is one message a second for that
channel.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
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
from fakes.counting_teams import CountingTeams, teams_channel
from fakes.slack_events import TEAM
from harness.program import SAMPLES, Program
from slack_sdk.signature import SignatureVerifier
from slack_sdk.web.async_client import AsyncWebClient

from bot.chat.conversation.conversation import MAX_PLACED_AT_ONCE
from tools.bench.event_endpoints import SECRET, Counting, EventEndpoint, slack_endpoint, teams_endpoint
from tools.bench.figures import Figure, table

CHANNELS = [f"C{number:02}BENCH01" for number in range(20)]
FLOODED, OTHER = "C90BENCH01", "C91BENCH01"
RATE, SECONDS, REPEATED = 100, 60, 10
PLATFORMS = ("slack", "teams")
SETTINGS = {
    "SLACK_BOT_TOKEN": "xoxb-bench",
    "SLACK_SIGNING_SECRET": SECRET,
    "FOOTNOTE_TEAMS_DEVELOPMENT": "true",
    "FOOTNOTE_RECEIPTS": "off",
}
# Questions of the flooding channel, of the same under a rate limit, and of the other channel.
FLOOD, LIMITED_FLOOD, AFTERWARDS = 400, 60, 5
# Time until a question's first visible reaction: in general, and in the channel that does not flood.
SEEN_SECONDS, OTHER_SECONDS = 3.0, 2.0
# 99th percentile of acknowledgements in milliseconds; Slack retries after 3,000.
LONGEST = 250.0
ANSWER_SECONDS = 1800


@asynccontextmanager
async def served(routes: list[web.RouteDef]) -> AsyncIterator[str]:
    """Serve an application on a free port; yield its URL."""
    app = web.Application()
    app.add_routes(routes)
    runner, port = web.AppRunner(app, access_log=None), free_port()
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", port).start()
        yield f"http://127.0.0.1:{port}"
    finally:
        await runner.cleanup()


class BareBot:
    """Minimal bot: verifies an event, commits it, acknowledges it, and posts one message."""

    def __init__(self, slack: AsyncWebClient, file: Path) -> None:
        self._slack = slack
        self._slots = asyncio.Semaphore(MAX_PLACED_AT_ONCE)
        self._posting: set[asyncio.Task[Any]] = set()
        self._writer = ThreadPoolExecutor(1)
        self._database = sqlite3.connect(file, check_same_thread=False, isolation_level=None)
        self._database.execute("PRAGMA journal_mode=WAL")
        self._database.execute("PRAGMA synchronous=FULL")
        self._database.execute("CREATE TABLE event (id TEXT PRIMARY KEY, body BLOB)")

    async def handle(self, request: web.Request) -> web.Response:
        """Handle an event with the minimum that a Slack bot needs to lose nothing."""
        body = await request.read()
        if not SignatureVerifier(SECRET).is_valid_request(body, dict(request.headers)):
            return web.Response(status=401)
        envelope = json.loads(body)
        if await asyncio.get_running_loop().run_in_executor(
            self._writer, self._keep, envelope["event_id"], body
        ):
            event = envelope["event"]
            task = asyncio.create_task(self._post(event["channel"], event["ts"]))
            self._posting.add(task)
            task.add_done_callback(self._posting.discard)
        return web.Response()

    def _keep(self, event_id: str, body: bytes) -> bool:
        return (
            self._database.execute("INSERT OR IGNORE INTO event VALUES (?, ?)", (event_id, body)).rowcount > 0
        )

    async def _post(self, channel: str, thread: str) -> None:
        async with self._slots:
            await self._slack.chat_postMessage(channel=channel, thread_ts=thread, text="…")

    def close(self) -> None:
        """Close the database."""
        self._writer.shutdown()
        self._database.close()


@dataclass(frozen=True)
class Asked:
    """Sent questions: latencies of acknowledgements, send times, refusals.

    A refusal is a status code, or the error of a broken connection.
    """

    milliseconds: list[float] = field(default_factory=list)
    sent_at: dict[str, float] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)

    def waited(self, seen: Mapping[str, float]) -> list[float]:
        """Return the seconds from each question until it was ``seen``; infinite if it never was."""
        return [seen.get(ts, inf) - at for ts, at in self.sent_at.items()]


def spread(number: int) -> tuple[str, str]:
    """Return (channel, user) of a question: many channels in turn, five users each."""
    return CHANNELS[number % len(CHANNELS)], f"U{number // len(CHANNELS) % 5}ASKER01"


def flooded_channel(number: int) -> tuple[str, str]:
    """Return the flooding channel, with one of fifty users."""
    return FLOODED, f"U{number % 50}ASKER01"


def other_channel(number: int) -> tuple[str, str]:
    """Return the other channel, with its user."""
    return OTHER, "U0OTHER01"


async def send(
    session: aiohttp.ClientSession, endpoint: EventEndpoint, asked: Asked, thread: str, body: bytes
) -> None:
    """Send one event, and retry until it is acknowledged."""
    started = time.monotonic()
    is_again = thread in asked.sent_at
    asked.sent_at.setdefault(thread, started)
    while status := await _refusal(session, endpoint, body, is_again=is_again):
        asked.refused.append(status)
        is_again = True
        await asyncio.sleep(1)
    asked.milliseconds.append(1000 * (time.monotonic() - started))


async def _refusal(
    session: aiohttp.ClientSession, endpoint: EventEndpoint, body: bytes, *, is_again: bool
) -> str:
    """Send a request; return its status code or error, '' if it was acknowledged."""
    try:
        async with session.post(
            endpoint.url, data=body, headers=endpoint.headers(body, is_again)
        ) as response:
            return "" if response.ok else str(response.status)
    except aiohttp.ClientError as error:
        return type(error).__name__


async def send_all(
    endpoint: EventEndpoint, rate: float, numbers: range, whence: Callable[[int], tuple[str, str]] = spread
) -> Asked:
    """Send questions at a steady rate, every tenth twice; ``whence`` returns (channel, user) of each."""
    asked = Asked()
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        began = time.monotonic()
        async with asyncio.TaskGroup() as sending:
            for place, number in enumerate(numbers):
                await asyncio.sleep(max(0.0, began + place / rate - time.monotonic()))
                thread, body = endpoint.make(number, *whence(number))
                for _ in range(1 + (place % REPEATED == REPEATED - 1)):
                    sending.create_task(send(session, endpoint, asked, thread, body))
    return asked


def at_most(values: Sequence[float], share: float) -> float:
    """Return the quantile of values at ``share``."""
    return sorted(values)[int(share * (len(values) - 1))]


async def until_answered(platform: Counting, sent: Iterable[str]) -> None:
    """Wait until all questions are answered, for at most ``ANSWER_SECONDS``."""
    began, missing = time.monotonic(), set(sent)
    while (missing := missing - platform.answers.keys()) and time.monotonic() - began < ANSWER_SECONDS:
        print(f"    {len(missing):,} unanswered", flush=True)
        await asyncio.sleep(5)


class Bench:
    """Benchmark of the program and of the bare bot, each with its own Web API."""

    def __init__(self, program: EventEndpoint, bare: EventEndpoint, slack: CountingSlack) -> None:
        """Measure with ``slack`` as the Web API of the program."""
        self._program, self._bare, self._slack = program, bare, slack
        self._next = 0

    def _numbers(self, count: int) -> range:
        self._next += count
        return range(self._next - count, self._next)

    async def steady(self, endpoint: EventEndpoint, rate: int, seconds: int) -> list[Figure]:
        """Measure ``rate`` events a second over many channels of one platform."""
        bare = await send_all(self._bare, rate, self._numbers(rate * seconds))
        while self._bare.platform.posted.keys() < bare.sent_at.keys():
            await asyncio.sleep(0.1)
        asked = await send_all(endpoint, rate, self._numbers(rate * seconds))
        await until_answered(endpoint.platform, asked.sent_at)
        took = time.monotonic() - min(asked.sent_at.values())
        what = f"{rate} {endpoint.name} a second for {seconds} s"
        slow, raw = at_most(asked.milliseconds, 0.99), at_most(bare.milliseconds, 0.99)
        refused = " ".join(f"{count} x {status}" for status, count in Counter(asked.refused).items())
        return [
            Figure(
                f"{what}: acknowledged",
                f"p99 <= {LONGEST:.0f} ms, none refused",
                f"p50 {median(asked.milliseconds):.0f} ms, p99 {slow:.0f} ms, {refused or 'none'} refused",
                f"signature and commit: p50 {median(bare.milliseconds):.0f} ms, p99 {raw:.0f} ms",
                f"{slow / raw:.1f} x",
                slow <= LONGEST and not refused,
            ),
            self._lost(what, endpoint.platform, asked),
            self._seen(
                f"{what}, {len(CHANNELS)} channels: seen", endpoint.platform, asked, SEEN_SECONDS, bare
            ),
            Figure(f"{what}: all answered", "", f"{len(asked.sent_at) / took:.0f} a second", "", "", None),
        ]

    async def flood(self, *, is_limited: bool) -> list[Figure]:
        """Measure many questions in one channel, then a few in another one."""
        self._slack.limited = FLOODED if is_limited else ""
        count = LIMITED_FLOOD if is_limited else FLOOD
        what = f"{count} questions in one channel" + (", which may post 1 a second" if is_limited else "")
        bare = await send_all(self._bare, 1, self._numbers(AFTERWARDS), other_channel)
        refused = self._slack.refused
        flooding = asyncio.create_task(send_all(self._program, RATE, self._numbers(count), flooded_channel))
        await asyncio.sleep(count / RATE / 2)
        other = await send_all(self._program, 1, self._numbers(AFTERWARDS), other_channel)
        asked = await flooding
        await until_answered(self._slack, [*asked.sent_at, *other.sent_at])
        figures = [
            self._seen(f"{what}: another channel's seen", self._slack, other, OTHER_SECONDS, bare),
            self._seen(f"{what}: its own seen", self._slack, asked, 0 if is_limited else SEEN_SECONDS, bare),
            self._lost(what, self._slack, asked),
        ]
        if is_limited:
            posts = f"{self._slack.refused - refused} beside {count}"
            figures.append(Figure(f"{what}: posts that Slack refused", "", posts, "", "", None))
        return figures

    def _seen(self, what: str, platform: Counting, asked: Asked, bar: float, bare: Asked) -> Figure:
        waited, raw = asked.waited(platform.shown_at), bare.waited(self._bare.platform.shown_at)
        slow, quick = at_most(waited, 0.99), at_most(raw, 0.99)
        return Figure(
            what,
            f"p99 <= {bar:.0f} s" if bar else "",
            f"p50 {median(waited):.2f} s, p99 {slow:.2f} s",
            f"a post alone: p50 {1000 * median(raw):.0f} ms, p99 {1000 * quick:.0f} ms",
            f"{slow / quick:.0f} x",
            slow <= bar if bar else None,
        )

    def _lost(self, what: str, platform: Counting, asked: Asked) -> Figure:
        lost = sum(thread not in platform.answers for thread in asked.sent_at)
        doubled = sum(platform.posted[thread] > 1 for thread in asked.sent_at)
        measured = f"{lost}, {doubled}"
        return Figure(f"{what}: lost, doubled", "0, 0", measured, "", "", not (lost or doubled))


async def run(rate: int, seconds: int, platforms: Collection[str], *, is_flooded: bool) -> list[Figure]:
    """Measure the bare bot and the program, until every question is answered."""
    slack, bare_slack, teams = CountingSlack(), CountingSlack(), CountingTeams()
    async with AsyncExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="footnote-bench-events-")))
        api = await stack.enter_async_context(served([web.post("/api/{method}", slack.handle)]))
        connector = await stack.enter_async_context(served(teams.routes()))
        bare_api = await stack.enter_async_context(served([web.post("/api/{method}", bare_slack.handle)]))
        bare = BareBot(AsyncWebClient("xoxb-bench", base_url=f"{bare_api}/api/"), work / "bare.db")
        stack.callback(bare.close)
        bare_url = await stack.enter_async_context(served([web.post("/slack/events", bare.handle)]))
        program = Program(work, SETTINGS | {"SLACK_API_URL": f"{api}/api/"})
        samples = list(SAMPLES.glob("*.pdf"))
        tenants = [f"sl_{TEAM}_{channel}" for channel in (*CHANNELS, FLOODED, OTHER)]
        tenants += [teams_channel(channel).tenant for channel in CHANNELS]
        for tenant in tenants:
            for sample in samples:
                program.drop(tenant, sample)
        await stack.enter_async_context(program.serving())
        for tenant in tenants:
            await program.until_live(tenant, len(samples), "full")
        slack_events = slack_endpoint(program.url, slack)
        named = {
            "slack": slack_events,
            "teams": teams_endpoint(program.url, teams, f"{connector}/connector/"),
        }
        bench = Bench(slack_events, slack_endpoint(bare_url, bare_slack), slack)
        figures: list[Figure] = []
        for endpoint in platforms:
            figures += await bench.steady(named[endpoint], rate, seconds)
            print(table(figures), flush=True)
        for is_limited in (False, True) if is_flooded else ():
            figures += await bench.flood(is_limited=is_limited)
            print(table(figures), flush=True)
        return figures


def main() -> None:
    """Measure and print the table; exit with 1 if a bar was missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=int, default=RATE, help="events per second")
    parser.add_argument("--seconds", type=int, default=SECONDS, help="duration in seconds")
    parser.add_argument(
        "--platforms", nargs="*", choices=PLATFORMS, default=PLATFORMS, help="platforms to test"
    )
    parser.add_argument("--steady", action="store_true", help="without the floods")
    options = parser.parse_args()
    figures = asyncio.run(
        run(options.rate, options.seconds, options.platforms, is_flooded=not options.steady)
    )
    sys.exit(any(figure.is_met is False for figure in figures))


if __name__ == "__main__":
    main()
