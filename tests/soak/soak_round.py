"""One round: a fresh home, a number of kills while its folders keep changing, then stillness and an audit."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from soak_audit import Audit
from soak_pairs import Pair, Place
from soak_process import Life
from soak_tally import Table, Tally
from soak_witness import Witness
from soak_world import FEWEST, LARGE, World

from storage.catalog import Catalog
from storage.channels import Channels
from storage.crash_points import POINTS
from storage.database import Database
from storage.index.live import LiveIndex

REACH_SECONDS = 12.0
"""A life that does not get to its crash point by then is killed where it is."""
STILL_SECONDS = 120.0
TAKES = {"before-delete", "after-delete", "amid-purge", "after-purge"}
TIDIES = {"amid-purge", "after-purge", "amid-reconcile"}
RANDOM, SERVER = "at random", "the index itself"


@dataclass
class Round:
    """What happens is decided by the seed; what comes of it is in ``table`` and ``faults``."""

    pair: Pair
    place: Place
    world: World
    witness: Witness
    audit: Audit
    seed: int
    points: list[str] = field(default_factory=list)
    """Where the kills of this round fell."""

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)

    async def run(self, kills: int) -> None:
        """Kill so often, then let everything come to rest and compare."""
        targets = self.targets(kills)
        self.world.fill()
        async with _background(self.witness.watch()):
            for number, target in enumerate(targets):
                await self._change(target)
                self.points.append(await self._kill(target, whole=number % 10 == 9))
            await self._come_to_rest()
        await self.audit.compare()
        self.audit.tally.gaps += len(self.witness.faults)

    def targets(self, kills: int) -> list[str]:
        """Crash points in turn, each round from another one on, one in ten at random."""
        start = self.seed * kills
        names = [POINTS[(start + number) % len(POINTS)] for number in range(kills)]
        names[0] = RANDOM
        if self.pair.weaviate:
            names[kills // 2] = SERVER
        return names

    async def _change(self, target: str) -> None:
        """Something for the next life to do, and something that leads to its crash point."""
        self.world.add(LARGE if target in ("after-vectors", "after-batch") else None)
        steady = await self._steady()
        self.chance.shuffle(steady)
        for place, file in steady[:1]:
            self.world.replace(place, file)
        for place, file in steady[1:2]:
            self.world.rename(place, file)
        if target in TAKES or self.chance.random() < 0.3:
            self._take_one(steady[2:])
        if self.world.taken and self.chance.random() < 0.3:
            self.world.put_back()

    def _take_one(self, steady: list[tuple[str, str]]) -> None:
        """The first file whose place keeps enough others."""
        spare = [one for one in steady if len(self.world.papers[one[0]]) > FEWEST]
        for place, file in spare[:1]:
            for channel in self.world.feeds(place):
                self.witness.forget(channel, self.world.papers[place][file].word)
            self.world.take(place, file)

    async def _steady(self) -> list[tuple[str, str]]:
        """Files that SQL knows as they are: another change of the others could not be told apart."""
        known: dict[tuple[str, str], str | None] = {}
        for channel in self.world.channels:
            with suppress(LookupError):
                where = await self.witness.channels.by_name(channel)
                for one in await self.witness.catalog.documents(where.id):
                    known[channel, one.file] = one.version
        return [
            (place, file)
            for place, papers in self.world.papers.items()
            for file, paper in papers.items()
            if all(known.get((channel, file)) == paper.sha256 for channel in self.world.feeds(place))
        ]

    async def _kill(self, target: str, *, whole: bool) -> str:
        """Start a life and see it die; returns where it died."""
        armed = target if target in POINTS else ""
        life = await Life.begin(self.place.environment, armed, whole=whole)
        try:
            if target == SERVER:
                await self._kill_server(life)
                return SERVER
            return await self._await_death(life, target)
        finally:
            await life.kill()

    async def _await_death(self, life: Life, target: str) -> str:
        if target == RANDOM:
            await life.dies_within(self.chance.uniform(1.0, 6.0))
            return RANDOM
        end = time.monotonic() + REACH_SECONDS
        while time.monotonic() < end:
            if await life.dies_within(2.0):
                return target
            if life.end is not None:
                raise AssertionError(f"a life ended by itself, see {self.place.home}/life.log")
            if target in TIDIES:
                life.tell()
        return RANDOM

    async def _kill_server(self, life: Life) -> None:
        """The index dies under a life that goes on, and comes back."""
        server = self.pair.weaviate
        assert server is not None
        await life.dies_within(self.chance.uniform(3.0, 6.0))
        await asyncio.to_thread(server.kill)
        await asyncio.to_thread(server.start)
        await life.dies_within(1.0)

    async def _come_to_rest(self) -> None:
        """One last life that nobody kills; what is not done in time is lost."""
        life = await Life.begin(self.place.environment)
        end, moving = time.monotonic() + STILL_SECONDS, "nothing yet"
        while moving and time.monotonic() < end:
            await asyncio.sleep(0.5)
            with suppress(LookupError):
                moving = await self.audit.is_still() or ""
        for _ in range(3):  # the grace of the sweep has to pass
            life.tell()
            await asyncio.sleep(1.5)
        await life.finish()
        if moving:
            self.audit.faults.append(f"never still: {moving}")
            self.audit.tally.lost += 1

    def count(self, table: Table) -> None:
        """Every kill into the table, and the round's faults to each place where it killed."""
        for point in self.points:
            table.add(self.pair.name, point, Tally(kills=1))
        if self.audit.tally.faults:
            for point in set(self.points):
                table.add(self.pair.name, point, self.audit.tally)


@asynccontextmanager
async def open_round(pair: Pair, home: Path, seed: int) -> AsyncIterator[Round]:
    """A fresh home with its reader from outside."""
    place = pair.place(home)
    suffix = home.name
    world = World(home, (f"red {suffix}", f"blue {suffix}"), seed)
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(
            contextlib.aclosing(await Database.open(place.database_url))
        )
        index = await stack.enter_async_context(contextlib.aclosing(await place.open_index()))
        catalog = Catalog(database)
        witness = Witness(world, Channels(database), catalog, LiveIndex(index, catalog, "none"))
        audit = Audit(world, witness, database, index, home)
        yield Round(pair, place, world, witness, audit, seed)


@asynccontextmanager
async def _background(work: object) -> AsyncIterator[None]:
    task = asyncio.ensure_future(work)  # type: ignore[arg-type] # a coroutine, which the caller made
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
