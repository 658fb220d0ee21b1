"""Programs outside the daily tests: benchmarks, evaluation and soaks still start."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAMS = (
    "bench.bench_ask",
    "bench.bench_events",
    "bench.bench_ingest",
    "bench.bench_read",
    "differential.compare_readers",
    "evaluation.evaluate",
    "hostile.soak_hostile",
    "soak.soak",
    "soak.soak_kills",
)


@pytest.mark.long
@pytest.mark.parametrize("program", PROGRAMS)
async def test_a_program_starts(program: str) -> None:
    """Shows that all modules and names it needs exist."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        f"tools.{program}",
        "--help",
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": "tests"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    assert (process.returncode, b"usage" in output) == (0, True), output.decode()
