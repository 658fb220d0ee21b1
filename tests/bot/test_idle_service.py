"""An idle service: its lanes wait for work without polling the database constantly."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from engines.support.ports import free_port
from harness.waiting import until
from sqlalchemy import event
from sqlalchemy.engine import Engine

from bot.app import open_service
from bot.settings import load_settings

SECONDS, PER_SECOND = 10, 2


@pytest.mark.long
@pytest.mark.parametrize("sql", ["sqlite", pytest.param("postgres", marks=pytest.mark.engine("postgres"))])
async def test_an_idle_service_opens_few_transactions(
    sql: str,
    request: pytest.FixtureRequest,
    record_property: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Shows that a complete service with a chat opens at most two transactions a second when idle.

    A slow machine opens fewer in the same time; one that is still starting gets more windows.
    """
    monkeypatch.setenv("FOOTNOTE_HOME", str(tmp_path))
    monkeypatch.setenv("FOOTNOTE_TEAMS_DEVELOPMENT", "true")
    monkeypatch.setenv("FOOTNOTE_READ_WORKERS", "1")
    if sql == "postgres":
        monkeypatch.setenv("DATABASE_URL", request.getfixturevalue("postgres_url"))
    begun, at_rest = list[object](), list[float]()
    count = begun.append
    event.listen(Engine, "begin", count)

    async def is_quiet() -> bool:
        before = len(begun)
        await asyncio.sleep(SECONDS)
        at_rest.append((len(begun) - before) / SECONDS)
        return at_rest[-1] <= PER_SECOND

    try:
        async with open_service(load_settings(port=free_port())):
            await until(is_quiet, seconds=6 * SECONDS)
    finally:
        event.remove(Engine, "begin", count)
    assert begun
    record_property("table", f"idle on {sql}: {at_rest[-1]:.1f} transactions a second")
