"""A life as its driver holds it: started, told to tidy up, killed, or found dead at its crash point."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from engines._ports import free_port
from forks import Fork

from storage.crash_points import VARIABLE

KEPT = ("PATH", "HOME", "LANG", "XDG_CACHE_HOME", "SOAK_SABOTAGE")


class Life:
    """A running process of the program; its words go to ``life.log`` in the home."""

    def __init__(self, process: Fork) -> None:
        self._process = process

    @classmethod
    async def begin(cls, settings: Mapping[str, str], crash_at: str = "", *, whole: bool = False) -> Life:
        """Start the slim process, or the whole ``footnote serve``; armed when a crash point is named."""
        environment = {name: os.environ[name] for name in KEPT if name in os.environ} | dict(settings)
        environment["OMP_NUM_THREADS"] = "1"
        if crash_at:
            environment[VARIABLE] = crash_at
        program, arguments = "life", list[str]()
        if whole:
            program, arguments = "footnote", ["-v", "serve", "--port", str(free_port())]
        with (Path(settings["FOOTNOTE_HOME"]) / "life.log").open("ab") as log:
            return cls(await asyncio.to_thread(Fork, program, arguments, environment, log))

    def tell(self) -> None:
        """Have it purge and reconcile now."""
        self._process.write(b"tidy\n")

    async def dies_within(self, seconds: float) -> bool:
        """Whether it got to its crash point in time."""
        try:
            return await asyncio.to_thread(self._process.wait, seconds) == -signal.SIGKILL
        except subprocess.TimeoutExpired:
            return False

    async def halts_within(self, seconds: float) -> bool:
        """Whether it came in time to a point that halts it; ``wake`` lets it go on."""
        end = time.monotonic() + seconds
        while self._process.poll() is None and time.monotonic() < end:
            if _state_of(self._process.pid) == "T":
                return True
            await asyncio.sleep(0.05)
        return False

    def wake(self) -> None:
        """Go on where it was halted, none the wiser."""
        self._process.send_signal(signal.SIGCONT)

    @property
    def end(self) -> int | None:
        """Its exit status, None while it runs."""
        return self._process.poll()

    async def kill(self) -> None:
        """``kill -9``."""
        self._process.kill()
        await asyncio.to_thread(self._process.wait)

    async def finish(self) -> None:
        """Let it end in good order.

        Raises:
            AssertionError: it could not.
        """
        self._process.close_stdin()
        try:
            await asyncio.to_thread(self._process.wait, 120)
        except subprocess.TimeoutExpired:
            await self.kill()
        assert self.end == 0, f"a life that was let go ended with {self.end}"


def _state_of(pid: int) -> str:
    """One letter: T is halted."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return ""
