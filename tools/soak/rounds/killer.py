"""Killer: starts lives and ends them at a crash point, at random, with their index, or as ghosts."""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass

from storage.crash_points import POINTS
from storage.sql.database import Database
from tools.soak.checks.targets import GHOST, RANDOM, SERVER, TIDIES, halt
from tools.soak.checks.witness import Witness
from tools.soak.rounds.pairs import Place
from tools.soak.rounds.process import Life

# A life that does not reach its crash point in time is killed where it is.
REACH_SECONDS = 60.0
RANDOM_SECONDS = (1.5, 6.0)
# Attempts to halt a life that holds no lock: two of three do.
GHOSTS = 4
# No transaction of a running process takes as long.
LOCKED_SECONDS = 3.0
# One lease, the grace period of what the successor retires, and some time for both.
HANGS_SECONDS = 8.0


@dataclass
class Killer:
    """Kills the lives of one home."""

    place: Place
    witness: Witness
    # Connection to the home's database, to check whether others can write.
    database: Database
    chance: random.Random

    async def kill(self, target: str, *, whole: bool) -> str:
        """Start a life and kill it; return where it died."""
        if target == GHOST:
            for _ in range(GHOSTS):
                if (died := await self._wake_ghost()) == GHOST:
                    break
            return died
        life = await self._begin(target if target in POINTS else "", whole=whole)
        try:
            if target == SERVER:
                return await self._kill_server(life)
            return await self._await_death(life, target)
        finally:
            await life.kill()

    async def _begin(self, armed: str = "", *, whole: bool = False) -> Life:
        return await Life.begin(self.place.environment, armed, whole=whole)

    async def _await_death(self, life: Life, target: str) -> str:
        if target == RANDOM:
            return await self._live_on(life, *RANDOM_SECONDS)
        end = time.monotonic() + REACH_SECONDS
        while time.monotonic() < end:
            if await life.dies_within(2.0):
                return target
            if target in TIDIES:
                life.tell()
        return RANDOM

    async def _live_on(self, life: Life, least: float, most: float) -> str:
        """Let some time pass; a death then is at random."""
        assert not await life.dies_within(self.chance.uniform(least, most)), "somebody else killed a life"
        return RANDOM

    async def _kill_server(self, life: Life) -> str:
        """Kill the index server, with the life or under it, and restart it."""
        server = self.place.weaviate
        assert server is not None
        await self._live_on(life, *RANDOM_SECONDS)
        self.witness.is_index_down = True
        await asyncio.to_thread(server.kill)
        goes_along = self.chance.random() < 0.5
        if goes_along:
            await life.kill()
        await asyncio.to_thread(server.start)
        self.witness.is_index_down = False
        if not goes_along:
            await self._live_on(life, 1.0, 4.0)
        return SERVER

    async def _wake_ghost(self) -> str:
        """Halt a life until its successor has done its work, wake it, and kill it only then."""
        ghost = await self._begin(f"~{halt(self.witness.world.seed)}:{self.chance.randint(1, 4)}")
        try:
            if not await ghost.halts_within(REACH_SECONDS):
                assert not await ghost.dies_within(0), "somebody else killed a ghost"
                return RANDOM
            if await self._is_amid_a_transaction(ghost):
                return RANDOM
            heir = await self._begin()
            try:
                await self._live_on(heir, HANGS_SECONDS, HANGS_SECONDS)
                ghost.wake()
                await self._live_on(heir, 1.0, 3.0)
            finally:
                await heir.kill()
            assert not await ghost.dies_within(0), "somebody else killed a ghost"
            await self.witness.ask_for_all()  # before another life could repair what the ghost did
            return GHOST
        finally:
            await ghost.kill()

    async def _is_amid_a_transaction(self, ghost: Life) -> bool:
        """True if another step of the ghost held a lock, which blocks any successor; then it is killed."""

        async def write() -> None:
            async with self.database.transaction():
                pass

        writing = asyncio.create_task(write())
        done, _ = await asyncio.wait((writing,), timeout=LOCKED_SECONDS)
        if not done:
            await ghost.kill()
        await writing
        return not done
