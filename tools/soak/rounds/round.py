"""A kill round: a fresh home, kills while its folders keep changing, then rest and an audit."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harness.waiting import until

from storage.chat.channels import Channels
from storage.documents.catalog import Catalog
from storage.errors import UnknownChannel, UnknownTenant
from storage.index.live_index import LiveIndex
from storage.models import DocumentStatus
from storage.sql.database import Database
from tools.soak.checks.audit import Audit
from tools.soak.checks.tally import Table, Tally
from tools.soak.checks.targets import GHOST, LATE, RANDOM, TAKES, TIDIES
from tools.soak.checks.witness import Witness
from tools.soak.rounds.fault_injection import has_blob, lose_blob, resurrect
from tools.soak.rounds.killer import Killer
from tools.soak.rounds.pairs import Pair, Place
from tools.soak.rounds.process import Life
from tools.soak.rounds.world import FEWEST, LARGE, World

# Longer than the maximum backoff of a step.
STUCK_SECONDS = 90.0
# A file that is away for longer may be missed by two scans, and is correctly deleted.
LONGEST_BLINK_SECONDS = 0.25
# Maximum extra kills for missed targets.
MOST_MAKE_UPS = 4
# After these everything is read to its end: a file that was being read during ten crashes is correctly given
# up, and on a slow machine one file may be read during all of them.
KILLS_IN_A_ROW = 8
# Number of slim lives before a whole ``serve``.
SLIM_LIVES = 9
# Above it, each new file replaces one: in the end all of them must be fully read.
MOST_FILES = 9


# Alembic migrates one database per process at a time; each of our programs has only one.
_MIGRATING = asyncio.Lock()


@dataclass
class Round:
    """A round whose events are decided by the seed; results are in ``table`` and ``faults``."""

    place: Place
    world: World
    witness: Witness
    audit: Audit
    killer: Killer
    # Where kills of this round happened.
    points: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.chance = self.killer.chance
        self._missed: list[str] = []
        self._slim = self.world.seed * 5 % 10

    async def run(self, aims: Sequence[str]) -> None:
        """Kill at each target, and again at missed ones; then wait for rest and audit."""
        self.world.fill()
        async with background(self.witness.watch()):
            if aims[0] in LATE:
                await self._publish_all()
            for number, target in enumerate(aims):
                if number % KILLS_IN_A_ROW == KILLS_IN_A_ROW - 1:
                    await self._publish_all()
                await self._kill_once(target)
            for _ in range(MOST_MAKE_UPS):
                if self._missed:
                    await self._kill_once(self._missed.pop(0))
            await self._come_to_rest()
        await self.audit.compare()
        self.witness.conclude(len(aims))
        self.audit.tally.gaps += len(self.witness.faults)

    async def _publish_all(self) -> None:
        """Let one life publish every paper, and kill it when it is idle."""
        life = await Life.begin(self.place.environment)

        async def all_answer() -> bool:
            with suppress(UnknownChannel):
                return await self.audit.all_answer()
            return False

        await until(all_answer)
        await life.kill()

    async def _kill_once(self, target: str) -> None:
        """Kill once; a miss counts as random, and is retried in place of a random kill, or at the end."""
        if target == RANDOM and self._missed:
            target = self._missed.pop(0)
        await self._change(target)
        is_whole = self._slim >= SLIM_LIVES and target not in TIDIES and target != GHOST
        self._slim = 0 if is_whole else self._slim + 1
        async with background(self._disturb()):
            died = await self.killer.kill(target, whole=is_whole)
        self.points.append(died)
        with (self.place.home / "kills.log").open("a") as log:
            print(
                f"{datetime.now(UTC):%H:%M:%S} aimed at: {target}, died: {died}, whole: {is_whole}", file=log
            )
        if died != target:
            self._missed.append(target)

    async def _change(self, target: str) -> None:
        """Change files to give the next life work, and lead it to its crash point."""
        self.world.add(LARGE if target in ("after-vectors", "after-batch") else None)
        steady = await self._steady()
        self.chance.shuffle(steady)
        for place, file in steady[:1]:
            self.world.rename(place, file)
        whole = [one for one in steady[1:] if self._is_kept(*one)]
        for place, file in whole[:1]:
            self.world.replace(place, file)
        if target in TAKES or self.world.files > MOST_FILES or self.chance.random() < 0.3:
            is_taken = await self._take_one(whole[1:])
            if target in TAKES and not is_taken:
                await self._publish_all()
                await self._take_one(await self._steady())
        if target == "amid-reconcile":
            await self._meddle(steady[-1:])
        if self.world.removed and self.world.files < MOST_FILES and self.chance.random() < 0.3:
            self.world.put_back()

    async def _disturb(self) -> None:
        """Rename a file under a running life, and let others blink away for a moment, one by one.

        Each blinks only once: two consecutive scans might miss two blinks, and correctly delete the file.
        """
        await asyncio.sleep(self.chance.uniform(1.0, 3.0))
        steady = await self._steady()
        self.chance.shuffle(steady)
        for place, file in steady[:1]:
            self.world.rename(place, file)
        for place, file in steady[1:]:
            if self.world.blink(place, file) > LONGEST_BLINK_SECONDS:
                self._forget(place, file)
            await asyncio.sleep(self.chance.uniform(0.2, 0.8))

    async def _meddle(self, steady: list[tuple[str, str]]) -> None:
        """Let the index resurrect chunks and the disk lose a blob, between two lives."""
        for channel in self.world.channels:
            with suppress(UnknownChannel, UnknownTenant):
                await resurrect(self.audit.index, self.witness, channel, self.chance)
        for place, file in steady:
            if file in self.world.papers[place]:
                lose_blob(self.place.home, self.world.papers[place][file])

    def _is_kept(self, place: str, file: str) -> bool:
        """True if its blob exists: losing the blob and then the file loses the content."""
        return has_blob(self.place.home, self.world.papers[place][file])

    async def _take_one(self, steady: list[tuple[str, str]]) -> bool:
        """Remove the first file whose folder keeps enough live others: losing all of them asks an admin."""
        live = {name for name, one in (await self._known()).items() if one.state == "live"}
        for place, file in steady:
            others = [
                other
                for other in self.world.papers[place].keys() - {file}
                if all((channel, other) in live for channel in self.world.feeds(place))
            ]
            if len(others) >= FEWEST and self._is_kept(place, file):
                self._forget(place, file)
                self.world.remove(place, file)
                return True
        return False

    def _forget(self, place: str, file: str) -> None:
        for channel in self.world.feeds(place):
            self.witness.forget(channel, self.world.papers[place][file].word)

    async def _steady(self) -> list[tuple[str, str]]:
        """Return the files whose current state is in SQL; changes to others could not be told apart."""
        known = {name: one.version for name, one in (await self._known()).items()}
        return [
            (place, file)
            for place, papers in self.world.papers.items()
            for file, paper in papers.items()
            if all(known.get((channel, file)) == paper.sha256 for channel in self.world.feeds(place))
        ]

    async def _known(self) -> dict[tuple[str, str], DocumentStatus]:
        """Return the documents in SQL by (channel, file)."""
        known = {}
        for channel in self.world.channels:
            with suppress(LookupError):
                where = await self.witness.channels.by_name(channel)
                for one in await self.witness.catalog.documents(where.id):
                    known[channel, one.file] = one
        return known

    async def _come_to_rest(self) -> None:
        """Run one last life without a kill; what it cannot finish is lost."""
        life = await Life.begin(self.place.environment)
        moving, before, end = "nothing yet", "", time.monotonic()
        while moving and (moving != before or time.monotonic() < end):
            if moving != before:
                before, end = moving, time.monotonic() + STUCK_SECONDS
            await asyncio.sleep(0.5)
            with suppress(LookupError):
                moving = await self.audit.is_still() or ""
        for _ in range(3):  # the grace period of the sweep must pass
            life.tell()
            await asyncio.sleep(1.5)
            await self._copied_again()
        await life.finish()
        if moving:
            self.audit.faults.append(f"stuck: {moving}")
            self.audit.tally.lost += 1

    async def _copied_again(self) -> None:
        """Wait until blobs that were lost are copied from their folders again."""
        end = time.monotonic() + STUCK_SECONDS
        while not self.audit.has_copies() and time.monotonic() < end:
            await asyncio.sleep(0.5)

    def count(self, pair: str, table: Table) -> None:
        """Add the kills to the table, and the round's faults to every place where it killed."""
        for point in self.points:
            table.add(pair, point, Tally(kills=1))
        if self.audit.tally.faults:
            for point in set(self.points):
                table.add(pair, point, self.audit.tally)


@asynccontextmanager
async def open_round(pair: Pair, home: Path, seed: int) -> AsyncIterator[Round]:
    """Yield a round with a fresh home and an external reader."""
    place = pair.place(home)
    world = World(home, (f"red {home.name}", f"blue {home.name}"), seed)
    async with open_audit(place, world) as audit:
        killer = Killer(place, audit.witness, audit.database, random.Random(seed))
        yield Round(place, world, audit.witness, audit, killer)


@asynccontextmanager
async def open_audit(place: Place, world: World) -> AsyncIterator[Audit]:
    """Yield an external reader of a home, with its own connections to database and index."""
    async with AsyncExitStack() as stack:
        async with _MIGRATING:
            database = await Database.open(place.database_url)
        await stack.enter_async_context(contextlib.aclosing(database))
        index = await stack.enter_async_context(contextlib.aclosing(await place.open_index()))
        catalog = Catalog(database)
        witness = Witness(world, Channels(database), catalog, LiveIndex(index, catalog, "none"))
        yield Audit(world, witness, database, index, place.home)


@asynccontextmanager
async def background(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run ``work`` in the background until the block ends."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
