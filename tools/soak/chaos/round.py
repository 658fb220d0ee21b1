"""Chaos round on one pair: some minutes of failures, then rest and an audit."""

from __future__ import annotations

import asyncio
import random
import shutil
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
from engines.webdav import PASSWORD, USER, RealWebdav
from fakes.counting_slack import CountingSlack
from fakes.model_server import byte_server
from fakes.slack_api import slack_api
from fakes.slack_events import TEAM, Signed
from harness.hostile_run import READ_SECONDS, make_files
from sqlalchemy import func, select

from storage.errors import InfrastructureError
from storage.sql.tables import InboxRow
from tools.soak.chaos.hostile import HostileFolder
from tools.soak.chaos.outages import AHEAD_SECONDS, FULL_SECONDS, SmallDisk, cut_off
from tools.soak.chaos.questions import Questions, unsteady_model
from tools.soak.chaos.service import Service
from tools.soak.chaos.tally import ChaosTally, growth
from tools.soak.checks.evidence import keep_evidence
from tools.soak.rounds.killer import Killer
from tools.soak.rounds.pairs import PAIRS, Pair
from tools.soak.rounds.round import MOST_FILES, Round, background, open_audit
from tools.soak.rounds.world import LIBRARY, World

SIGNING_SECRET = "secret-of-the-soak"
# Fraction of a round with kills; afterwards one process lives on, whose memory is measured.
KILLING_SHARE = 0.4
HOSTILE_A_MINUTE = 4
STOP_SECONDS = 300.0
# Range of questions per burst.
BURST = (4, 16)


@dataclass
class ChaosRound(Round):
    """A round with all kinds of failures at once; the seed decides the details."""

    service: Service = field(kw_only=True)
    questions: Questions = field(kw_only=True)
    hostile: HostileFolder = field(kw_only=True)
    disk: SmallDisk = field(kw_only=True)
    webdav: RealWebdav = field(kw_only=True)
    counts: ChaosTally = field(kw_only=True, default_factory=ChaosTally)
    is_share_away: bool = False
    # Held while a file is changed, so that the share does not disappear at the same time.
    handling: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def storm(self, seconds: float) -> None:
        """Cause failures for ``seconds``, then wait for rest, and audit."""
        began = time.monotonic()
        self.world.fill()
        serving = asyncio.create_task(self.service.run())
        try:
            async with background(self.witness.watch()):
                await self.service.until_ready()
                await self._suffer(seconds)
                self._log("rest")
                await self._until_still()
                self._measure()
                await self.service.stop()
                await asyncio.wait_for(serving, STOP_SECONDS)
                await self._come_to_rest()
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)  # kills what it started
        await self.audit.compare()
        await self._judge()
        self.counts.minutes = (time.monotonic() - began) / 60

    async def _suffer(self, seconds: float) -> None:
        """Run all failures concurrently; ``serve`` is killed in the first part only."""
        killing = seconds * KILLING_SHARE
        troubles: list[tuple[str, float, float, float, Callable[[], Awaitable[object]]]] = [
            ("serve", 8, 25, killing, self._kill),
            ("index", 20, 45, seconds, self._kill_index),
            ("files", 1, 4, seconds, self._change_one),
            ("hostile", 60 / HOSTILE_A_MINUTE / 2, 60 / HOSTILE_A_MINUTE * 1.5, seconds, self._drop_hostile),
            ("asks", 2, 10, seconds, self._ask),
            ("share", 8, 25, seconds, self._cut_share),
            ("disk", 12, 40, seconds, self._fill_disk),
            ("clock", 5, 20, seconds, self._jump),
        ]
        async with asyncio.TaskGroup() as group:
            for name, least, most, until, trouble in troubles:
                group.create_task(self._repeat(name, least, most, until, trouble))

    async def _repeat(
        self, name: str, least: float, most: float, seconds: float, trouble: Callable[[], Awaitable[object]]
    ) -> None:
        chance, end = random.Random(f"{self.world.seed} {name}"), time.monotonic() + seconds
        while (rest := chance.uniform(least, most)) < end - time.monotonic():
            await asyncio.sleep(rest)
            self._log(name)
            with suppress(InfrastructureError):  # our own reads may fail while the disk is full
                await trouble()

    async def _kill(self) -> None:
        await self.service.until_ready()  # a process that is not ready does nothing that a kill could break
        await asyncio.sleep(self.chance.uniform(0, 5))
        await self.service.kill()

    async def _kill_index(self) -> None:
        """Kill the index server with ``kill -9`` while ``serve`` keeps running, and restart it."""
        if (server := self.place.weaviate) is None:
            return
        self.counts.kills += 1
        self.witness.is_index_down = True
        await asyncio.to_thread(server.kill)
        await asyncio.to_thread(server.start)
        self.witness.is_index_down = False

    async def _change_one(self) -> None:
        """Add, replace, rename, remove or restore one file."""
        async with self.handling:
            await self._change_file()

    async def _change_file(self) -> None:
        steady = [one for one in await self._steady() if not (self.is_share_away and one[0] == LIBRARY)]
        self.chance.shuffle(steady)
        whole = [one for one in steady if self._is_kept(*one)]
        kind = self.chance.choice(("add", "replace", "replace", "rename", "take", "back"))
        if self.world.files > MOST_FILES or kind == "take":
            await self._take_one(whole)
        elif self.is_share_away:
            pass  # a new file might be placed in the share
        elif kind == "add":
            self.world.add()
        elif kind == "back" and self.world.removed and await self._is_deleted(*self.world.removed[-1][:2]):
            self.world.put_back()
        elif kind == "rename" and steady:
            self.world.rename(*steady[0])
        elif whole:
            self.world.replace(*whole[0])

    async def _is_deleted(self, place: str, file: str) -> bool:
        """True if a removed file is no longer live; one restored earlier might still be deleted."""
        known = await self._known()
        states = {
            known[channel, file].state for channel in self.world.feeds(place) if (channel, file) in known
        }
        return "live" not in states

    async def _drop_hostile(self) -> None:
        self.hostile.drop_one()

    async def _ask(self) -> None:
        def about() -> tuple[str, str]:
            channel = self.chance.choice(self.world.channels)
            papers = list(self.world.wanted(channel).values())
            return channel.rpartition("_")[2], self.chance.choice(papers).word

        self.questions.burst(self.chance.randint(*BURST), about)

    async def _cut_share(self) -> None:
        assert self.world.share is not None
        self.counts.outages += 1
        async with self.handling:
            self.is_share_away = True
        await cut_off(self.webdav, self.world.share, self.chance)
        self.is_share_away = False

    async def _fill_disk(self) -> None:
        if not self.disk.is_mounted:
            return
        self.counts.full_disks += 1
        self.service.is_disk_full = self.witness.is_index_down = True
        async with self.disk.full():
            await asyncio.sleep(self.chance.uniform(*FULL_SECONDS))
        self.service.is_disk_full = self.witness.is_index_down = False

    async def _jump(self) -> None:
        self.counts.jumps += self.service.jump_clock(self.chance.choice(AHEAD_SECONDS))

    async def _until_still(self) -> None:
        """Wait until the surviving process has answered and read everything and is idle."""
        await self.service.until_ready()
        await self.questions.all_answered()
        before, end = "", time.monotonic() + self.questions.patience
        while (moving := await self._moving()) and (moving != before or time.monotonic() < end):
            if moving != before:
                before, end = moving, time.monotonic() + self.questions.patience
            await asyncio.sleep(1)
        if moving:
            self.audit.faults.append(f"stuck: {moving}")
            self.audit.tally.lost += 1

    async def _moving(self) -> str | None:
        with suppress(LookupError, InfrastructureError):
            return await self.hostile.is_still() or await self.audit.is_still()
        return "nothing can be seen"

    def _measure(self) -> None:
        if (grown := growth(self.service.samples)) is not None:
            self.counts.growths.append(grown)

    async def _judge(self) -> None:
        """Count and describe what was lost, duplicated or damaged."""
        counts, questions, faults = self.counts, self.questions, self.audit.faults
        self.audit.tally.gaps += len(self.witness.faults)
        for slot in ("lost", "duplicates", "orphans", "gaps"):
            setattr(counts, slot, getattr(self.audit.tally, slot))
        counts.kills += self.service.kills
        counts.events, counts.longest = len(questions.acknowledged_at), questions.longest
        counts.unanswered, counts.doubled = len(questions.unanswered), len(questions.doubled)
        faults += [f"question {ts} was never answered" for ts in questions.unanswered]
        faults += [f"question {ts} has {questions.slack.posted[ts]} messages" for ts in questions.doubled]
        async with self.audit.database.snapshot() as session:
            open_rows = await session.scalar(
                select(func.count()).select_from(InboxRow).where(InboxRow.state != "done")
            )
        faults += [f"{open_rows} questions are not done"] * bool(open_rows)
        faults += ["no event was acknowledged"] * (not questions.acknowledged_at)
        faults += ["nobody asked from outside"] * (not self.witness.asked)
        harmed = await self.hostile.faults()
        counts.hostile, counts.harmed = self.hostile.dropped, len(harmed)
        faults += [*harmed, *questions.refusals, *self.service.faults, *self.witness.faults]

    def _log(self, what: str) -> None:
        with (self.world.home / "kills.log").open("a") as log:
            print(f"{datetime.now(UTC):%H:%M:%S} {what}", file=log)


async def run_chaos(
    pair: Pair, folder: Path, *, seed: int, seconds: float, patience: float, evidence: Path
) -> tuple[ChaosTally, list[str]]:
    """Run one round in a fresh home; return its tally and its faults.

    ``patience``: seconds without progress after which the rest counts as lost. After a round with faults, its
    evidence is kept in a folder of its name in ``evidence``.
    """
    home = folder / f"{pair.name.replace('/', '-')} {seed}"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    async with open_chaos(pair, home, seed, seconds, patience) as one:
        try:
            await one.storm(seconds)
        except Exception:
            await keep_evidence(one.audit, evidence / home.name)
            raise
        faults = [f"{home.name}: {fault}" for fault in one.audit.faults]
        if faults:
            await keep_evidence(one.audit, evidence / home.name)
    shutil.rmtree(home, ignore_errors=True)
    return one.counts, faults


@asynccontextmanager
async def open_chaos(
    pair: Pair, home: Path, seed: int, seconds: float, patience: float
) -> AsyncIterator[ChaosRound]:
    """Yield a round with a home on a small disk, a library on WebDAV, Slack, a model and hostile files."""
    async with AsyncExitStack() as stack:
        disk = SmallDisk(home / "disk")
        stack.callback(disk.close)
        place = pair.place(disk_home := home / "disk" / "home")
        (home / "webdav").mkdir()
        webdav = RealWebdav(home / "webdav")
        await asyncio.to_thread(webdav.start)
        stack.callback(webdav.kill)
        prefix = f"sl_{TEAM}_C{PAIRS.index(pair.name)}{seed:05}"
        world = World(home, (f"{prefix}RED", f"{prefix}BLUE"), seed, share=webdav.place())
        shutil.copy(home / "folders.toml", disk_home / "folders.toml")
        hostile = HostileFolder(home, f"hostile {home.name}")
        await make_files(hostile.files, seed, seed * 100, 2 + int(seconds / 60 * HOSTILE_A_MINUTE * 2))
        audit = await stack.enter_async_context(open_audit(place, world))
        hostile.attach(audit)
        slack, chance = CountingSlack(), random.Random(f"{seed} questions")
        place.settings |= _settings(
            home,
            await stack.enter_async_context(slack_api(slack.handle)),
            await stack.enter_async_context(byte_server(unsteady_model(random.Random(f"{seed} model")))),
        )
        service = Service(place.environment, home)
        timeout = aiohttp.ClientTimeout(total=60)
        session = await stack.enter_async_context(aiohttp.ClientSession(timeout=timeout))
        questions = Questions(Signed(session, service.url, SIGNING_SECRET), slack, chance, patience)
        killer = Killer(place, audit.witness, audit.database, random.Random(seed))
        parts: dict[str, Any] = {"service": service, "questions": questions, "hostile": hostile}
        yield ChaosRound(place, world, audit.witness, audit, killer, disk=disk, webdav=webdav, **parts)


def _settings(home: Path, slack_url: str, model_url: str) -> dict[str, str]:
    return {
        "FOOTNOTE_INBOX": str(home / "inbox"),
        "FOOTNOTE_WEBDAV_USER": USER,
        "FOOTNOTE_WEBDAV_PASSWORD": PASSWORD,
        "FOOTNOTE_SHARE_SCAN_SECONDS": "1",
        "FOOTNOTE_SHARE_TIMEOUT": "5",
        "FOOTNOTE_READ_SECONDS": str(READ_SECONDS),
        "SLACK_BOT_TOKEN": "xoxb-soak",
        "SLACK_SIGNING_SECRET": SIGNING_SECRET,
        "SLACK_API_URL": slack_url,
        "FOOTNOTE_RECEIPTS": "off",
        "OPENAI_BASE_URL": model_url,
        "OPENAI_API_KEY": "key-of-the-soak",
        "FOOTNOTE_MODEL_SECONDS": "5",
        "FOOTNOTE_ANSWER_SECONDS": "20",
    }
