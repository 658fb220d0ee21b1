"""toxiproxy: TCP proxies on loopback that a test can cut and slow down. MIT, built from its Go module.

Connections through a proxy can hang, as behind a network partition, be refused, or be delayed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from engines import cache
from engines.support.go_modules import build
from engines.support.ports import free_port
from engines.support.shares import HOST, ShareServer

NAME = "toxiproxy"
REMEDY = ".venv/bin/python tests/fetch.py toxiproxy (needs Go)"
BINDS_EVERYWHERE = False

VERSION = "v2.12.0"
MODULE = f"github.com/Shopify/toxiproxy/v2@{VERSION}"
# Hash in go.sum format.
CHECKSUM = "h1:d1x++lYZg/zijXPPcv7PH0MvHMzEI5aX/YuUi/Sw+yg="
BINARY = cache() / f"toxiproxy-{VERSION}"


def missing() -> str | None:
    """Return why it cannot run here, or None."""
    return None if BINARY.exists() else "toxiproxy was not built"


def fetch() -> None:
    """Build it from sources with pinned hashes.

    Raises:
        FetchError: Go is missing or too old, or a module is unavailable or has another hash.
    """
    build(MODULE, CHECKSUM, "./cmd/server", BINARY)


class RealToxiproxy(ShareServer):
    """The server, controlled by its HTTP API."""

    def command(self) -> Sequence[str]:
        """Return the command of the server in the foreground, on loopback."""
        return [str(BINARY), "-host", HOST, "-port", str(self.port)]

    def proxy(self, name: str, port: int) -> Proxy:
        """Create a proxy in front of a local port."""
        made = Proxy(self, name, free_port())
        body = {"name": name, "listen": f"{HOST}:{made.port}", "upstream": f"{HOST}:{port}", "enabled": True}
        self.call("POST", "/proxies", body)
        return made

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Call the API; return its reply, or None."""
        data = None if body is None else json.dumps(body).encode()
        request = Request(f"http://{HOST}:{self.port}{path}", data, method=method)
        with urlopen(request, timeout=10) as reply:
            return json.loads(reply.read() or "null")


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy, transparent by default."""

    server: RealToxiproxy
    name: str
    # Port to connect to.
    port: int

    def cut(self) -> None:
        """Accept connections but drop all traffic in both directions, so that clients hang."""
        for stream in ("upstream", "downstream"):
            self._add("timeout", stream, {"timeout": 0})

    def slow(self, milliseconds: int, jitter: int) -> None:
        """Delay every reply, with jitter."""
        self._add("latency", "downstream", {"latency": milliseconds, "jitter": jitter})

    def heal(self) -> None:
        """Remove all faults; connections that were cut are closed."""
        for toxic in self.server.call("GET", f"/proxies/{self.name}/toxics"):
            self.server.call("DELETE", f"/proxies/{self.name}/toxics/{toxic['name']}")

    def _add(self, kind: str, stream: str, attributes: dict[str, int]) -> None:
        toxic = {"name": f"{kind}-{stream}", "type": kind, "stream": stream, "attributes": attributes}
        self.server.call("POST", f"/proxies/{self.name}/toxics", toxic)


@pytest.fixture
def toxiproxy(tmp_path: Path) -> Iterator[RealToxiproxy]:
    """A server for this test."""
    server = RealToxiproxy(tmp_path)
    try:
        server.start()
        yield server
    finally:
        server.kill()
