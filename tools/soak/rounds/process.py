"""Handle of a life for its driver: start, tidy, kill, or find it dead at its crash point."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from engines.support.ports import free_port
from harness.crash_points import VARIABLE
from harness.forks import Fork

# If set, the program misbehaves on purpose, so that the harness has something to find.
SABOTAGE = "SOAK_SABOTAGE"
KEPT = ("PATH", "HOME", "LANG", "XDG_CACHE_HOME", SABOTAGE)
# Lines of the home's log in the message about an unexpected exit.
LAST_LINES = 40


class Life:
    """A running process of the program; its output goes to ``life.log`` in the home."""

    def __init__(self, process: Fork, log: Path) -> None:
        self._process = process
        self._log = log

    @classmethod
    async def begin(
        cls,
        settings: Mapping[str, str],
        crash_at: str = "",
        *,
        whole: bool = False,
        port: int | None = None,
        log: Path | None = None,
    ) -> Life:
        """Start the slim process, or the whole ``footnote serve``; with a crash point armed, if one is named.

        Args:
            settings: environment variables of the process.
            crash_at: the crash point.
            whole: start ``footnote serve``.
            port: its port; None: any free one.
            log: file of its output; None: in the home.
        """
        environment = {name: os.environ[name] for name in KEPT if name in os.environ} | dict(settings)
        environment["OMP_NUM_THREADS"] = "1"
        if crash_at:
            environment[VARIABLE] = crash_at
        program, arguments = "life", list[str]()
        if whole:
            program = "forgetful" if SABOTAGE in os.environ else "footnote"
            arguments = ["-v", "serve", "--port", str(port or free_port())]
        path = log or Path(settings["FOOTNOTE_HOME"]) / "life.log"
        with path.open("ab") as output:
            return cls(await asyncio.to_thread(Fork, program, arguments, environment, output), path)

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    def interrupt(self) -> None:
        """Send Ctrl-C (SIGINT)."""
        self._process.send_signal(signal.SIGINT)

    def jump_clock(self) -> None:
        """Make the process read its clock error again."""
        self._process.send_signal(signal.SIGUSR1)

    def tell(self) -> None:
        """Make the process purge and reconcile now."""
        self._process.write(b"tidy\n")

    async def dies_within(self, seconds: float) -> bool:
        """True if it was killed in time, for example at its crash point.

        Raises:
            AssertionError: it exited on its own.
        """
        try:
            status = await asyncio.to_thread(self._process.wait, seconds)
        except subprocess.TimeoutExpired:
            return False
        assert status == -signal.SIGKILL, f"a life ended by itself, with {status}:\n{self._last_words()}"
        return True

    async def halts_within(self, seconds: float) -> bool:
        """True if it reached a halting point in time; ``wake`` resumes it."""
        end = time.monotonic() + seconds
        while self._process.poll() is None and time.monotonic() < end:
            if _state_of(self._process.pid) == "T":
                return True
            await asyncio.sleep(0.05)
        return False

    def wake(self) -> None:
        """Resume the halted process."""
        self._process.send_signal(signal.SIGCONT)

    @property
    def end(self) -> int | None:
        """Exit status; None while it runs."""
        return self._process.poll()

    async def kill(self) -> None:
        """Kill the process with ``kill -9``."""
        self._process.kill()
        await asyncio.to_thread(self._process.wait)

    def _last_words(self) -> str:
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-LAST_LINES:])

    async def finish(self) -> None:
        """Stop the process cleanly.

        Raises:
            AssertionError: it did not exit cleanly.
        """
        self._process.close_stdin()
        try:
            await asyncio.to_thread(self._process.wait, 120)
        except subprocess.TimeoutExpired:
            await self.kill()
        assert self.end == 0, f"a life that was let go ended with {self.end}:\n{self._last_words()}"


def _state_of(pid: int) -> str:
    """Return the state letter of a process; T is stopped."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return ""
