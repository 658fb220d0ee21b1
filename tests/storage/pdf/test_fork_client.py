"""Lifetime of a fork server."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
from pathlib import Path

import pytest

from storage.errors import ReaderKilled
from storage.pdf import protocol
from storage.pdf.fork_client import ForkServerClient, ForkServerPool
from storage.task_group import cancel_and_wait

JOB = {"do": "render", "page": 1, "dpi": 72, "memory": 400 * 1024 * 1024, "seconds": 5}
# The child ends at once with an error that says why.
STARVED = {**JOB, "memory": 1}


async def test_a_program_starts_lazily_and_is_closed_when_idle(pdfs: Path) -> None:
    """A fork server uses memory only while it has work; the next job starts it again."""
    program = ForkServerPool("text", idle_seconds=0.05)
    assert program.pid is None
    with (pdfs / "plain.pdf").open("rb") as source:
        drawn = protocol.parse_image(await program.run(JOB, source.fileno()))
        first = program.pid
        for _ in range(500):
            if program.pid is None:
                break
            await asyncio.sleep(0.02)
        assert first is not None
        assert program.pid is None
        source.seek(0)
        assert protocol.parse_image(await program.run(JOB, source.fileno())) == drawn
    await program.aclose()
    assert program.pid is None


async def test_a_program_is_kept_while_jobs_are_running(pdfs: Path) -> None:
    """A running job is not cut off by the idle timeout that another started."""
    program = ForkServerPool("text", idle_seconds=0.01)
    with (pdfs / "plain.pdf").open("rb") as one, (pdfs / "plain.pdf").open("rb") as two:
        drawn = await asyncio.gather(program.run(JOB, one.fileno()), program.run(JOB, two.fileno()))
    await program.aclose()
    assert drawn[0] == drawn[1]


async def test_a_full_socket_delays_jobs_without_failing_them(pdfs: Path) -> None:
    """Shows that backpressure does not count as a dead program: every job ends, in the same program."""
    program = ForkServerPool("text")
    await program.start()
    first = program.pid
    assert first is not None
    with (pdfs / "plain.pdf").open("rb") as source:
        os.kill(first, signal.SIGSTOP)
        jobs = [asyncio.create_task(program.run(STARVED, source.fileno())) for _ in range(320)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        os.kill(first, signal.SIGCONT)
        ends = await asyncio.gather(*jobs, return_exceptions=True)
    assert {type(end) for end in ends} <= {bytes, ReaderKilled}
    assert program.pid == first
    await program.aclose()


async def test_a_job_cancelled_at_shutdown_logs_no_error(
    pdfs: Path, caplog: pytest.LogCaptureFixture
) -> None:
    program = await ForkServerClient.start("text")
    os.kill(program.pid, signal.SIGSTOP)
    with (pdfs / "plain.pdf").open("rb") as source:
        job = asyncio.create_task(program.run(JOB, source.fileno()))
        await asyncio.sleep(0)
        closing = asyncio.create_task(program.aclose())
        await asyncio.sleep(0)
        await cancel_and_wait(job)
        await closing
    assert job.cancelled()
    del job
    gc.collect()  # asyncio reports unretrieved exceptions on collection
    assert caplog.records == []
