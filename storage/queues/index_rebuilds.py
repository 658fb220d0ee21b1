"""Rebuilds of channels' indexes, during which questions must not trust what the index returns.

Each channel has a counter, incremented when a rebuild begins and when it ends: it is odd in between. A
question that reads it before and after its search knows whether it saw a half-built index (a sequence lock).
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
    """Return the name of the fact that counts the begins and ends of a channel's rebuilds."""
    return f"{_PREFIX}{channel_id}"


class IndexRebuilds:
    """Counts rebuilds in SQL; every method raises DatabaseUnavailable if the database fails."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def sequence(self, channel_id: int) -> int:
        """Return the number of begins and ends; odd during a rebuild."""
        rows = await self._database.rows(_count(), {"fact": rebuild_fact(channel_id)}, brief=True)
        return int(rows[0][0]) if rows else 0

    async def begin(self, channel_id: int) -> None:
        """Begin a rebuild: the channel's questions wait, and running ones start again."""
        async with self._database.transaction() as session:
            fact = await session.get(FactRow, rebuild_fact(channel_id), with_for_update=True)
            count = int(fact.value) if fact else 0
            # The next odd number, even if a rebuild is running: its ``end`` then does nothing.
            await session.merge(FactRow(name=rebuild_fact(channel_id), value=str(count + 1 + count % 2)))

    async def running(self) -> dict[int, int]:
        """Return channel -> count for all running rebuilds."""
        query = select(col(FactRow.name), col(FactRow.value)).where(col(FactRow.name).startswith(_PREFIX))
        rows = await self._database.rows(query)
        counts = {int(row.name.removeprefix(_PREFIX)): int(row.value) for row in rows}
        return {channel_id: count for channel_id, count in counts.items() if count % 2}

    async def end(self, channel_id: int, count: int) -> None:
        """End a rebuild, unless another one began after this count."""
        async with self._database.transaction() as session:
            fact = await session.get(FactRow, rebuild_fact(channel_id), with_for_update=True)
            if fact and int(fact.value) == count:
                fact.value = str(count + 1)


@cache
def _count() -> Any:
    return select(col(FactRow.value)).where(col(FactRow.name) == bindparam("fact"))
