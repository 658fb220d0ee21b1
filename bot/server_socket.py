"""Listening socket of ``serve``: bound before anything slow starts, and announced to other commands."""

from __future__ import annotations

import errno
import json
import os
import socket
from pathlib import Path
from types import TracebackType
from typing import Any

from storage.errors import SettingsError
from storage.index.weaviate.process import process_start_time

# Connections that the kernel queues until they are accepted.
BACKLOG = 128


def base_url(host: str, port: int) -> str:
    """Return a URL that browsers can open; wildcard addresses become loopback."""
    shown = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{shown}]:{port}" if ":" in shown else f"http://{shown}:{port}"


def read_server_url(home: Path) -> str | None:
    """Return the URL of the home's running ``serve``, None if none runs."""
    note = _read_announcement(home / "serve.json")
    pid = note.get("pid")
    # The start time tells a reused process id from the server's.
    is_running = isinstance(pid, int) and note.get("born") == process_start_time(pid) is not None
    return str(note["url"]) if is_running else None


def _read_announcement(note: Path) -> dict[str, Any]:
    try:
        values = json.loads(note.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return values if isinstance(values, dict) else {}


class ServerSocket:
    """Bound socket, and the file in the home that announces its URL.

    Raises:
        SettingsError: on entering the context, if the address is unavailable.
    """

    def __init__(self, host: str, port: int, home: Path) -> None:
        self._host, self._port = host, port
        self._announcement = home / "serve.json"
        self.url = base_url(host, port)
        self.socket = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)

    def __enter__(self) -> ServerSocket:
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self.socket.bind((self._host, self._port))
        except OSError as error:
            self.socket.close()
            raise SettingsError(self._bind_error_message(error)) from error
        return self

    def listen(self) -> None:
        """Accept connections; until then they are refused, so that a load balancer tries another machine.

        Raises:
            SettingsError: another program has started listening there since the bind.
        """
        try:
            self.socket.listen(BACKLOG)
        except OSError as error:
            raise SettingsError(self._bind_error_message(error)) from error

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()
        if _read_announcement(self._announcement).get("pid") == os.getpid():
            self._announcement.unlink(missing_ok=True)

    def announce(self) -> None:
        """Announce the URL in the home: links made by other commands lead here from now on."""
        draft = self._announcement.with_suffix(".new")
        draft.write_text(
            json.dumps({"url": self.url, "pid": os.getpid(), "born": process_start_time(os.getpid())}),
            encoding="utf-8",
        )
        draft.replace(self._announcement)

    def _bind_error_message(self, error: OSError) -> str:
        if error.errno == errno.EADDRINUSE:
            return (
                f"port {self._port} is already in use: stop what listens there, or choose another port, "
                f"as in `--port {self._port + 1}` (with make: `PORT={self._port + 1}`)"
            )
        if error.errno == errno.EACCES:
            return f"port {self._port} may not be used by this user: choose one above 1023"
        return f"cannot listen on {self._host}:{self._port}: {error.strerror}"
