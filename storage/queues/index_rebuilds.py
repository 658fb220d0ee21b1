"""Channels whose index is dropped and built anew, which no question may take for what its documents hold.

A count of each channel goes up when a rebuild begins and when it ends: it is odd meanwhile. A question that
reads it before and after it asks the index knows whether it saw a half-built one (a sequence lock).
"""

from __future__ import annotations

from functools import cache
from typing import Any

from sqlalchemy import bindparam, select
from sqlmodel import col

from storage.sql.database import Database
from storage.sql.tables import FactRow

_PREFIX = "index rebuild "


def rebuild_fact(channel_id: int) -> str:
    """Name of the fact that counts the beginnings and ends of a channel's rebuilds."""
    return f"{_PREFIX}{channel_id}"


class IndexRebuilds:
    """Counts rebuilds in SQL; every method raises DatabaseUnavailable when the database does not work."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def count(self, channel_id: int) -> int:
        """Beginnings and ends so far; odd while a rebuild goes on."""
        rows = await self._database.rows(_count(), {"fact": rebuild_fact(channel_id)}, brief=True)
        return int(rows[0][0]) if rows else 0

    async def begin(self, channel_id: int) -> None:
        """From now on no question of the channel is answered; one that goes on begins from the start."""
        async with self._database.transaction() as session:
            fact = await session.get(FactRow, rebuild_fact(channel_id), with_for_update=True)
            count = int(fact.value) if fact else 0
            await session.merge(FactRow(name=rebuild_fact(channel_id), value=str(count + 1 + count % 2)))

    async def running(self) -> dict[int, int]:
        """Channel -> count, of all rebuilds that go on."""
        query = select(col(FactRow.name), col(FactRow.value)).where(col(FactRow.name).startswith(_PREFIX))
        rows = await self._database.rows(query)
        counts = {int(row.name.removeprefix(_PREFIX)): int(row.value) for row in rows}
        return {channel_id: count for channel_id, count in counts.items() if count % 2}

    async def end(self, channel_id: int, count: int) -> None:
        """All that is live is in the index again, unless another rebuild began after this count."""
        async with self._database.transaction() as session:
            fact = await session.get(FactRow, rebuild_fact(channel_id), with_for_update=True)
            if fact and int(fact.value) == count:
                fact.value = str(count + 1)


@cache
def _count() -> Any:
    return select(col(FactRow.value)).where(col(FactRow.name) == bindparam("fact"))
