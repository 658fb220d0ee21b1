"""Probe: 1,100 incomplete requests to a ``serve`` limited to 1,024 open files block no other request.

Run alone: ``make test-all TESTS=tests/security/test_half_requests.py``.
"""

from __future__ import annotations

import asyncio
import resource
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from harness.program import Program
from harness.waiting import until

from bot.web.connections import ConnectionLimits

SOCKETS = 1100
HANDLES = 1024
SECONDS_TO_ANSWER = 2
LINES_PER_SECOND = 150


@asynccontextmanager
async def half_requests(program: Program) -> AsyncIterator[list[asyncio.StreamReader]]:
    """Open SOCKETS sockets with a partial header each, from ten addresses of this machine."""
    opened = []
    for number in range(SOCKETS):
        address = f"127.0.0.{number % 10 + 2}"
        opened.append(await asyncio.open_connection("127.0.0.1", program.port, local_addr=(address, 0)))
        opened[-1][1].write(b"GET /v/half HTTP/1.1\r\nHost: a\r\nX-Half")
    try:
        yield [reader for reader, _ in opened]
    finally:
        for _, writer in opened:
            writer.close()


@pytest.mark.long
async def test_incomplete_requests_block_no_other_request(tmp_path: Path) -> None:
    """Other requests are answered at once, also on new connections; the log stays short; all are closed."""
    ours, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(ours, SOCKETS + 500), most))
    program = Program(tmp_path / "home")
    async with program.serving() as process:
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (HANDLES, HANDLES))
        lines = program.log.count("\n")
        started = time.monotonic()
        async with half_requests(program) as readers:
            for _ in range(20):
                await require_answers(program)
            await until(lambda: all_ended(readers), seconds=ConnectionLimits(1, 1).head_seconds + 10)
        taken = time.monotonic() - started
        print(f"{SOCKETS} half requests: all closed after {taken:.1f} s")
        assert (program.log.count("\n") - lines) / taken < LINES_PER_SECOND
        assert "out of system resource" not in program.log


async def all_ended(readers: list[asyncio.StreamReader]) -> bool:
    """True if the server has closed all of them."""
    return all(one.at_eof() or one.exception() for one in readers)


async def require_answers(program: Program) -> None:
    """Require an answer to a new connection in time."""
    asked = time.monotonic()
    async with aiohttp.ClientSession() as session, session.get(f"{program.url}/healthz") as response:
        assert response.status == 200
    assert time.monotonic() - asked < SECONDS_TO_ANSWER
    await asyncio.sleep(0.1)
