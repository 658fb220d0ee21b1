"""Starts programs as forks of ``fork_server.py``, which has done their imports."""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO

SERVER = Path(__file__).with_name("fork_server.py")
SECONDS = 300


class Fork:
    """A running program in its own session; similar to ``subprocess.Popen``. Thread-safe."""

    def __init__(
        self,
        program: str,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        *outputs: IO[bytes],
        terminal: int | None = None,
    ) -> None:
        """Start ``footnote`` or a soak program.

        Args:
            program: see ``fork_server.PROGRAMS``.
            arguments: command line.
            environment: all variables.
            outputs: standard output and standard error, or one file for both.
            terminal: replaces them and standard input.
        """
        theirs, ours = os.pipe()
        files = [theirs, *(one.fileno() for one in (outputs * 2)[:2])] if terminal is None else [terminal] * 3
        job = {"program": program, "arguments": list(arguments), "environment": dict(environment)}
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.connect(_server())
        socket.send_fds(self._connection, [json.dumps(job).encode()], files)
        os.close(theirs)
        self._stdin: int | None = ours
        self._lock = threading.Lock()
        self.returncode: int | None = None
        self.pid = int(self._line())

    def poll(self) -> int | None:
        """Return the exit status, or None while it runs; -9 after SIGKILL."""
        with self._lock:
            if self.returncode is None and select.select([self._connection], [], [], 0)[0]:
                self.returncode = int(self._line())
                self._connection.close()
                self.close_stdin()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end; return the exit status.

        Raises:
            subprocess.TimeoutExpired: it still runs after ``timeout`` seconds.
        """
        if self.returncode is None:
            with suppress(ValueError, OSError):  # another thread has seen its end
                select.select([self._connection], [], [], timeout)
        if (status := self.poll()) is None:
            raise subprocess.TimeoutExpired("footnote", timeout or 0)
        return status

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill it with SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def write(self, words: bytes) -> None:
        """Write to its standard input, ignoring a closed pipe."""
        if self._stdin is not None:
            with suppress(BrokenPipeError):
                os.write(self._stdin, words)

    def close_stdin(self) -> None:
        """Close its standard input."""
        if self._stdin is not None:
            os.close(self._stdin)
        self._stdin = None

    def _line(self) -> bytes:
        """Read a line of the server: first the pid, later the exit status."""
        line = b""
        while not line.endswith(b"\n"):
            letter = self._connection.recv(1)
            assert letter, "the fork server has ended"
            line += letter
        return line


def run_command(arguments: Sequence[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a ``footnote`` command to its end; like ``subprocess.run`` on the installed command.

    Raises:
        subprocess.TimeoutExpired: it took longer than any command does.
    """
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        running = Fork("footnote", arguments, environment, stdout, stderr)
        running.close_stdin()
        status = running.wait(SECONDS)
        written = [os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0) for file in (stdout, stderr)]
    return subprocess.CompletedProcess(arguments, status, *(text.decode() for text in written))


@cache
def _server() -> str:
    """Start the fork server of this test process, which ends with it; return its socket path."""
    path = f"{tempfile.mkdtemp(prefix='footnote-')}/forks"
    environment = {
        **os.environ,
        "PYTHONPATH": f"{SERVER.parents[2]}:{SERVER.parents[1]}",
        "OMP_NUM_THREADS": "1",
    }
    server = subprocess.Popen(
        [sys.executable, "-P", SERVER, path],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl-C at a terminal is for us only: we shut it down in order
    )
    atexit.register(server.communicate)  # closes its standard input
    assert server.stdout is not None
    assert server.stdout.readline() == "ready\n"
    return path
