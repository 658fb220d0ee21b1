"""The Weaviate child as an operating system process: ports, environment, start, identity."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import socket
import sys
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from storage.errors import EngineStartError, docs_url

# Single source of the version: deploy/weaviate.sh reads this line.
WEAVIATE_VERSION = "1.38.11"

HOST = "127.0.0.1"
# Raft stores the node name in the data folder: under another name the node would try to join for ever.
NODE = "footnote"
_LAUNCHER = Path(__file__).with_name("launch.py")
_MIN_MEMORY = 1 << 30


def default_binary() -> Path:
    """Return the path to which `make weaviate` in a checkout builds the server."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "footnote" / f"weaviate-{WEAVIATE_VERSION}" / "weaviate-server"


def require_binary(binary: Path | None) -> Path:
    """Return the server binary.

    Raises:
        EngineStartError: it is missing; the message says how to get it.
    """
    chosen = (binary or default_binary()).expanduser().absolute()
    if not os.access(chosen, os.X_OK):
        raise EngineStartError(
            f"there is no Weaviate server at {chosen}: set FOOTNOTE_WEAVIATE_BINARY to one, or WEAVIATE_URL "
            f"to a running server, or unset it for the embedded index; more: {docs_url('weaviate.md')}"
        )
    return chosen


@dataclass(frozen=True, slots=True)
class ServerPorts:
    """Ports of the child. The cluster's data port and gRPC listen on every interface."""

    rest: int
    grpc: int
    gossip: int
    data: int
    raft: int
    raft_rpc: int


@dataclass(frozen=True, slots=True)
class ServerIdentity:
    """Ports, credentials and process of the child, shared by a home's commands; stored with mode 0600."""

    ports: ServerPorts
    api_key: str
    cluster_password: str
    pid: int | None = None
    # Start time of the process in kernel ticks: the pid alone may have been reused.
    born: str | None = None

    @property
    def url(self) -> str:
        """Base URL of the REST port."""
        return f"http://{HOST}:{self.ports.rest}"

    def of_process(self, pid: int) -> ServerIdentity:
        """Return the identity with ``pid`` as its process."""
        return replace(self, pid=pid, born=process_start_time(pid))

    def is_alive(self) -> bool:
        """True if the process of this identity is still running."""
        return self.pid is not None and self.born is not None and process_start_time(self.pid) == self.born


def new_identity() -> ServerIdentity:
    """Return an identity with random credentials and free ports."""
    return ServerIdentity(free_ports(), secrets.token_urlsafe(32), secrets.token_urlsafe(32))


def on_free_ports(identity: ServerIdentity) -> ServerIdentity:
    """Return the identity, with new ports if one of its ports was taken."""
    return identity if are_free(identity.ports) else replace(identity, ports=free_ports())


def free_ports() -> ServerPorts:
    """Return six free ports."""
    # All sockets stay bound until every port is chosen, so that no port is chosen twice.
    with ExitStack() as held:
        gossip, data = _hold_neighbours(held)
        raft, raft_rpc = _hold_neighbours(held)
        return ServerPorts(_hold(held, 0), _hold(held, 0), gossip, data, raft, raft_rpc)


def _hold_neighbours(held: ExitStack) -> tuple[int, int]:
    """Bind two consecutive ports, as Weaviate expects for its cluster."""
    while True:
        first = _hold(held, 0)
        with suppress(OSError, OverflowError):
            return first, _hold(held, first + 1)


def are_free(ports: ServerPorts) -> bool:
    """True if all ports can be bound."""
    with ExitStack() as held:
        try:
            for port in asdict(ports).values():
                _hold(held, port)
        except OSError:
            return False
    return True


def _hold(held: ExitStack, port: int) -> int:
    """Bind a TCP port until ``held`` exits; raises OSError if it is taken."""
    holder = held.enter_context(socket.socket())
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind((HOST, port))
    bound: int = holder.getsockname()[1]
    return bound


def process_start_time(pid: int) -> str | None:
    """Return a process's start time, unique among all processes of this pid; None if it has ended."""
    with suppress(OSError):
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        state, *fields = status.rpartition(")")[2].split()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return None if state in ("Z", "X") else f"{boot} {fields[18]}"
    return _start_time_by_ps(pid) if sys.platform != "linux" else None


def _start_time_by_ps(pid: int) -> str | None:
    with os.popen(f"ps -o lstart= -p {int(pid)}") as listed:  # noqa: S605 - an integer only
        return listed.read().strip() or None


async def spawn(binary: Path, data: Path, log: Path, identity: ServerIdentity) -> asyncio.subprocess.Process:
    """Start the server, with its output in ``log``.

    Call this from the main thread: on Linux the child dies with the thread that started it.

    Raises:
        EngineStartError: the operating system refuses to run it.
    """
    os.makedirs(data, mode=0o700, exist_ok=True)
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    server = [str(binary), "--host", HOST, "--port", str(identity.ports.rest), "--scheme", "http"]
    try:
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-IS",
            str(_LAUNCHER),
            str(os.getpid()),
            *server,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=descriptor,
            stderr=descriptor,
            env=environment(data, identity),
            cwd=data,
            start_new_session=True,  # keep Ctrl-C from the child; we stop it in order
        )
    except OSError as error:
        raise EngineStartError(f"Weaviate could not be started: {error}") from error
    finally:
        os.close(descriptor)


def environment(data: Path, identity: ServerIdentity) -> dict[str, str]:
    """Return the child's whole environment; our own, which holds secrets, is not inherited."""
    ports = identity.ports
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(data),
        "PERSISTENCE_DATA_PATH": str(data),
        "GRPC_PORT": str(ports.grpc),
        "CLUSTER_HOSTNAME": NODE,
        "CLUSTER_IN_LOCALHOST": "true",
        "CLUSTER_ADVERTISE_ADDR": HOST,
        "CLUSTER_BIND_ADDR": HOST,
        "CLUSTER_GOSSIP_BIND_PORT": str(ports.gossip),
        "CLUSTER_DATA_BIND_PORT": str(ports.data),
        "CLUSTER_BASIC_AUTH_USERNAME": NODE,
        "CLUSTER_BASIC_AUTH_PASSWORD": identity.cluster_password,
        "RAFT_PORT": str(ports.raft),
        "RAFT_INTERNAL_RPC_PORT": str(ports.raft_rpc),
        "RAFT_BOOTSTRAP_EXPECT": "1",
        "RAFT_TIMEOUTS_MULTIPLIER": "1",  # one node elects itself: ready in 2 s instead of 8
        "AUTHENTICATION_ANONYMOUS_ACCESS_ENABLED": "false",
        "AUTHENTICATION_APIKEY_ENABLED": "true",
        "AUTHENTICATION_APIKEY_ALLOWED_KEYS": identity.api_key,
        "AUTHENTICATION_APIKEY_USERS": NODE,
        "AUTOSCHEMA_ENABLED": "false",
        "ENABLE_MODULES": "",
        "DEFAULT_VECTORIZER_MODULE": "none",
        "DISABLE_TELEMETRY": "true",
        "GO_PROFILING_DISABLE": "true",
        "GOMEMLIMIT": str(memory_limit()),
        "LOG_LEVEL": "warning",
    }


def memory_limit() -> int:
    """Return a quarter of the machine's memory in bytes, at least 1 GiB; Weaviate collects harder near it."""
    return max(_MIN_MEMORY, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4)


async def end(identity: ServerIdentity, timeout_seconds: float) -> None:
    """End the identity's process: SIGTERM first, then SIGKILL. No effect if the pid was reused."""
    for sent in (signal.SIGTERM, signal.SIGKILL):
        if not identity.is_alive() or identity.pid is None:
            return
        with suppress(ProcessLookupError):
            os.kill(identity.pid, sent)
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_seconds):
                while identity.is_alive():  # noqa: ASYNC110 - no event reports its end
                    await asyncio.sleep(0.05)


async def is_ready(ports: ServerPorts) -> bool:
    """True if the server accepts requests on REST and gRPC."""
    try:
        async with asyncio.timeout(2):
            return await _get_status(ports.rest) == 200 and await _is_open(ports.grpc)
    except (OSError, TimeoutError, ValueError):
        return False


async def _get_status(port: int) -> int:
    reader, writer = await asyncio.open_connection(HOST, port)
    try:
        writer.write(b"GET /v1/.well-known/ready HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n")
        await writer.drain()
        return int((await reader.readline()).split(b" ")[1])
    finally:
        writer.close()


async def _is_open(port: int) -> bool:
    _, writer = await asyncio.open_connection(HOST, port)
    writer.close()
    return True
