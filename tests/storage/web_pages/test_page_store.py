"""Storage of approved pages."""

from __future__ import annotations

import asyncio
from pathlib import Path

from harness.empty_homes import make_sqlite
from harness.waiting import PATIENCE

from storage.sql.database import Database
from storage.web_pages.page_store import WebPageStore, WebText, WebTextChunk

PAGE = "https://example.org/"


async def test_pruning_without_work_takes_no_write_lock(tmp_path: Path) -> None:
    """Unused texts are deleted."""
    database = await Database.open(make_sqlite(tmp_path))
    store = WebPageStore(database)
    await store.approve([PAGE])
    before, after = (WebText("", "", (WebTextChunk(f"Within {days} days.", 4),)) for days in (10, 30))
    await store.store_text(PAGE, before, {})
    async with database.transaction(), asyncio.timeout(PATIENCE):
        assert await store.prune() == 0
    await store.store_text(PAGE, after, {})
    assert await store.prune() == 1
    assert await store.text(before.sha256) is None
    assert await store.text(after.sha256) == after
    await database.aclose()
