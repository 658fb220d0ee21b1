"""Pending work, counted in SQL on both engines, for a home of any size."""

from __future__ import annotations

from datetime import timedelta

from fakes.document_shelf import Shelf

from storage.clock import utc_now
from storage.documents.catalog import Catalog
from storage.documents.workload import WorkCount, read_workload
from storage.sql.database import Database
from storage.sql.tables import BlobRow, ChannelRow, InboxRow, ReadingRow, WebPageRow


async def test_work_is_counted_by_state_rung_age_and_lease(database: Database) -> None:
    """Pending work has an age and leases; finished work is only counted."""
    now = utc_now()
    async with database.transaction() as session:
        channel = ChannelRow(tenant="lo_" + 52 * "c", platform="local", name="it")
        session.add_all([channel, BlobRow(sha256=64 * "a", size=1)])
        await session.flush()
        asked = {"platform": "slack", "channel_id": channel.id, "thread": "", "text": "?", "address": {}}
        old, held = (
            now - timedelta(seconds=90),
            {"lease_until": now + timedelta(seconds=60), "lease_owner": "x"},
        )
        session.add(InboxRow(event_key="1", message_key="1", created_at=old, **asked))
        session.add(InboxRow(event_key="2", message_key="2", **held, **asked))
        session.add(InboxRow(event_key="3", message_key="3", state="done", **asked))
        for number, (rung, state) in enumerate([("quick", "waiting"), ("full", "done"), ("full", "done")]):
            session.add(ReadingRow(sha256=64 * "a", generation=str(number), rung=rung, state=state))
        session.add_all([WebPageRow(url="https://a/", error="gone"), WebPageRow(url="https://b/")])
    found = {(one.table, one.state, one.rung): one for one in await read_workload(database)}
    assert {key: one.count for key, one in found.items()} == {
        ("inbox", "waiting", ""): 2,
        ("reading", "waiting", "quick"): 1,
        ("reading", "done", "full"): 2,
        ("web_page", "failing", ""): 1,
        ("web_page", "waiting", ""): 1,
    }
    inbox = found["inbox", "waiting", ""]
    assert (90 <= inbox.oldest_seconds < 150, inbox.leased) == (True, 1)
    assert found["reading", "done", "full"] == WorkCount("reading", "done", "full", 2, 0.0, 0)


async def test_documents_are_counted_by_visible_state(
    database: Database, catalog: Catalog, shelf: Shelf
) -> None:
    """A file whose reading failed counts as quarantined, a live one does not."""

    async def counted() -> dict[str, int]:
        return {one.state: one.count for one in await read_workload(database) if one.table == "document"}

    assert await counted() == {}
    await shelf.live("live.pdf")
    await shelf.document("large.pdf", state="quarantined")
    locked = await shelf.version(await shelf.document("locked.pdf"))
    for rung in ("quick", "full"):  # both failed, yet it is one document
        await shelf.reading(locked, rung, state="failed")
    answering, _ = await shelf.live("replaced.pdf")
    await shelf.reading(await shelf.version(answering, 2), state="failed")
    refused, _ = await shelf.live("refused.pdf")
    await shelf.set(refused, state="quarantined")
    gone = await shelf.document("gone.pdf", state="deleted")
    await shelf.reading(await shelf.version(gone), state="failed")
    again = await shelf.version(await shelf.document("again.pdf"))
    await shelf.reading(again, state="failed")
    tried = await shelf.reading(again, "full", state="waiting")
    mended = await shelf.document("mended.pdf")
    await shelf.reading(await shelf.version(mended), state="failed")
    await shelf.version(mended, 2)
    assert await counted() == {"present": 5, "quarantined": 2, "deleted": 1}
    seen = [one.state for one in await catalog.documents(shelf.channel_id)]
    assert seen.count("quarantined") == 2
    await shelf.set(tried, state="failed")
    assert await counted() == {"present": 4, "quarantined": 3, "deleted": 1}
