"""Waiting, in fixtures that are not async, for a server process to be ready or suspended."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

START_SECONDS = 120


def wait_until_ready(process: subprocess.Popen[bytes], is_ready: Callable[[], bool], log: Path) -> None:
    """Poll until ``is_ready`` returns true.

    Raises:
        AssertionError: the process ended, or took two minutes; its log says why.
    """
    end = time.monotonic() + START_SECONDS
    while not is_ready():
        assert process.poll() is None, f"the server ended, see {log}"
        assert time.monotonic() < end, f"the server is not ready, see {log}"
        time.sleep(0.05)


def halt(pid: int) -> None:
    """Suspend a process and wait until none of its threads runs."""
    with suppress(ProcessLookupError, FileNotFoundError):  # it has ended
        os.kill(pid, signal.SIGSTOP)
        while any(_state(task) not in "TtXZ" for task in Path(f"/proc/{pid}/task").iterdir()):
            time.sleep(0.01)


def _state(task: Path) -> str:
    with suppress(FileNotFoundError, ProcessLookupError):
        return (task / "stat").read_text().rpartition(")")[2].split()[0]
    return "X"
