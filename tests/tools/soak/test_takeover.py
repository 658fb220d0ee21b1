"""Takeover time: a worker dies while holding files, and another one publishes them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from engines.postgres import RealPostgres

from tools.soak.rounds.pairs import Pair
from tools.soak.rounds.process import Life
from tools.soak.rounds.round import Round, open_round
from tools.soak.rounds.world import LINES

FILES = 4
# As promised in docs/reliability.md.
TAKEN_OVER_SECONDS = 30.0


@pytest.mark.long
@pytest.mark.parametrize("name", ["SQLite", pytest.param("PostgreSQL", marks=pytest.mark.engine("postgres"))])
@pytest.mark.parametrize("point", ["after-claim", "after-seal"])
async def test_a_dead_workers_files_are_live_within_thirty_seconds(
    name: str,
    point: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    record_property: Callable[[str, object], None],
) -> None:
    """Shows that with the default lease the next worker takes over in time."""
    server: RealPostgres | None = request.getfixturevalue("postgres") if name == "PostgreSQL" else None
    async with open_round(Pair(f"embedded/{name}", None, server), tmp_path / "home", 1) as one:
        settings = {**one.place.environment}
        del settings["FOOTNOTE_LEASE_SECONDS"]
        for _ in range(FILES):
            one.world.add(lines=LINES[0])
        dying = await Life.begin(settings, point)
        assert await dying.dies_within(60), "it never got to its crash point"
        died, living = time.monotonic(), await Life.begin(settings)
        try:
            await _until_all_answer(one, died + 2 * TAKEN_OVER_SECONDS)
            seconds = time.monotonic() - died
        finally:
            await living.finish()
    record_property("takeover_seconds", round(seconds, 1))
    assert seconds < TAKEN_OVER_SECONDS


async def _until_all_answer(one: Round, end: float) -> None:
    while time.monotonic() < end:
        if await one.audit.all_answer():
            return
        await asyncio.sleep(0.2)
