"""Waiting until a server process is ready, in a fixture that is not async."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

START_SECONDS = 120


def wait_until_ready(process: subprocess.Popen[bytes], is_ready: Callable[[], bool], log: Path) -> None:
    """Return once ``is_ready`` says so.

    Raises:
        AssertionError: the process ended, or took two minutes; its log says why.
    """
    end = time.monotonic() + START_SECONDS
    while not is_ready():
        assert process.poll() is None, f"the server ended, see {log}"
        assert time.monotonic() < end, f"the server is not ready, see {log}"
        time.sleep(0.05)
