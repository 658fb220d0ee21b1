"""Starts programs as forks of ``fork_server.py``, which has imported for all of them."""

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
    """A running program in a session of its own; much as ``subprocess.Popen``. Any thread may use it."""

    def __init__(
        self,
        program: str,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        *outputs: IO[bytes],
        terminal: int | None = None,
    ) -> None:
        """Start ``footnote`` or a life.

        Args:
            program: see ``fork_server.PROGRAMS``.
            arguments: of its command line.
            environment: all of its variables.
            outputs: standard output and standard error, or one for both.
            terminal: instead of them and of standard input.
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
        """Its exit status, None while it runs; -9 when SIGKILL ended it."""
        with self._lock:
            if self.returncode is None and select.select([self._connection], [], [], 0)[0]:
                self.returncode = int(self._line())
                self._connection.close()
                self.close_stdin()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Its exit status once it has ended.

        Raises:
            subprocess.TimeoutExpired: it has not, after ``timeout`` seconds.
        """
        if self.returncode is None:
            with suppress(ValueError, OSError):  # another thread has heard of its end
                select.select([self._connection], [], [], timeout)
        if (status := self.poll()) is None:
            raise subprocess.TimeoutExpired("footnote", timeout or 0)
        return status

    def send_signal(self, number: signal.Signals) -> None:
        """As ``os.kill``, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """``kill -9``."""
        self.send_signal(signal.SIGKILL)

    def write(self, words: bytes) -> None:
        """Words for its standard input; nobody may be left to read them."""
        if self._stdin is not None:
            with suppress(BrokenPipeError):
                os.write(self._stdin, words)

    def close_stdin(self) -> None:
        """The end of its standard input."""
        if self._stdin is not None:
            os.close(self._stdin)
        self._stdin = None

    def _line(self) -> bytes:
        """Return the server tells two: the process's number and, later, how it ended."""
        line = b""
        while not line.endswith(b"\n"):
            letter = self._connection.recv(1)
            assert letter, "the fork server has ended"
            line += letter
        return line


def run_command(arguments: Sequence[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """One ``footnote`` command, to its end; as ``subprocess.run`` with the installed command would.

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
    """Where the server of this test process listens; it ends with us."""
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
        start_new_session=True,  # Ctrl-C at a terminal is ours alone: we end it in our own order
    )
    atexit.register(server.communicate)  # which closes its standard input
    assert server.stdout is not None
    assert server.stdout.readline() == "ready\n"
    return path
