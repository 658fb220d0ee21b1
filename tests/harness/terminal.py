"""The program on a terminal of its own, where a person watches, types and presses Ctrl-C."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from harness.forks import Fork
from harness.program import Program

END_OF_INPUT = "\x04"
SECONDS = 180


@dataclass
class Terminal:
    """One command on a terminal; ``shown`` is all that it wrote so far."""

    process: Fork
    handle: int
    shown: str = ""

    def until(self, pattern: str) -> None:
        """Read until the command has shown what this regular expression finds."""
        while not re.search(pattern, self.shown):
            assert self._read(), f"it ended without {pattern!r}: {self.shown}"

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self.handle, keys.encode())

    def interrupt(self) -> None:
        """What Ctrl-C is: a signal to the command and to every process it started in its group."""
        os.killpg(self.process.pid, signal.SIGINT)

    def end(self) -> int:
        """Read to the end; the exit status."""
        while self._read():
            pass
        return self.process.wait(SECONDS)

    def _read(self) -> bool:
        """Read some; False when the command has closed its terminal."""
        ready, _, _ = select.select([self.handle], [], [], SECONDS)
        assert ready, f"nothing was shown for {SECONDS} s after {self.shown}"
        try:
            read = os.read(self.handle, 65536)
        except OSError:  # how Linux says that nobody holds the other end
            return False
        self.shown += read.decode(errors="replace")
        return bool(read)


@contextmanager
def on_terminal(program: Program, *arguments: str) -> Iterator[Terminal]:
    """Run a command on a terminal; it ends at the latest when this is left."""
    ours, theirs = pty.openpty()
    process = program.start_on(theirs, *arguments)
    os.close(theirs)
    try:
        yield Terminal(process, ours)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
