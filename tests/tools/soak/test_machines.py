"""Three bots and three workers on shared engines: killed, partitioned, slowed and restarted under load."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from engines.postgres import running_postgres
from engines.s3 import RealS3
from engines.support.ports import free_port
from engines.toxiproxy import RealToxiproxy
from engines.weaviate import RealWeaviate
from fakes.counting_slack import CountingSlack
from fakes.slack_api import slack_api
from fakes.slack_events import TEAM
from harness.waiting import until
from sqlalchemy import select
from sqlmodel import col

from storage.chat.channels import Channels
from storage.clock import utc_now
from storage.documents.catalog import Catalog
from storage.errors import UnknownChannel
from storage.index.live_index import LiveIndex
from storage.sql.database import Database
from storage.sql.tables import ReadingRow
from tools.soak.checks.audit import Audit
from tools.soak.checks.witness import Witness
from tools.soak.machines.asking import Asking, longest
from tools.soak.machines.site import Machine, Site
from tools.soak.rounds.world import FEWEST, LARGE, World

CONSOLE, SLACK = "handbook", "C0ITOPS01"
CUT_SECONDS, SLOW_SECONDS, DOWN_SECONDS = 8.0, 10.0, 2.0
# Added latency of engine responses on a slow link, in milliseconds.
LATENCY, JITTER = 400, 100
CHANGE_EVERY = 1.5
MOST_FILES = 14
# Maximum extra time of a failing question over one without a fault: an engine times out after five seconds,
# and CPUs are shared.
MAX_FAILED_SECONDS = 20.0
NO_FAULT = "no fault"
# Changes the reading version, like a new release's reader: all PDFs are read again.
NEXT_VERSION = {"FOOTNOTE_CHUNK_TOKENS": "70"}


@dataclass
class Run:
    """A run: the faults of the machines in turn, and the observations."""

    site: Site
    world: World
    witness: Witness
    audit: Audit
    asking: Asking
    phases: dict[str, float] = field(default_factory=dict)
    # Opened links that another bot had made.
    opened: int = 0

    async def play(self) -> None:
        """Inject every fault once, while files change and questions are asked."""
        bots, workers = self.site.bots, self.site.workers
        with self._phase(NO_FAULT):
            await asyncio.sleep(5)
        with self._phase("kill -9 of a worker that reads"):
            self._add(LARGE)
            self._add(LARGE)
            await self._kill(await until(self._reader, every=0.02))
        with self._phase("kill -9 of a bot"):
            await self._kill(bots[0])
        for number, engine in enumerate(("PostgreSQL", "Weaviate", "S3"), start=1):
            with self._phase(f"a bot and a worker without {engine}"):
                self._add(None)
                await self._without(engine, bots[number % len(bots)], workers[number % len(workers)])
        with self._phase(f"all links {LATENCY} +- {JITTER} ms late"):
            await self._slowed()
        with self._phase("restart one by one, new version"):
            for machine in self.site.machines:
                await machine.end()
                machine.program.environment |= NEXT_VERSION
                await machine.start()
                await machine.until_ready()

    @contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        began, self.asking.phase = time.monotonic(), name
        yield
        self.phases[name] = time.monotonic() - began

    async def _kill(self, machine: Machine) -> None:
        machine.kill()
        await asyncio.sleep(DOWN_SECONDS)
        await machine.start()
        await machine.until_ready()

    async def _without(self, engine: str, *machines: Machine) -> None:
        proxies = [proxy for machine in machines for proxy in machine.links[engine]]
        for proxy in proxies:
            proxy.cut()
        await asyncio.sleep(CUT_SECONDS)
        for proxy in proxies:
            proxy.heal()
        for machine in machines:
            await machine.until_ready()

    async def _slowed(self) -> None:
        links = [link for machine in self.site.machines for link in machine.links.values()]
        proxies = [proxy for link in links for proxy in link]
        for proxy in proxies:
            proxy.slow(LATENCY, JITTER)
        await asyncio.sleep(SLOW_SECONDS)
        for proxy in proxies:
            proxy.heal()
        for machine in self.site.machines:
            await machine.until_ready()

    async def _reader(self) -> Machine | None:
        """Return a worker that is currently reading a PDF."""
        held = select(col(ReadingRow.lease_owner)).where(col(ReadingRow.lease_until) > utc_now())
        owners = {str(owner).split(":")[1] for (owner,) in await self.audit.database.rows(held)}
        running = [one for one in self.site.workers if one.process and str(one.process.pid) in owners]
        return running[0] if running else None

    def _add(self, lines: int | None) -> None:
        self.world.add(lines)

    async def change_files(self) -> None:
        """Add, replace and delete files for ever."""
        chance = self.world.random
        while True:
            await asyncio.sleep(CHANGE_EVERY)
            place = chance.choice(list(self.world.papers))
            papers = self.world.papers[place]
            if self.world.files < MOST_FILES and chance.random() < 0.5:
                self.world.add()
            elif chance.random() < 0.3 and (steady := await self._may_go(place)):
                file = chance.choice(steady)
                for channel in self.world.feeds(place):
                    self.witness.forget(channel, papers[file].word)
                self.world.remove(place, file)
            else:
                self.world.replace(place, chance.choice(list(papers)))

    async def _may_go(self, place: str) -> list[str]:
        """Return the files that may be deleted: losing most of a folder's files needs an admin's approval."""
        channel, papers = self.world.feeds(place)[0], self.world.papers[place]
        where = await self.witness.channels.by_name(channel)
        known = {one.file for one in await self.witness.catalog.documents(where.id) if one.state == "live"}
        steady = [file for file in papers if file in known]
        is_settled = known <= self.world.wanted(channel).keys()
        return steady if is_settled and len(steady) > FEWEST else []

    async def come_to_rest(self) -> None:
        """Wait until every question is answered and every file is fully read."""
        with self._phase("until all is still"):
            await self.asking.until_taken()

            async def is_answered() -> bool:
                return self.asking.sent.keys() <= self.asking.slack.answers.keys()

            await until(is_answered, seconds=90, log=self.unanswered)

            async def is_still() -> bool:
                return await self.audit.is_still() is None

            await until(is_still, seconds=120, every=0.5)

    def unanswered(self) -> str:
        """Return the questions without an answer."""
        return str(sorted(self.asking.sent.keys() - self.asking.slack.answers.keys()))

    async def check_answers(self) -> list[str]:
        """Return faults in the last answers of all bots, and in links that the first one made."""
        first, *others = self.site.bots
        wrong = []
        for paper in self.world.wanted(CONSOLE).values():
            for bot in self.site.bots:
                status, answer = await self.asking.ask_at(bot, paper.word)
                if status != 200 or paper.version not in json.dumps(answer):
                    wrong.append(f"{bot.name}, {paper.word} {paper.version}: {status} {answer}")
                elif bot is first:
                    wrong += [flaw for other in others for flaw in await self._open(other, answer)]
        return wrong

    async def _open(self, bot: Machine, answer: dict[str, Any]) -> list[str]:
        """Open a link of another bot's answer on this bot."""
        (path, *_) = [str(one["view"]) for one in answer["citations"]] or [""]
        async with self.asking.session.get(bot.program.url + path) as reply:
            self.opened += 1
            is_page = path and reply.status == 200
        return [] if is_page else [f"a link of another bot at {bot.name}: {path!r} {reply.status}"]

    def table(self) -> str:
        """Return all counts."""
        slack, sent, tally = self.asking.slack, self.asking.sent, self.audit.tally
        failed = self.asking.failed()
        documents = sum(len(self.world.wanted(channel)) for channel in self.world.channels)
        return "\n".join(
            [
                *self.asking.lines(self.phases),
                f"questions in Slack {len(sent)}: {len(self.lost())} lost, {len(self.doubled())} doubled, "
                f"{len(set(slack.answers))} answered",
                f"asks that failed {len(failed)}: the longest took {longest(failed):.1f} s",
                f"searches meanwhile {self.witness.asked}: {len(self.witness.faults)} wrong",
                f"documents {documents}: {tally.lost} lost, {tally.duplicates} doubled, "
                f"{tally.orphans} left over",
                f"links that other bots had made {self.opened}: all opened",
            ]
        )

    def lost(self) -> list[str]:
        """Return the Slack questions without an answer."""
        return [ts for ts in self.asking.sent if ts not in self.asking.slack.answers]

    def doubled(self) -> list[str]:
        """Return the Slack questions with more than one message of ours."""
        return [ts for ts in self.asking.sent if self.asking.slack.posted[ts] > 1]


@asynccontextmanager
async def opened(site: Site, slack: CountingSlack) -> AsyncIterator[Run]:
    """Start all machines at once on empty engines, and stop them at the end."""
    tenant = f"sl_{TEAM}_{SLACK}"
    world = World(site.share, (CONSOLE, tenant), 1)
    world.fill()
    site.copy_folder_map()
    async with AsyncExitStack() as stack:
        stack.callback(lambda: [one.kill() for one in site.machines if one.process])
        for machine in site.machines:
            await machine.start()
        for machine in site.machines:
            await machine.until_ready()
        url = site.postgres.url(site.database)
        database = await stack.enter_async_context(contextlib.aclosing(await Database.open(url)))
        index = await stack.enter_async_context(contextlib.aclosing(await site.weaviate.connect()))
        catalog = Catalog(database)
        witness = Witness(world, Channels(database), catalog, LiveIndex(index, catalog, "none"))
        audit = Audit(world, witness, database, index, site.share)

        async def all_answer() -> bool:
            with suppress(UnknownChannel):
                return await audit.all_answer()
            return False

        await until(all_answer, log=lambda: site.workers[0].program.log[-4000:])
        session = await stack.enter_async_context(
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0, force_close=True))
        )
        console = await witness.channels.by_name(CONSOLE)
        asking = Asking(world, slack, site.bots, SLACK, console.id, session)
        yield Run(site, world, witness, audit, asking)


@asynccontextmanager
async def background(*works: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run background work until the context ends; re-raise its errors then."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
    faults = [one for one in ended if isinstance(one, Exception)]
    assert not faults, faults


@pytest.mark.long
@pytest.mark.engine("weaviate")
@pytest.mark.engine("postgres")
@pytest.mark.engine("s3")
@pytest.mark.engine("toxiproxy")
async def test_six_machines_survive_kills_partitions_and_an_update(
    tmp_path: Path,
    weaviate: RealWeaviate,
    s3_server: RealS3,
    toxiproxy: RealToxiproxy,
    record_property: Callable[[str, object], None],
) -> None:
    """Shows one answer per question, no PDF lost or duplicated, and failures within five seconds."""
    slack = CountingSlack()
    async with slack_api(slack.handle) as slack_url:
        with running_postgres(free_port()) as postgres:
            site = Site(tmp_path, postgres, weaviate, s3_server.place(), toxiproxy, slack_url)
            async with opened(site, slack) as run:
                async with background(run.witness.watch()):
                    async with background(run.asking.run(), run.change_files()):
                        await run.play()
                    await run.come_to_rest()
                await run.audit.compare_published()
                wrong = await run.check_answers()
                record_property("table", run.table())
                assert wrong == []
                assert run.audit.faults == []
                assert run.witness.faults == []
                assert (run.lost(), run.doubled()) == ([], [])
                most = MAX_FAILED_SECONDS + longest(run.asking.landed(NO_FAULT))
                slow = [one for one in run.asking.failed() if one.seconds > most]
                assert not slow, "\n".join(map(str, slow))
