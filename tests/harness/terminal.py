"""The program on a pseudo-terminal, with input and Ctrl-C."""

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
    """A command on a terminal; ``shown`` is its output."""

    process: Fork
    handle: int
    shown: str = ""

    def until(self, pattern: str) -> None:
        """Read until the output matches a regular expression."""
        while not re.search(pattern, self.shown):
            assert self._read(), f"it ended without {pattern!r}: {self.shown}"

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self.handle, keys.encode())

    def interrupt(self) -> None:
        """Send Ctrl-C: SIGINT to the command's process group."""
        os.killpg(self.process.pid, signal.SIGINT)

    def end(self) -> int:
        """Read to the end; return the exit status."""
        while self._read():
            pass
        return self.process.wait(SECONDS)

    def _read(self) -> bool:
        """Read some output; return False when the command has closed its terminal."""
        ready, _, _ = select.select([self.handle], [], [], SECONDS)
        assert ready, f"nothing was shown for {SECONDS} s after {self.shown}"
        try:
            read = os.read(self.handle, 65536)
        except OSError:  # Linux raises EIO when the other end is closed
            return False
        self.shown += read.decode(errors="replace")
        return bool(read)


@contextmanager
def on_terminal(program: Program, *arguments: str) -> Iterator[Terminal]:
    """Run a command on a terminal and yield it; it is killed on exit."""
    ours, theirs = pty.openpty()
    process = program.start_on(theirs, *arguments)
    os.close(theirs)
    try:
        yield Terminal(process, ours)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
