"""Clients of the fork servers: a running server, and the pool that starts, restarts and closes it."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import os
import signal
import socket
import sys
from collections import deque
from io import BytesIO, FileIO
from typing import Any

from storage.errors import EngineStartError, ReaderKilled

_log = logging.getLogger(__name__)

START_SECONDS = 60
# Ratio of a job's wall-clock timeout to its CPU limit: a busy machine must not fail a file.
TIMEOUT_FACTOR = 3

# A child with a larger result is stopped; 5,000 dense pages take two fifths of it.
#
# The receiver holds it once, and cutting it into chunks takes nine times as much.
MAX_RESULT_BYTES = 256 * 1024 * 1024

# A fork server's whole environment: without ours, it has none of our secrets.
_CHILD_ENV = {
    "PATH": "/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "ORT_DISABLE_TELEMETRY": "1",  # it would start a thread and send data
}


class ForkServerEnded(EngineStartError):
    """Raised if the fork server ended during a job; a new one can be started."""


class ForkServerClient:
    """A running fork server; it ends when this object closes its socket, or this process ends."""

    def __init__(self, process: asyncio.subprocess.Process, control: socket.socket) -> None:
        self._process = process
        self._control = control
        self._numbers = itertools.count(1)
        self._ends: dict[int, asyncio.Future[int]] = {}
        self._ready: asyncio.Future[dict[str, str]] = asyncio.get_running_loop().create_future()
        # Messages that do not fit into the socket buffer yet, with duplicates of their files.
        self._unsent: deque[tuple[bytes, list[int]]] = deque()
        self.is_alive = True
        # Peak memory in bytes of the last child to end; 0 before the first.
        self.peak_memory = 0

    @classmethod
    async def start(cls, kind: str) -> ForkServerClient:
        """Start one of ``fork_server.KINDS``, preloaded and sandboxed.

        Raises:
            EngineStartError: it ended before it was ready, or took longer than a minute.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-I", "-m", "storage.pdf.fork_server", kind, str(theirs.fileno()),
                env=_CHILD_ENV, cwd="/", pass_fds=(theirs.fileno(),), stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
                start_new_session=True,  # keep a terminal's Ctrl-C from it: its owner ends it
            )  # fmt: skip
        ours.setblocking(False)
        server = cls(process, ours)
        asyncio.get_running_loop().add_reader(ours, server._on_message)
        try:
            await asyncio.wait_for(asyncio.shield(server._ready), START_SECONDS)
        except (TimeoutError, ForkServerEnded) as error:
            raise EngineStartError(f"the PDF process did not start: {await server._log_tail()}") from error
        finally:
            if not server._ready.done() or server._ready.exception():
                await server.aclose()
        return server

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def isolation(self) -> dict[str, str]:
        """Confinement of network, files and system calls, see ``sandbox.enter_sandbox``."""
        return self._ready.result()

    def confinement_gaps(self) -> str:
        """Return a sentence that lists what the sandbox does not confine; empty if it is complete."""
        kept = {"network": "open", "files": "readable", "calls": "any"}
        what = {"network": "the network", "files": "this user's files", "calls": "every system call"}
        still = [what[name] for name, state in kept.items() if self.isolation[name] == state]
        return f"the PDF sandbox is incomplete: it still has {', '.join(still)}" if still else ""

    async def run(self, job: dict[str, Any], source: int, passwords: int | None = None) -> bytes:
        """Run a job in a child on the open file ``source``; return its output.

        ``passwords``, an open file too, is read by the child only. The CPU limit is ``job["seconds"]``; on a
        busy machine the job may take up to ``TIMEOUT_FACTOR`` times as long.

        Raises:
            ReaderKilled: the child hit a limit or crashed.
            ForkServerEnded: the fork server ended during the job.
        """
        number, wait = next(self._numbers), TIMEOUT_FACTOR * job["seconds"]
        end = self._ends[number] = asyncio.get_running_loop().create_future()
        result, sink = os.pipe()
        secret = () if passwords is None else (passwords,)
        try:
            with os.fdopen(result, "rb", 0) as written:
                with os.fdopen(sink, "wb", 0):
                    self._send({**job, "number": number}, source, sink, *secret)
                async with asyncio.timeout(wait):
                    data = await _drain(written)
                    status = await end
        except TimeoutError:
            raise ReaderKilled(f"the file took longer than {wait} s; split it or export it again") from None
        finally:
            del self._ends[number]
            if not end.done():  # the child is still running, and its result is not needed
                end.cancel()
                if self.is_alive:
                    self._send({"do": "stop", "number": number})
        _raise_for_status(status, job["seconds"])
        return data

    def _send(self, message: dict[str, Any], *files: int) -> None:
        """Send a message, or queue it until the socket has room."""
        # Duplicates, because the caller may close its files before a queued message is sent.
        self._unsent.append((json.dumps(message).encode(), [os.dup(file) for file in files]))
        self._send_waiting()

    def _send_waiting(self) -> None:
        loop = asyncio.get_running_loop()
        while self._unsent:
            message, files = self._unsent[0]
            try:
                socket.send_fds(self._control, [message], files)
            except BlockingIOError:  # backpressure: jobs arrive faster than it forks
                loop.add_writer(self._control, self._send_waiting)
                return
            except OSError:
                self._end()
                return
            self._unsent.popleft()
            _close(files)
        loop.remove_writer(self._control)

    def _on_message(self) -> None:
        try:
            message = self._control.recv(4096)
        except BlockingIOError:
            return
        except OSError:
            message = b""
        if not message:
            self._end()
            return
        event = json.loads(message)
        if "ready" in event:
            self._ready.set_result(event["ready"])
            return
        self.peak_memory = event["peak"]
        if (end := self._ends.get(event["ended"])) and not end.done():
            end.set_result(event["status"])

    def _end(self) -> None:
        self.is_alive = False
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._control)
        loop.remove_writer(self._control)
        while self._unsent:  # no child will close the pipes of unsent jobs
            _close(self._unsent.popleft()[1])
        futures: list[asyncio.Future[Any]] = [self._ready, *self._ends.values()]
        for waiting in futures:
            if not waiting.done():
                waiting.set_exception(ForkServerEnded("the PDF process has ended; it is started again"))
                waiting.exception()  # mark as retrieved: the waiting task may have been cancelled

    async def _log_tail(self) -> str:
        """Return the last line of its stderr, usually the name of what is missing."""
        if self._process.stderr is None or self.is_alive:
            return f"not ready after {START_SECONDS} s"
        lines = (await self._process.stderr.read()).decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else "no error output"

    async def aclose(self) -> None:
        """Kill it, and with it its children."""
        if self.is_alive:
            self._end()
        self._control.close()
        if self._process.returncode is None:
            self._process.kill()
        await self._process.communicate()


def _close(files: list[int]) -> None:
    for file in files:
        os.close(file)


async def _drain(written: FileIO) -> bytes:
    """Return everything that a child writes until it closes the pipe."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=1 << 20)
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), written)
    data = BytesIO()  # its value, unlike a bytearray's, is returned without a copy
    try:
        while piece := await reader.read(1 << 20):
            data.write(piece)
            if data.tell() > MAX_RESULT_BYTES:
                raise ReaderKilled("the file has too much text; split it")
    finally:
        transport.close()
    return data.getvalue()


def _raise_for_status(status: int, seconds: int) -> None:
    """Raise the error for a child's exit status.

    Raises:
        ReaderKilled: unless ``status`` is 0.
    """
    if status == 0:
        return
    ended_by = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
    if ended_by == signal.SIGKILL:
        raise ReaderKilled("the reader was killed, probably out of memory; free some memory")
    if ended_by == signal.SIGXCPU:
        raise ReaderKilled(f"the file took more than {seconds} s of computing; split it or export it again")
    raise ReaderKilled("the reader crashed on this file; export the PDF again")


class ForkServerPool:
    """Starts the fork server of a kind on first use, and restarts it whenever it has ended.

    Args:
        kind: a key of ``storage.pdf.fork_server.KINDS``.
        idle_seconds: idle timeout after which it is closed; None: never.
        is_confinement_required: refuse to start one whose sandbox is incomplete.
    """

    def __init__(
        self, kind: str, *, idle_seconds: float | None = None, is_confinement_required: bool = False
    ) -> None:
        self._kind = kind
        self._idle_seconds = idle_seconds
        self._is_confinement_required = is_confinement_required
        self._starting = asyncio.Lock()
        self._server: ForkServerClient | None = None
        self._jobs = 0
        self._timer: asyncio.TimerHandle | None = None
        self._closing: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int | None:
        """Process id of the fork server, None if it is not running."""
        return self._server.pid if self._server else None

    def confinement_gaps(self) -> str:
        """Return a sentence that lists what the sandbox does not confine; empty if it is complete."""
        return self._server.confinement_gaps() if self._server else ""

    @property
    def peak_memory(self) -> int:
        """Peak memory in bytes of the last child to end; 0 without a fork server."""
        return self._server.peak_memory if self._server else 0

    async def start(self) -> None:
        """Start the fork server unless it is running.

        Raises:
            EngineStartError: it cannot be started; the message says why.
        """
        await self._ensure_running()

    async def run(self, job: dict[str, Any], source: int, passwords: int | None = None) -> bytes:
        """Run a job with open files, retrying once if the fork server ended: that is not the file's fault.

        Raises:
            ReaderKilled: the child hit a limit or crashed.
            EngineStartError: the fork server cannot be started, or ended twice.
        """
        self._jobs += 1
        try:
            try:
                return await (await self._ensure_running()).run(job, source, passwords)
            except ForkServerEnded:
                _log.warning("PDF fork server exited; restarting")
                os.lseek(source, 0, os.SEEK_SET)
                return await (await self._ensure_running()).run(job, source, passwords)
        finally:
            self._jobs -= 1
            if self._timer:
                self._timer.cancel()
            if self._idle_seconds is not None and not self._jobs:
                self._timer = asyncio.get_running_loop().call_later(self._idle_seconds, self._on_idle)

    async def _ensure_running(self) -> ForkServerClient:
        async with self._starting:
            if self._server and self._server.is_alive:
                return self._server
            if self._server:
                await self._server.aclose()
            self._server = await ForkServerClient.start(self._kind)
            if lacking := self._server.confinement_gaps():
                if self._is_confinement_required:
                    await self._server.aclose()
                    self._server = None
                    raise EngineStartError(f"FOOTNOTE_CONFINEMENT=required, and {lacking}")
                _log.warning("%s: run it on x86_64 or aarch64 with Linux 5.13 or newer", lacking)
            return self._server

    def _on_idle(self) -> None:
        if not self._jobs:
            self._closing = asyncio.create_task(self._close_if_idle())

    async def _close_if_idle(self) -> None:
        async with self._starting:
            if self._server and not self._jobs:
                await self._server.aclose()
                self._server = None

    async def aclose(self) -> None:
        """End the fork server and all children."""
        if self._timer:
            self._timer.cancel()
        if self._closing:
            await self._closing
        async with self._starting:
            if self._server:
                await self._server.aclose()
            self._server = None
