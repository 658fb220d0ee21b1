"""File servers that a test can stop, kill and restart, and folders on them."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

from harness.processes import descendants

from engines.support.ports import free_port
from engines.support.starting import halt, wait_until_ready
from ingestion.sources.base import Source
from ingestion.sources.shares.registry import open_share
from ingestion.sources.shares.settings import ShareSettings

HOST = "127.0.0.1"
# Timeout of a test's source for a silent server; the minimum that a loaded machine never needs.
SHARE_SECONDS = 10.0


class Place(Protocol):
    """A new watched folder, and operations on it as another user."""

    location: str

    def source(self, **settings: Any) -> Source:
        """Return a source of it; settings override the right ones."""

    def put(self, name: str, data: bytes) -> None:
        """Write a file."""

    def remove(self, name: str) -> None:
        """Delete a file."""

    def rename(self, old: str, new: str) -> None:
        """Rename a file."""

    def vanish(self) -> None:
        """Make the folder itself disappear."""

    def pause(self) -> None:
        """Suspend the server: connections stay open, but get no reply."""

    def resume(self) -> None:
        """Resume the server."""

    def kill(self) -> None:
        """Kill the server."""

    def start(self) -> None:
        """Restart the server."""


class ShareServer:
    """A server process with its children."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def command(self) -> Sequence[str]:
        """Return the program and its arguments."""
        raise NotImplementedError

    def environment(self) -> dict[str, str]:
        """Return additional environment variables."""
        return {}

    def start(self) -> None:
        """Start it and wait until it accepts connections."""
        with (self.folder / "log.txt").open("ab") as log:
            self._process = subprocess.Popen(
                self.command(),
                stdout=log,
                stderr=log,
                env=os.environ | self.environment(),
                start_new_session=True,
            )
        wait_until_ready(self._process, self._answers, self.folder / "log.txt")

    def pause(self) -> None:
        """Suspend it, with every process that serves a connection."""
        for pid in self._pids():
            halt(pid)

    def resume(self) -> None:
        """Resume it."""
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        """Kill it and its children."""
        self._signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait(10)

    def _answers(self) -> bool:
        with suppress(OSError), socket.create_connection((HOST, self.port), timeout=2):
            return True
        return False

    def _signal(self, sent: signal.Signals) -> None:
        for pid in self._pids():
            with suppress(ProcessLookupError):
                os.kill(pid, sent)

    def _pids(self) -> list[int]:
        if self._process is None or self._process.poll() is not None:
            return []
        return [*descendants(self._process.pid), self._process.pid]


class ServedFolder:
    """A folder of this machine on a file server."""

    def __init__(self, server: ShareServer, folder: Path, url: str, settings: dict[str, Any]) -> None:
        self.folder = folder
        self.location = url
        self._settings = settings
        self._server = server
        self.pause, self.resume = server.pause, server.resume
        self.kill, self.start = server.kill, server.start
        folder.mkdir()

    def source(self, **settings: Any) -> Source:
        """Return a source of it."""
        return open_share(
            self.location, ShareSettings(**{"share_timeout": SHARE_SECONDS, **self._settings, **settings})
        )

    def put(self, name: str, data: bytes) -> None:
        """Write a file."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    def remove(self, name: str) -> None:
        """Delete a file."""
        (self.folder / name).unlink()

    def rename(self, old: str, new: str) -> None:
        """Rename a file."""
        (self.folder / old).rename(self.folder / new)

    def vanish(self) -> None:
        """Make the folder itself disappear."""
        self.folder.rename(self.folder.with_name(f"{self.folder.name}.gone"))


def new_name() -> str:
    """Return a unique name."""
    return f"f{uuid4().hex[:12]}"


def python() -> str:
    """Return the interpreter of the tests."""
    return sys.executable
