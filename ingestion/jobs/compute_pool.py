"""Pool of side processes for the CPU-bound part of reading, so that no question waits for it.

Because of the GIL, a service that chunks and analyses in its own threads answers questions several times
slower while it does so."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from storage import errors
from storage.errors import DocumentError, EngineStartError, ReaderKilled
from storage.pdf.protocol import READY

MAX_ANSWER_BYTES = 256 * 1024 * 1024
# Timeout of a job; a dense document of 5,000 pages takes a twentieth of it.
JOB_TIMEOUT_SECONDS = 900

START_SECONDS = 60

# Bytes per write: what a pipe cannot take at once is buffered, and copied again and again.
WRITE_BYTES = 1 << 20

PROGRAM = "ingestion.compute_program"

_FAULT = "An internal error occurred while reading this file ({})."
# Environment of a side process: it gets none of our secrets.
_INHERITED_VARIABLES = ("PATH", "LANG", "TMPDIR")


class ComputePool:
    """Pool of at most ``most`` side processes, started on demand; each runs one job at a time."""

    def __init__(self, most: int, program: str = PROGRAM) -> None:
        self._program = program
        self._turns = asyncio.Semaphore(most)
        self._idle: list[asyncio.subprocess.Process] = []

    async def run(self, job: dict[str, Any], *data: bytes) -> Any:
        """Run a job of ``compute_program.py``, which gets the joined ``data``; return its result.

        Raises:
            StorageError: raised by the job.
            ReaderKilled: the process died, or the job timed out.
            EngineStartError: a side process cannot be started.
        """
        async with self._turns:
            process = self._idle.pop() if self._idle else await _start(self._program)
            try:
                async with asyncio.timeout(JOB_TIMEOUT_SECONDS):
                    reply = await _ask(process, {**job, "bytes": sum(map(len, data))}, data)
            except TimeoutError:
                await _end(process)
                raise ReaderKilled("chunking the file takes too long; split it") from None
            except BaseException:
                await _end(process)
                raise
            self._idle.append(process)
        if "error" in reply:
            raise getattr(errors, reply["error"])(reply["message"])
        if "fault" in reply:
            raise DocumentError(_FAULT.format(reply["fault"]))
        return reply["done"]

    async def aclose(self) -> None:
        """End the idle processes; a later job starts new ones."""
        while self._idle:
            await _end(self._idle.pop())


async def _start(program: str) -> asyncio.subprocess.Process:
    environment = {name: os.environ[name] for name in _INHERITED_VARIABLES if name in os.environ}
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-I", "-m", program, str(os.getpid()),
            env=environment, limit=MAX_ANSWER_BYTES,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for the parent, which ends this process
        )  # fmt: skip
    except OSError as error:
        raise EngineStartError(f"a process for reading cannot be started: {error.strerror}") from error
    try:
        async with asyncio.timeout(START_SECONDS):
            is_ready = process.stdout is not None and await process.stdout.readline() == READY
    except TimeoutError:
        is_ready = False
    except BaseException:
        await _end(process)
        raise
    if not is_ready:
        await _end(process)
        raise EngineStartError("a process for reading did not start; the lines above in the log say why")
    return process


async def _ask(
    process: asyncio.subprocess.Process, job: dict[str, Any], data: Sequence[bytes]
) -> dict[str, Any]:
    if process.stdin is None or process.stdout is None:
        raise EngineStartError("a process for reading was started without its pipes")
    with suppress(ConnectionError):  # the process died: the empty answer shows it
        for part in (json.dumps(job).encode() + b"\n", *data):
            for start in range(0, len(part), WRITE_BYTES):
                process.stdin.write(memoryview(part)[start : start + WRITE_BYTES])
                await process.stdin.drain()
    line = await process.stdout.readline()
    if not line:
        raise ReaderKilled("the reader was killed, probably out of memory; free some memory")
    reply: dict[str, Any] = json.loads(line)
    return reply


async def _end(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):
        process.kill()
    await process.communicate()
