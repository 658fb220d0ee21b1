"""``footnote serve`` under a supervisor that restarts it, like systemd; with its memory and clock."""

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

# Far more than needed, to allow for a full disk and a busy machine.
READY_SECONDS = 600.0
SAMPLE_SECONDS = 1.0
RESTART_SECONDS = 1.0
OK = 200


@dataclass
class Service:
    """The process that serves a home."""

    settings: Mapping[str, str]
    # Folder of the log, which is not on the disk that gets full.
    folder: Path
    port: int = field(default_factory=free_port)
    kills: int = 0
    faults: list[str] = field(default_factory=list)
    # Memory of the running process in bytes, one sample a second since it was ready.
    samples: list[float] = field(default_factory=list)
    is_disk_full: bool = False
    _life: Life | None = None
    _is_ready: bool = False
    _is_stopping: bool = False

    @property
    def url(self) -> str:
        """URL of the service."""
        return f"http://127.0.0.1:{self.port}"

    async def run(self) -> None:
        """Keep it running; an exit of its own is a fault, except for a start on a full disk."""
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
        """Sample memory until the process is killed.

        Raises:
            AssertionError: it exited on its own.
        """
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5)) as session:
            while not await life.dies_within(SAMPLE_SECONDS):
                if self._is_ready:
                    with suppress(psutil.Error):
                        # RSS: the private part of a forked process grows as it touches shared pages.
                        self.samples.append(float(psutil.Process(life.pid).memory_info().rss))
                elif await self._answers(session):
                    self._is_ready = True

    async def _answers(self, session: aiohttp.ClientSession) -> bool:
        with suppress(aiohttp.ClientError, TimeoutError, OSError):
            async with session.get(f"{self.url}/readyz") as response:
                return response.status == OK
        return False

    async def until_ready(self) -> None:
        """Wait until a process is ready.

        Raises:
            AssertionError: none was ready for a long time.
        """

        async def is_ready() -> bool:
            return self._is_ready

        await until(is_ready, seconds=READY_SECONDS, log=lambda: "serve did not become ready")

    async def kill(self) -> None:
        """Kill it with ``kill -9``; the supervisor starts the next one."""
        if self._life is not None and self._life.end is None:
            self.kills += 1
            await self._life.kill()

    def jump_clock(self, ahead: float) -> bool:
        """Set the clock of the process ahead by ``ahead`` seconds; False if none is ready.

        A process that starts later has the correct time.
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
        """Stop it with Ctrl-C; ``run`` ends, and records a fault if the exit is not clean."""
        await self.until_ready()
        self._is_stopping = True
        if self._life is not None:
            self._life.interrupt()
