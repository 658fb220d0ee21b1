"""A life as its driver holds it: started, told to tidy up, killed, or found dead at its crash point."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from engines._ports import free_port

from storage.crash_points import VARIABLE

REPOSITORY = Path(__file__).parents[2]
LIFE = [sys.executable, "tests/soak/soak_life.py"]
PATHS = (REPOSITORY, REPOSITORY / "tests", REPOSITORY / "tests/soak")
KEPT = ("PATH", "HOME", "LANG", "XDG_CACHE_HOME", "SOAK_SABOTAGE")


class Life:
    """A running process of the program; its words go to ``life.log`` in the home."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def begin(cls, settings: Mapping[str, str], crash_at: str = "", *, whole: bool = False) -> Life:
        """Start the slim process, or the whole ``footnote serve``; armed when a crash point is named."""
        environment = {name: os.environ[name] for name in KEPT if name in os.environ} | dict(settings)
        environment |= {"PYTHONPATH": os.pathsep.join(map(str, PATHS)), "OMP_NUM_THREADS": "1"}
        if crash_at:
            environment[VARIABLE] = crash_at
        served = [str(Path(sys.executable).with_name("footnote")), "-v", "serve", "--port", str(free_port())]
        with (Path(settings["FOOTNOTE_HOME"]) / "life.log").open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *(served if whole else LIFE),
                env=environment,
                cwd=REPOSITORY,
                stdin=asyncio.subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        return cls(process)

    def tell(self) -> None:
        """Have it purge and reconcile now."""
        if self._process.stdin is not None and self._process.returncode is None:
            with suppress(ConnectionError):
                self._process.stdin.write(b"tidy\n")

    async def dies_within(self, seconds: float) -> bool:
        """Whether it got to its crash point in time."""
        try:
            async with asyncio.timeout(seconds):
                return await self._process.wait() == -signal.SIGKILL
        except TimeoutError:
            return False

    async def halts_within(self, seconds: float) -> bool:
        """Whether it came in time to a point that halts it; ``wake`` lets it go on."""
        end = time.monotonic() + seconds
        while self._process.returncode is None and time.monotonic() < end:
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
        return self._process.returncode

    async def kill(self) -> None:
        """``kill -9``."""
        with suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()

    async def finish(self) -> None:
        """Let it end in good order.

        Raises:
            AssertionError: it could not.
        """
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            async with asyncio.timeout(120):
                await self._process.wait()
        except TimeoutError:
            await self.kill()
        assert self.end == 0, f"a life that was let go ended with {self.end}"


def _state_of(pid: int) -> str:
    """One letter: T is halted."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return ""
