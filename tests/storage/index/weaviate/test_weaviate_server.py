"""Weaviate as a child process: start, attach, credentials, shutdown."""

from __future__ import annotations

import asyncio
import base64
import http.client
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

import grpc
import pytest
import pytest_asyncio
from harness.waiting import PATIENCE
from samples.indexes import chunk, new_tenant

from storage.errors import EngineStartError, IndexUnavailable
from storage.index.base import SearchFilter
from storage.index.weaviate import server as weaviate_server_module
from storage.index.weaviate.index import WeaviateIndex
from storage.index.weaviate.process import HOST, default_binary, end, new_identity, spawn
from storage.index.weaviate.server import WeaviateServer

needs_weaviate = pytest.mark.engine("weaviate")

COMMAND = """
import asyncio, sys
from pathlib import Path
from storage.index.weaviate.server import WeaviateServer

async def main():
    server = await WeaviateServer.start_or_attach(Path(sys.argv[1]))
    print(server.pid, server.is_owner, flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of ``server``."""
    return tmp_path_factory.mktemp("home")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(home: Path) -> AsyncIterator[WeaviateServer]:
    """A server for read-only tests, started while the environment holds a secret."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "a-secret-of-ours")
        started = await WeaviateServer.start_or_attach(home)
    yield started
    await started.stop()


@asynccontextmanager
async def connected(server: WeaviateServer) -> AsyncIterator[WeaviateIndex]:
    """Yield an index on it."""
    index = await WeaviateIndex.connect(server.url, server.api_key, server.grpc_port, PATIENCE)
    try:
        yield index
    finally:
        await index.aclose()


async def start_command(home: Path) -> tuple[asyncio.subprocess.Process, int, bool]:
    """Start another command on the home; return its process, the server's pid and whether it is the owner."""
    command = await asyncio.create_subprocess_exec(
        sys.executable, "-c", COMMAND, str(home), stdout=asyncio.subprocess.PIPE
    )
    assert command.stdout is not None
    pid, is_owner = (await command.stdout.readline()).decode().split()
    return command, int(pid), is_owner == "True"


async def until(holds: Callable[[], bool]) -> None:
    """Poll until a condition holds."""
    async with asyncio.timeout(PATIENCE):
        while not holds():
            await asyncio.sleep(0.02)


def is_running(pid: int) -> bool:
    """True if a process runs and is no zombie."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] not in "ZX"


def status_of(port: int, path: str, authorization: str | None) -> int:
    connection = http.client.HTTPConnection(HOST, port, timeout=PATIENCE)
    connection.request("GET", path, headers={"Authorization": authorization} if authorization else {})
    status = connection.getresponse().status
    connection.close()
    return status


async def grpc_refusal(port: int, key: str | None) -> str:
    """Return the gRPC error message of a search without a collection."""
    metadata = (("authorization", f"Bearer {key}"),) if key else ()
    async with grpc.aio.insecure_channel(f"{HOST}:{port}") as channel:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await channel.unary_unary("/weaviate.v1.Weaviate/Search")(
                b"", metadata=metadata, timeout=PATIENCE
            )
    return refused.value.details() or ""


def listeners(port: int) -> set[str]:
    """Return the addresses, as in /proc/net, that listen on a port."""
    lines = [
        line.split()
        for table in ("tcp", "tcp6")
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]
    ]
    return {line[1].split(":")[0] for line in lines if line[3] == "0A" and line[1].endswith(f":{port:04X}")}


def environment_of(pid: int | None) -> str:
    """Return the environment of a process."""
    return Path(f"/proc/{pid}/environ").read_text()


@needs_weaviate
@pytest.mark.asyncio(loop_scope="module")
async def test_every_port_requires_credentials(server: WeaviateServer) -> None:
    """REST and gRPC refuse calls without the key, the cluster's data port without its password."""
    tenant, ports = new_tenant(), server.identity.ports
    async with connected(server) as index:
        await index.ensure_tenant(tenant)
    assert status_of(ports.rest, "/v1/schema", None) == 401
    assert status_of(ports.rest, "/v1/schema", "Bearer wrong") == 401
    assert status_of(ports.rest, "/v1/schema", f"Bearer {server.api_key}") == 200
    for key in (None, "wrong"):
        assert "unauthorized" in await grpc_refusal(ports.grpc, key)
    assert "unauthorized" not in await grpc_refusal(ports.grpc, server.api_key)
    path = f"/indices/FootnoteChunk/shards/{tenant}/objects/00000000-0000-0000-0000-000000000001"
    basic = base64.b64encode(f"footnote:{server.identity.cluster_password}".encode()).decode()
    assert status_of(ports.data, path, None) == 401
    assert status_of(ports.data, path, "Basic d3Jvbmc6d3Jvbmc=") == 401
    assert status_of(ports.data, path, f"Basic {basic}") != 401


@needs_weaviate
def test_ports_are_bound_to_loopback_where_possible(server: WeaviateServer) -> None:
    """REST, gossip and Raft listen on 127.0.0.1; gRPC and cluster data can only bind to all interfaces."""
    ports = server.identity.ports
    for port in (ports.rest, ports.gossip, ports.raft, ports.raft_rpc):
        assert listeners(port) == {"0100007F"}
    assert listeners(6060) == listeners(2112) == set()


@needs_weaviate
def test_the_state_file_is_readable_by_this_user_only(server: WeaviateServer, home: Path) -> None:
    """Key, port and pid are stored with mode 0600 in a folder with mode 0700."""
    folder = home / "weaviate"
    assert (folder / "server.json").stat().st_mode & 0o777 == 0o600
    assert (folder / "log.txt").stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700
    assert weaviate_server_module.read_identity(folder) == server.identity


@needs_weaviate
def test_the_child_inherits_no_secrets(server: WeaviateServer) -> None:
    """Shows that it does not inherit our environment."""
    environment = environment_of(server.pid)
    assert "a-secret-of-ours" not in environment
    assert "DISABLE_TELEMETRY=true" in environment


@needs_weaviate
async def test_one_server_is_shared_and_survives_its_killed_owner(tmp_path: Path) -> None:
    """Shows that commands attach, and that ``kill -9`` of the owner ends the server.

    An attached command restarts it on the same ports, with the same key and data; stopping is final.
    """
    command, pid, is_owner = await start_command(tmp_path)
    assert is_owner
    attached, brief = [await WeaviateServer.start_or_attach(tmp_path) for _ in range(2)]
    assert {(one.pid, one.is_owner) for one in (attached, brief)} == {(pid, False)}
    await brief.stop()
    known, tenant, publication = attached.identity, new_tenant(), uuid4()
    async with connected(attached) as index:
        await index.ensure_tenant(tenant)
        await index.write(tenant, [chunk(publication, 0, "backup")])
        await index.commit_publication(tenant, publication, chunks=1, vectors=0)
        command.kill()
        await command.wait()
        await until(lambda: attached.is_owner and attached.problem is None)
        assert not is_running(pid)
        assert (attached.identity.ports, attached.api_key) == (known.ports, known.api_key)
        assert len(await index.search_keywords(tenant, ["backup"], SearchFilter(), 5)) == 1
        await attached.stop()
        assert not is_running(attached.pid or 0)
        assert not [one for one in asyncio.all_tasks() if one.get_name() == "weaviate-watch"]
        with pytest.raises(IndexUnavailable):
            await index.ping()


@pytest.mark.long
@needs_weaviate
async def test_an_orphan_is_ended_and_a_dead_child_is_restarted(tmp_path: Path) -> None:
    """Shows that a server without an owner does not block the next start.

    The new one takes over its data, ports and key. A killed server is reported and restarted, and its
    callback is called.
    """
    folder = tmp_path / "weaviate"
    folder.mkdir()
    identity = new_identity()
    orphan = await spawn(default_binary(), folder / "data", folder / "log.txt", identity)
    weaviate_server_module.write_identity(folder, identity.of_process(orphan.pid))
    server = await WeaviateServer.start_or_attach(tmp_path)
    assert not is_running(orphan.pid)
    await orphan.wait()
    pid = server.pid
    assert pid not in (None, orphan.pid)
    assert (server.is_owner, server.api_key, server.identity.ports) == (
        True,
        identity.api_key,
        identity.ports,
    )
    async with connected(server) as index:
        server.on_restart = index.note_outage
        os.kill(pid or 0, signal.SIGKILL)
        await until(lambda: server.problem is not None)
        assert f"pid {pid}" in str(server.problem)
        await until(lambda: server.problem is None)
        assert server.pid != pid
        assert index.outages == 1
        await index.ping()
    await server.stop()


async def test_an_unrelated_process_with_a_reused_pid_is_not_killed() -> None:
    """Shows that a pid alone, which the system may have reused, is not enough."""
    stranger = await asyncio.create_subprocess_exec("sleep", "60")
    ours = new_identity().of_process(stranger.pid)
    await end(type(ours)(ours.ports, "", "", stranger.pid, "another birth"), 1)
    assert stranger.returncode is None
    await end(ours, PATIENCE)
    assert await stranger.wait() == -signal.SIGTERM


async def test_a_missing_binary_names_the_setting(tmp_path: Path) -> None:
    """Shows that no lock is left behind."""
    for _ in range(2):
        with pytest.raises(EngineStartError, match="FOOTNOTE_WEAVIATE_BINARY"):
            await WeaviateServer.start_or_attach(tmp_path, tmp_path / "nowhere")


async def test_a_binary_that_exits_at_once_fails_at_once(tmp_path: Path) -> None:
    """Shows that the error names its log."""
    started = time.monotonic()
    with pytest.raises(EngineStartError, match=r"ended with status 1 .* log"):
        await WeaviateServer.start_or_attach(tmp_path, Path("/bin/false"))
    assert time.monotonic() - started < 30
