"""toxiproxy: TCP proxies on loopback that a test cuts and slows. MIT, built from its Go module.

Every connection that a process makes through one can be left without an answer, as behind a partition, be
refused, or be late.
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
# As Go would write it into a go.sum.
CHECKSUM = "h1:d1x++lYZg/zijXPPcv7PH0MvHMzEI5aX/YuUi/Sw+yg="
BINARY = cache() / f"toxiproxy-{VERSION}"


def missing() -> str | None:
    """True if it was built."""
    return None if BINARY.exists() else "toxiproxy was not built"


def fetch() -> None:
    """Build it of files whose hashes are known.

    Raises:
        FetchError: Go is missing or too old, or a module is out of reach or another one.
    """
    build(MODULE, CHECKSUM, "./cmd/server", BINARY)


class RealToxiproxy(ShareServer):
    """The server, driven by its HTTP API."""

    def command(self) -> Sequence[str]:
        """In the foreground, on loopback."""
        return [str(BINARY), "-host", HOST, "-port", str(self.port)]

    def proxy(self, name: str, port: int) -> Proxy:
        """Return a proxy of this name in front of a port of this machine."""
        made = Proxy(self, name, free_port())
        body = {"name": name, "listen": f"{HOST}:{made.port}", "upstream": f"{HOST}:{port}", "enabled": True}
        self.call("POST", "/proxies", body)
        return made

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """One call of the API; what it returned, None: nothing."""
        data = None if body is None else json.dumps(body).encode()
        request = Request(f"http://{HOST}:{self.port}{path}", data, method=method)
        with urlopen(request, timeout=10) as reply:
            return json.loads(reply.read() or "null")


@dataclass(frozen=True, slots=True)
class Proxy:
    """One proxy; nothing stands in its way unless somebody says so."""

    server: RealToxiproxy
    name: str
    # Where it listens.
    port: int

    def cut(self) -> None:
        """Take connections, and let nothing through in either direction: whoever asks waits for ever."""
        for stream in ("upstream", "downstream"):
            self._add("timeout", stream, {"timeout": 0})

    def slow(self, milliseconds: int, jitter: int) -> None:
        """Every answer comes so late, give or take the jitter."""
        self._add("latency", "downstream", {"latency": milliseconds, "jitter": jitter})

    def heal(self) -> None:
        """Nothing stands in the way any more; connections that were cut are closed."""
        for toxic in self.server.call("GET", f"/proxies/{self.name}/toxics"):
            self.server.call("DELETE", f"/proxies/{self.name}/toxics/{toxic['name']}")

    def _add(self, kind: str, stream: str, attributes: dict[str, int]) -> None:
        toxic = {"name": f"{kind}-{stream}", "type": kind, "stream": stream, "attributes": attributes}
        self.server.call("POST", f"/proxies/{self.name}/toxics", toxic)


@pytest.fixture
def toxiproxy(tmp_path: Path) -> Iterator[RealToxiproxy]:
    """A server of this test's own."""
    server = RealToxiproxy(tmp_path)
    try:
        server.start()
        yield server
    finally:
        server.kill()
