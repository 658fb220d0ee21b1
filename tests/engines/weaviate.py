"""Weaviate: the server and environment of ``WEAVIATE_URL=embedded``, which tests may kill.

BSD-3-Clause, built from its Go module by ``make weaviate``. gRPC and the cluster's data port listen on all
interfaces, so it runs behind loopback only.
"""

from __future__ import annotations

import asyncio
import http.client
import signal
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest

from engines import FetchError
from engines.support.starting import halt, wait_until_ready
from storage.index.weaviate.index import WeaviateIndex
from storage.index.weaviate.process import HOST, ServerIdentity, default_binary, environment, new_identity

NAME = "weaviate"
REMEDY = "make weaviate"
BINDS_EVERYWHERE = True
SCHEME = ("--scheme", "http")


def missing() -> str | None:
    """Return why it cannot run here, or None."""
    return None if default_binary().exists() else "the Weaviate server was not built"


def fetch() -> None:
    """Build it; takes minutes the first time."""
    script = Path(__file__).parents[2] / "deploy" / "weaviate.sh"
    if subprocess.run([str(script)], stdout=subprocess.DEVNULL, check=False).returncode:
        raise FetchError("deploy/weaviate.sh could not build the Weaviate server")


class RealWeaviate:
    """A server on its own data folder that can be suspended, killed and restarted."""

    def __init__(
        self,
        folder: Path,
        identity: ServerIdentity | None = None,
        variables: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """``variables`` override the environment of our own child process."""
        self._folder = folder
        self._variables = variables
        self.identity = identity or new_identity()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def data(self) -> Path:
        """Data folder."""
        return self._folder / "data"

    @property
    def url(self) -> str:
        """Base URL of the REST port."""
        return f"http://{HOST}:{self.identity.ports.rest}"

    @property
    def grpc_port(self) -> int:
        """gRPC port."""
        return self.identity.ports.grpc

    @property
    def api_key(self) -> str:
        """API key."""
        return self.identity.api_key

    @property
    def settings(self) -> dict[str, str]:
        """Settings with which the product connects to it."""
        return {
            "WEAVIATE_URL": self.url,
            "WEAVIATE_API_KEY": self.api_key,
            "FOOTNOTE_WEAVIATE_GRPC_PORT": str(self.grpc_port),
        }

    @property
    def has_begun(self) -> bool:
        """True if there is a process, ready or not."""
        return self._process is not None

    async def connect(self, seconds: float = 10.0, replicas: int | None = None) -> WeaviateIndex:
        """Return an index on this server, with a deadline in seconds."""
        return await WeaviateIndex.connect(self.url, self.api_key, self.grpc_port, seconds, replicas=replicas)

    def start(self) -> None:
        """Start it and wait until it is ready."""
        self.data.mkdir(exist_ok=True)
        with (self._folder / "log.txt").open("ab") as log:
            self._process = subprocess.Popen(
                [str(default_binary()), "--host", HOST, "--port", str(self.identity.ports.rest), *SCHEME],
                env=environment(self.data, self.identity) | self._variables,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        wait_until_ready(self._process, self._is_ready, self._folder / "log.txt")

    def pause(self) -> None:
        """Suspend it: connections stay open, but get no reply."""
        halt(self._running.pid)

    def resume(self) -> None:
        """Resume it."""
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        """Kill it with SIGKILL, without flushing."""
        self._signal(signal.SIGKILL)
        self._running.wait(10)

    def stop(self) -> None:
        """Stop it cleanly."""
        if self._running.poll() is None:
            self._signal(signal.SIGTERM)
            self._running.wait(60)

    @property
    def _running(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "not started"
        return self._process

    def _signal(self, sent: signal.Signals) -> None:
        self._running.send_signal(sent)

    def _is_ready(self) -> bool:
        connection = http.client.HTTPConnection(HOST, self.identity.ports.rest, timeout=2)
        with closing(connection), suppress(OSError, http.client.HTTPException):
            connection.request("GET", "/v1/.well-known/ready")
            if connection.getresponse().status == 200:
                socket.create_connection((HOST, self.grpc_port), timeout=2).close()
                return True
        return False


@asynccontextmanager
async def cluster(
    folder: Path, names: Sequence[str], variables: Mapping[str, str] = MappingProxyType({})
) -> AsyncIterator[list[RealWeaviate]]:
    """Yield the nodes of a cluster, all ready.

    ``variables`` override the environment of our own child process, such as timeouts, except for names and
    addresses.
    """
    first = new_identity()
    secrets = {"api_key": first.api_key, "cluster_password": first.cluster_password}
    identities = [first, *(replace(new_identity(), **secrets) for _ in names[1:])]
    ring = {
        "RAFT_JOIN": ",".join(
            f"{name}:{one.ports.raft}" for name, one in zip(names, identities, strict=True)
        ),
        "RAFT_BOOTSTRAP_EXPECT": str(len(names)),
    }
    servers = []
    for name, identity in zip(names, identities, strict=True):
        own = {"CLUSTER_HOSTNAME": name}
        if servers:
            own["CLUSTER_JOIN"] = f"{HOST}:{first.ports.gossip}"
        (folder / name).mkdir()
        servers.append(RealWeaviate(folder / name, identity, {**variables, **ring, **own}))
    try:
        started = await asyncio.gather(
            *(asyncio.to_thread(one.start) for one in servers), return_exceptions=True
        )
        for failure in filter(None, started):
            raise failure
        yield servers
    finally:
        for one in servers:  # no node shuts down cleanly without the others
            if one.has_begun:
                one.kill()


@pytest.fixture(scope="session")
def weaviate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealWeaviate]:
    """A server shared by all tests; a test that kills it restarts it."""
    server = RealWeaviate(tmp_path_factory.mktemp("weaviate"))
    try:
        server.start()
        yield server
    finally:
        server.stop()
