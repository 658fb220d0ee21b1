"""The programs that nobody runs with every change: benchmarks, evaluation and soaks still start."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PROGRAMS = (
    "bench/bench_ask.py",
    "bench/bench_events.py",
    "bench/bench_ingest.py",
    "bench/bench_read.py",
    "evaluation/evaluate.py",
    "hostile/soak_hostile.py",
    "soak/soak.py",
    "soak/soak_kills.py",
)


@pytest.mark.long
@pytest.mark.parametrize("program", PROGRAMS)
async def test_a_program_finds_what_it_is_made_of(program: str) -> None:
    """Shows that no module or name that it needs was moved away from under it."""
    paths = os.pathsep.join(map(str, (TESTS.parent, TESTS, TESTS / "soak")))
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(TESTS / program),
        "--help",
        env={**os.environ, "PYTHONPATH": paths},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    assert (process.returncode, b"usage" in output) == (0, True), output.decode()
