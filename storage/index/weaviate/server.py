"""Weaviate as a child process: the holder of the home's lock starts it, other commands attach to it.

Used for ``WEAVIATE_URL=embedded``. The child dies with its parent. It is restarted when it dies, and when its
owner ends, an attached command takes over.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import logging
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from storage.errors import EngineStartError
from storage.index.weaviate.process import (
    ServerIdentity,
    ServerPorts,
    end,
    is_ready,
    new_identity,
    on_free_ports,
    require_binary,
    spawn,
)
from storage.task_group import cancel_and_wait, doubled, retry

START_SECONDS = 60.0
STOP_SECONDS = 60.0
CHECK_SECONDS = 0.2
# After a longer life the child is restarted at once, otherwise with exponential backoff.
STEADY_SECONDS = 60.0
MAX_BACKOFF_SECONDS = 60.0

_log = logging.getLogger(__name__)


class WeaviateServer:
    """The server of a home, owned or attached to; created by ``start_or_attach``."""

    def __init__(self, home: Path, binary: Path | None) -> None:
        self._folder = home.absolute() / "weaviate"
        self._binary = binary
        self._identity: ServerIdentity | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._lock: int | None = None
        self._watching: asyncio.Task[None] | None = None
        # Reason why the server is down, a sentence for an admin; None if it is up.
        self.problem: str | None = None
        # Called each time the server is up again after it died.
        self.on_restart: Callable[[], None] | None = None

    @classmethod
    async def start_or_attach(cls, home: Path, binary: Path | None = None) -> WeaviateServer:
        """Start the home's server, or attach to another command's; it is ready on return.

        Call this from the main thread: on Linux the child dies with the thread that started it.

        Raises:
            EngineStartError: the binary is missing, the server ended, or was not ready within a minute.
        """
        server = cls(home, binary)
        try:
            await server._begin()
        except BaseException:
            await server.stop()
            raise
        server._watching = asyncio.create_task(server._watch(), name="weaviate-watch")
        return server

    @property
    def url(self) -> str:
        """Base URL of the REST port."""
        return self.identity.url

    @property
    def grpc_port(self) -> int:
        """gRPC port."""
        return self.identity.ports.grpc

    @property
    def api_key(self) -> str:
        """API key for both ports."""
        return self.identity.api_key

    @property
    def pid(self) -> int | None:
        """Process id of the server."""
        return self.identity.pid

    @property
    def is_owner(self) -> bool:
        """True if the server is our own child."""
        return self._lock is not None

    async def stop(self) -> None:
        """Stop our own child in order, or detach from another command's."""
        if self._watching:
            await cancel_and_wait(self._watching)
        if self._process:
            await _stop(self._process)
        if self._lock is not None:
            os.close(self._lock)
        self._process = self._lock = None

    @property
    def identity(self) -> ServerIdentity:
        """Ports, keys and process of the server.

        Raises:
            EngineStartError: it was never started.
        """
        if self._identity is None:
            raise EngineStartError("Weaviate was not started")
        return self._identity

    async def _begin(self) -> None:
        """Start the server if it has no owner, else wait until its owner has it ready."""
        try:
            async with asyncio.timeout(START_SECONDS):
                while not self._acquire_lock():
                    if await self._attach():
                        return
                    await asyncio.sleep(CHECK_SECONDS)
        except TimeoutError:
            raise EngineStartError(
                f"another command starts the Weaviate of {self._folder}, and it is not ready after "
                f"{START_SECONDS:g} s; {self._log_tail()}"
            ) from None
        await self._start()

    async def _attach(self) -> bool:
        identity = read_identity(self._folder)
        if identity is None or not identity.is_alive() or not await is_ready(identity.ports):
            return False
        self._identity = identity
        return True

    async def _start(self) -> None:
        """Start the child with the previous ports and keys, after ending an orphaned one."""
        binary = require_binary(self._binary)
        known = read_identity(self._folder) or new_identity()
        await end(known, STOP_SECONDS)
        if self._identity is None:
            known = on_free_ports(known)  # later the ports must not change: clients know them
        self._process = await spawn(binary, self._folder / "data", self._folder / "log.txt", known)
        self._identity = known.of_process(self._process.pid)
        write_identity(self._folder, self._identity)
        await self._wait_until_ready(self._process, self._identity.ports)

    async def _wait_until_ready(self, process: asyncio.subprocess.Process, ports: ServerPorts) -> None:
        try:
            async with asyncio.timeout(START_SECONDS):
                while not await is_ready(ports):
                    if process.returncode is not None:
                        raise EngineStartError(
                            f"Weaviate ended with status {process.returncode} while it started; "
                            f"{self._log_tail()}"
                        )
                    await asyncio.sleep(CHECK_SECONDS)
        except TimeoutError:
            await _stop(process)
            raise EngineStartError(
                f"Weaviate was not ready after {START_SECONDS:g} s; {self._log_tail()}"
            ) from None

    async def _watch(self) -> None:
        """Restart the server whenever it ends, recording the problem; runs until cancelled."""
        rest = 0.0
        while True:
            since = time.monotonic()
            if self._process:
                await self._process.wait()
            while self.identity.is_alive():  # noqa: ASYNC110 - no event reports its end
                await asyncio.sleep(CHECK_SECONDS)
            rest = (
                0.0
                if time.monotonic() - since > STEADY_SECONDS
                else min(max(1.0, 2 * rest), MAX_BACKOFF_SECONDS)
            )
            self.problem = f"Weaviate (pid {self.pid}) exited unexpectedly; {self._log_tail()}"
            _log.error("%s; restarting in %g s", self.problem, rest)
            await asyncio.sleep(rest)
            await self._begin_again()

    async def _begin_again(self) -> None:
        def pause(error: Exception, tries: int) -> float | None:
            if not isinstance(error, EngineStartError):
                return None
            self.problem, rest = str(error), doubled(tries, MAX_BACKOFF_SECONDS)
            _log.error("%s; trying again in %g s", error, rest)
            return rest

        await retry(self._begin, pause)
        self.problem = None
        _log.info("Weaviate restarted, pid %s", self.pid)
        if self.on_restart:
            self.on_restart()

    def _acquire_lock(self) -> bool:
        """Become the owner unless there is one; the kernel releases the lock when its holder dies."""
        if self._lock is not None:
            return True
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            return False
        self._lock = descriptor
        return True

    def _log_tail(self) -> str:
        """Return the path of the server's log and its last message."""
        log = self._folder / "log.txt"
        with suppress(OSError):
            for line in log.read_text(encoding="utf-8", errors="replace").splitlines()[-1:]:
                return f"its log {log} ends with: {_message_of(line)}"
        return f"its log {log} is empty"


def _message_of(line: str) -> str:
    """Return the message of a log line, which is JSON unless the server crashed."""
    try:
        return str(json.loads(line)["msg"])
    except (ValueError, TypeError, KeyError):
        return line[:200]


async def _stop(process: asyncio.subprocess.Process) -> None:
    """Stop the child with SIGTERM, then SIGKILL after a timeout."""
    if process.returncode is not None:
        return
    process.terminate()
    try:
        await asyncio.wait_for(process.wait(), STOP_SECONDS)
    except TimeoutError:
        process.kill()
        await process.wait()


def read_identity(folder: Path) -> ServerIdentity | None:
    """Return the identity that the last start stored in the folder; None if there is no valid one."""
    with suppress(OSError, ValueError, TypeError, KeyError):
        kept = json.loads((folder / "server.json").read_text(encoding="utf-8"))
        return ServerIdentity(**{**kept, "ports": ServerPorts(**kept["ports"])})
    return None


def write_identity(folder: Path, identity: ServerIdentity) -> None:
    """Store the identity for other commands of this user only."""
    draft = folder / "server.json.new"
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(asdict(identity), file)
    # Atomic, so that readers see a complete file.
    draft.replace(folder / "server.json")
