"""Continuous questions: Slack events, balanced over the bots, and requests to the bots' consoles."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from fakes.counting_slack import CountingSlack
from fakes.slack_events import BOT, TEAM, Signed, envelope

from bot.web.security import SCRIPT_HEADER
from tools.soak.machines.site import SECRET, Machine
from tools.soak.rounds.world import World

# Timeout after which an attempt counts as hanging.
PATIENCE_SECONDS = 30.0
SLACK_ROUNDS = 40
REST_SECONDS = 0.5
EVENT_EVERY, CONSOLE_EVERY = 1.0, 1.0
LANDED = "accepted", "answered"


@dataclass(frozen=True, slots=True)
class Attempt:
    """A request to a bot."""

    phase: str
    # "slack" or "console".
    way: str
    bot: str
    # "accepted", "answered", or what went wrong.
    outcome: str
    seconds: float


@dataclass
class Asking:
    """Asks until cancelled, and records every attempt."""

    world: World
    slack: CountingSlack
    bots: list[Machine]
    slack_channel: str
    console_channel: int
    session: aiohttp.ClientSession
    phase: str = "start"
    attempts: list[Attempt] = field(default_factory=list)
    # ts of a Slack question -> its word.
    sent: dict[str, str] = field(default_factory=dict)
    refused_for_good: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._numbers = itertools.count()
        self._chance = random.Random(1)
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Ask in both ways at a steady rate."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._steadily(self._ask_slack, EVENT_EVERY))
            group.create_task(self._steadily(self._ask_console, CONSOLE_EVERY))

    async def until_taken(self) -> None:
        """Wait until no attempt is in flight."""
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _steadily(self, ask: Any, every: float) -> None:
        while True:
            task = asyncio.create_task(ask(next(self._numbers), self.phase))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            await asyncio.sleep(every)

    def _word(self) -> str:
        words = [one.word for papers in self.world.papers.values() for one in papers.values()]
        return self._chance.choice(words)

    async def _ask_slack(self, number: int, phase: str) -> None:
        """Offer the event to each bot in turn, like a load balancer; retry like Slack if none accepts it."""
        ts, word = f"{1_700_000_000 + number}.000100", self._word()
        event = envelope(
            f"Ev{number}",
            type="app_mention", user=f"U{number % 50}ASKER01", channel=self.slack_channel,
            text=f"<@{BOT}> What does {word} say?", ts=ts, team=TEAM, channel_type="channel",
        )  # fmt: skip
        self.sent[ts] = word
        for _ in range(SLACK_ROUNDS):
            for turn in range(len(self.bots)):
                bot = self.bots[(number + turn) % len(self.bots)]
                signed = Signed(self.session, bot.program.url, SECRET)
                outcome = await self._timed(phase, "slack", bot, signed.send(event))
                if outcome == "accepted":
                    return
            await asyncio.sleep(REST_SECONDS)
        self.refused_for_good.append(ts)

    async def _ask_console(self, number: int, phase: str) -> None:
        bot = self.bots[number // 2 % len(self.bots)]
        if bot.program.has_greeted:
            await self._timed(phase, "console", bot, self.ask_at(bot, self._word()))

    async def _timed(self, phase: str, way: str, bot: Machine, asked: Any) -> str:
        began = time.monotonic()
        try:
            got = await asyncio.wait_for(asked, PATIENCE_SECONDS)
            outcome = {"slack": "accepted", "console": "answered"}[way] if _is_well(got) else _fault(got)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            outcome = type(error).__name__
        self.attempts.append(Attempt(phase, way, bot.name, outcome, time.monotonic() - began))
        return outcome

    async def ask_at(self, bot: Machine, word: str) -> tuple[int, dict[str, Any]]:
        """Return (status, answer) of a bot's console."""
        program = bot.program
        marks = {"Origin": program.url, SCRIPT_HEADER: "1", **program.console_headers}
        body = {"channel": self.console_channel, "question": f"What does {word} say?"}
        async with self.session.post(f"{program.url}/console/ask", json=body, headers=marks) as reply:
            text = await reply.text()
            return reply.status, json.loads(text) if text.startswith("{") else {"state": text[:80]}

    def failed(self, phase: str | None = None) -> list[Attempt]:
        """Return the attempts that failed."""
        return [one for one in self.attempts if phase in (None, one.phase) and one.outcome not in LANDED]

    def landed(self, phase: str) -> list[Attempt]:
        """Return the attempts of a phase that were answered or accepted."""
        return [one for one in self.attempts if one.phase == phase and one.outcome in LANDED]

    def lines(self, phases: dict[str, float]) -> Iterator[str]:
        """Yield the table: for each phase its duration and outcomes."""
        heads = ("Slack", "console", "failed", "longest failed", "longest that landed")
        yield f"{'fault':<34}{'seconds':>8}" + "".join(f"{head:>21}" for head in heads)
        for phase, seconds in phases.items():
            own = [one for one in self.attempts if one.phase == phase]
            failed, landed = self.failed(phase), self.landed(phase)
            ways = [sum(one.way == way for one in own) for way in ("slack", "console")]
            seconds_of = [f"{longest(some):.1f} s" for some in (failed, landed)]
            numbers = [*map(str, ways), str(len(failed)), *seconds_of]
            yield f"{phase:<34}{seconds:>8.1f}" + "".join(f"{number:>21}" for number in numbers)


def _is_well(got: Any) -> bool:
    if isinstance(got, int):
        return got == 200
    status, answer = got
    return status == 200 and answer.get("state") not in (None, "failed")


def _fault(got: Any) -> str:
    return f"status {got}" if isinstance(got, int) else f"status {got[0]}, {got[1].get('state')}"


def longest(attempts: list[Attempt]) -> float:
    """Return the seconds of the longest attempt; 0 without any."""
    return max((one.seconds for one in attempts), default=0.0)
