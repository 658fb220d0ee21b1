"""Rebuild counter: tells a query if the index was being rebuilt while it ran."""

from __future__ import annotations

from storage.queues.index_rebuilds import IndexRebuilds
from storage.sql.database import Database


async def test_the_count_is_odd_during_a_rebuild(database: Database) -> None:
    """Counts are kept per channel."""
    rebuilds = IndexRebuilds(database)
    counts = [await rebuilds.sequence(7)]
    for _ in range(2):
        await rebuilds.begin(7)
        counts.append(await rebuilds.sequence(7))
        assert await rebuilds.running() == {7: counts[-1]}
        await rebuilds.end(7, counts[-1])
        counts.append(await rebuilds.sequence(7))
    assert (counts, await rebuilds.running(), await rebuilds.sequence(77)) == ([0, 1, 2, 3, 4], {}, 0)


async def test_a_restarted_rebuild_is_not_ended_by_the_previous_one(database: Database) -> None:
    """Shows that `end` with an outdated count has no effect."""
    rebuilds = IndexRebuilds(database)
    await rebuilds.begin(7)
    first = await rebuilds.sequence(7)
    await rebuilds.begin(7)
    await rebuilds.end(7, first)
    assert await rebuilds.running() == {7: 3}
    await rebuilds.end(7, 3)
    assert await rebuilds.running() == {}
