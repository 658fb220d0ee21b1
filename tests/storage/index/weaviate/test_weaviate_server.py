"""Weaviate as our own child: who starts it, who may use it, and when it ends."""

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
from harness.waiting import PATIENCE
from samples.indexes import chunk, new_tenant

from storage.errors import EngineStartError, IndexUnavailable
from storage.index.base import Filters
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


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[WeaviateServer]:
    """The server of a home of its own."""
    started = await WeaviateServer.start_or_attach(tmp_path)
    yield started
    await started.stop()


@asynccontextmanager
async def connected(server: WeaviateServer) -> AsyncIterator[WeaviateIndex]:
    """An index on it."""
    index = await WeaviateIndex.connect(server.url, server.api_key, server.grpc_port, 5)
    try:
        yield index
    finally:
        await index.aclose()


async def start_command(home: Path) -> tuple[asyncio.subprocess.Process, int, bool]:
    """Another command on the same home: its process, the server's, and whether it owns it."""
    command = await asyncio.create_subprocess_exec(
        sys.executable, "-c", COMMAND, str(home), stdout=asyncio.subprocess.PIPE
    )
    assert command.stdout is not None
    pid, is_owner = (await command.stdout.readline()).decode().split()
    return command, int(pid), is_owner == "True"


async def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds that nobody tells us of."""
    async with asyncio.timeout(PATIENCE):
        while not holds():
            await asyncio.sleep(0.02)


def is_running(pid: int) -> bool:
    """Whether a process runs; one that only waits to be collected does not."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] not in "ZX"


def status_of(port: int, path: str, authorization: str | None) -> int:
    """The HTTP status of a GET."""
    connection = http.client.HTTPConnection(HOST, port, timeout=5)
    connection.request("GET", path, headers={"Authorization": authorization} if authorization else {})
    status = connection.getresponse().status
    connection.close()
    return status


async def grpc_refusal(port: int, key: str | None) -> str:
    """What the gRPC port says to a search that names no collection."""
    metadata = (("authorization", f"Bearer {key}"),) if key else ()
    async with grpc.aio.insecure_channel(f"{HOST}:{port}") as channel:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await channel.unary_unary("/weaviate.v1.Weaviate/Search")(b"", metadata=metadata, timeout=5)
    return refused.value.details() or ""


def listeners(port: int) -> set[str]:
    """The addresses, as the kernel writes them, on which something listens at a port."""
    lines = [
        line.split()
        for table in ("tcp", "tcp6")
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]
    ]
    return {line[1].split(":")[0] for line in lines if line[3] == "0A" and line[1].endswith(f":{port:04X}")}


def environment_of(pid: int | None) -> str:
    """What a process was told."""
    return Path(f"/proc/{pid}/environ").read_text()


@needs_weaviate
async def test_every_port_wants_its_credentials(server: WeaviateServer) -> None:
    """Shows REST and gRPC refused without the key and the cluster's data port without its password."""
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
async def test_what_can_listen_on_loopback_only_does(server: WeaviateServer) -> None:
    """Shows REST, gossip and Raft on 127.0.0.1; gRPC and cluster data are known to bind everywhere."""
    ports = server.identity.ports
    for port in (ports.rest, ports.gossip, ports.raft, ports.raft_rpc):
        assert listeners(port) == {"0100007F"}
    assert listeners(6060) == listeners(2112) == set()


@needs_weaviate
async def test_the_state_file_is_for_this_user_alone(server: WeaviateServer, tmp_path: Path) -> None:
    """Shows the key, port and pid kept with mode 0600 in a folder with mode 0700."""
    folder = tmp_path / "weaviate"
    assert (folder / "server.json").stat().st_mode & 0o777 == 0o600
    assert (folder / "log.txt").stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700
    assert weaviate_server_module.read_identity(folder) == server.identity


@needs_weaviate
async def test_the_child_gets_none_of_our_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that its environment is made for it alone."""
    monkeypatch.setenv("OPENAI_API_KEY", "a-secret-of-ours")
    server = await WeaviateServer.start_or_attach(tmp_path)
    environment = environment_of(server.pid)
    await server.stop()
    assert "a-secret-of-ours" not in environment
    assert "DISABLE_TELEMETRY=true" in environment


@needs_weaviate
async def test_a_second_command_attaches_and_data_outlives_a_restart(tmp_path: Path) -> None:
    """Shows one server for two commands, the same ports and key next time, and nothing lost."""
    first, tenant = await WeaviateServer.start_or_attach(tmp_path), new_tenant()
    async with connected(first) as index:
        await index.ensure_tenant(tenant)
        await index.write(tenant, [chunk(uuid4(), 0, "backup")])
        command, pid, is_owner = await start_command(tmp_path)
        assert (pid, is_owner) == (first.pid, False)
        command.kill()
        await command.wait()
        await index.ping()
    await first.stop()
    assert not is_running(pid)
    second = await WeaviateServer.start_or_attach(tmp_path)
    assert (second.url, second.grpc_port, second.api_key) == (first.url, first.grpc_port, first.api_key)
    async with connected(second) as index:
        assert len(await index.find_by_words(tenant, ["backup"], Filters(), 5)) == 1
    await second.stop()


@needs_weaviate
async def test_the_child_dies_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    """Shows that ``kill -9`` of the parent ends the server, and that the next start works."""
    command, pid, is_owner = await start_command(tmp_path)
    assert is_owner
    command.kill()
    await command.wait()
    await until(lambda: not is_running(pid))
    server = await WeaviateServer.start_or_attach(tmp_path)
    assert server.is_owner
    await server.stop()


@needs_weaviate
async def test_an_attached_command_takes_over_when_the_owner_ends(tmp_path: Path) -> None:
    """Shows that a service attached to a short command's server has its own after that command."""
    owner = await WeaviateServer.start_or_attach(tmp_path)
    attached = await WeaviateServer.start_or_attach(tmp_path)
    assert (owner.is_owner, attached.is_owner) == (True, False)
    async with connected(attached) as index:
        await owner.stop()
        await until(lambda: attached.is_owner and attached.problem is None)
        await index.ping()
    await attached.stop()


@needs_weaviate
async def test_a_child_that_dies_under_us_is_reported_and_comes_back(server: WeaviateServer) -> None:
    """Shows that a killed server is named as the problem, is back on the same ports, and that we are told."""
    pid = server.pid
    assert pid is not None
    async with connected(server) as index:
        server.on_return = index.note_outage
        os.kill(pid, signal.SIGKILL)
        await until(lambda: server.problem is not None)
        assert f"process {pid}" in str(server.problem)
        await until(lambda: server.problem is None)
        assert server.pid != pid
        assert index.outages == 1
        await index.ping()


@needs_weaviate
async def test_an_orphan_is_ended_and_its_data_taken_over(tmp_path: Path) -> None:
    """Shows that a server whose owner is gone does not block the next start."""
    folder = tmp_path / "weaviate"
    folder.mkdir()
    identity = new_identity()
    orphan = await spawn(default_binary(), folder / "data", folder / "log.txt", identity)
    weaviate_server_module.write_identity(folder, identity.of_process(orphan.pid))
    server = await WeaviateServer.start_or_attach(tmp_path)
    assert not is_running(orphan.pid)
    assert (server.is_owner, server.api_key, server.pid != orphan.pid) == (True, identity.api_key, True)
    await orphan.wait()
    await server.stop()


async def test_a_stranger_with_the_orphans_pid_is_left_alone() -> None:
    """Shows that a pid alone, which the system may have given to somebody else, ends nothing."""
    stranger = await asyncio.create_subprocess_exec("sleep", "60")
    ours = new_identity().of_process(stranger.pid)
    await end(type(ours)(ours.ports, "", "", stranger.pid, "another birth"), 1)
    assert stranger.returncode is None
    await end(ours, 5)
    assert await stranger.wait() == -signal.SIGTERM


async def test_a_missing_binary_says_what_to_do(tmp_path: Path) -> None:
    """Shows the sentence that names the command, and that no lock is kept."""
    for _ in range(2):
        with pytest.raises(EngineStartError, match="FOOTNOTE_WEAVIATE_BINARY"):
            await WeaviateServer.start_or_attach(tmp_path, tmp_path / "nowhere")


async def test_a_binary_that_ends_at_once_says_so_at_once(tmp_path: Path) -> None:
    """Shows that a server that cannot start is not waited for, and that its log is named."""
    started = time.monotonic()
    with pytest.raises(EngineStartError, match=r"ended with status 1 .* log"):
        await WeaviateServer.start_or_attach(tmp_path, Path("/bin/false"))
    assert time.monotonic() - started < 30


@needs_weaviate
async def test_a_stopped_server_stays_stopped(tmp_path: Path) -> None:
    """Shows that stopping is final, and that an index on it says so."""
    server = await WeaviateServer.start_or_attach(tmp_path)
    async with connected(server) as index:
        await server.stop()
        await asyncio.sleep(1)
        assert not is_running(server.pid or 0)
        with pytest.raises(IndexUnavailable):
            await index.ping()
