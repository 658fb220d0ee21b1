"""``footnote serve`` under a supervisor that starts it again, as systemd does; its memory and its clock."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import psutil
from engines.support.ports import free_port
from harness.clock_jumps import VARIABLE
from harness.waiting import until

from tools.soak.rounds.process import Life

# Far more than it takes, with pauses of a full disk, on a machine that is busy with other work.
READY_SECONDS = 600.0
SAMPLE_SECONDS = 1.0
RESTART_SECONDS = 1.0
OK = 200


@dataclass
class Service:
    """The one process that serves a home."""

    settings: Mapping[str, str]
    # Of its log, which does not lie on the disk that gets full.
    folder: Path
    port: int = field(default_factory=free_port)
    kills: int = 0
    faults: list[str] = field(default_factory=list)
    # Bytes of memory of the process that runs, one a second since it was ready.
    samples: list[float] = field(default_factory=list)
    is_disk_full: bool = False
    _life: Life | None = None
    _is_ready: bool = False
    _is_stopping: bool = False

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    async def run(self) -> None:
        """Keep it running; one that ends by itself is a fault, but for a start on a full disk."""
        self._clock.write_text("0")
        settings = {**self.settings, VARIABLE: str(self._clock)}
        while not self._is_stopping:
            began_full = self.is_disk_full
            self._life = life = await Life.begin(
                settings, whole=True, port=self.port, log=self.folder / "life.log"
            )
            self.samples.clear()
            try:
                await self._watch(life)
            except AssertionError as ended:
                if self._is_stopping and life.end == 0:
                    return
                if self._is_ready or not (began_full or self.is_disk_full):
                    self.faults.append(str(ended))
            finally:
                self._is_ready = False
                await life.kill()
            await asyncio.sleep(RESTART_SECONDS)

    async def _watch(self, life: Life) -> None:
        """Until it dies.

        Raises:
            AssertionError: it ended by itself.
        """
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5)) as session:
            while not await life.dies_within(SAMPLE_SECONDS):
                if self._is_ready:
                    with suppress(psutil.Error):
                        # Resident: the private part of a fork grows as it touches what it shares.
                        self.samples.append(float(psutil.Process(life.pid).memory_info().rss))
                elif await self._answers(session):
                    self._is_ready = True

    async def _answers(self, session: aiohttp.ClientSession) -> bool:
        with suppress(aiohttp.ClientError, TimeoutError, OSError):
            async with session.get(f"{self.url}/readyz") as response:
                return response.status == OK
        return False

    async def until_ready(self) -> None:
        """Wait for a process that is ready.

        Raises:
            AssertionError: none is, for a long time.
        """

        async def is_ready() -> bool:
            return self._is_ready

        await until(is_ready, seconds=READY_SECONDS, log=lambda: "serve did not become ready")

    async def kill(self) -> None:
        """``kill -9``; the supervisor starts the next one."""
        if self._life is not None and self._life.end is None:
            self.kills += 1
            await self._life.kill()

    def jump_clock(self, ahead: float) -> bool:
        """Its clock is wrong by so many seconds from now on; False: none is ready.

        That of a process that starts later is right.
        """
        if not self._is_ready or self._life is None:
            return False
        self._clock.write_text(str(ahead))
        self._life.jump_clock()
        return True

    @property
    def _clock(self) -> Path:
        return self.folder / "clock-ahead"

    async def stop(self) -> None:
        """Ctrl-C, which must go well: ``run`` ends, with a fault when it does not."""
        await self.until_ready()
        self._is_stopping = True
        if self._life is not None:
            self._life.interrupt()
