"""Facts about a home that must not change unnoticed."""

from __future__ import annotations

from storage.database import Database
from storage.embedding import space_of
from storage.errors import ChangedIndex
from storage.tables import FactRow

_EMBEDDER = "embedder"
"""Written by the first release only."""
_INDEX = "index"


async def first_space(database: Database) -> str | None:
    """The space of vectors that were written before spaces had names; None when there are none.

    The first release held a home to one embedder, and wrote down which.
    """
    async with database.snapshot() as session:
        fact = await session.get(FactRow, _EMBEDDER)
    return space_of(fact.value) if fact else None


async def hold_index(database: Database, identity: str) -> None:
    """Keep which index this home's documents were published to, and refuse another one.

    Raises:
        ChangedIndex: it is another index, or one that was emptied: it would find nothing.
    """
    held = await _hold(database, _INDEX, identity)
    if held != identity:
        raise ChangedIndex(
            "this home's documents are in another index than the one WEAVIATE_URL chooses now: set "
            "WEAVIATE_URL back, or start with an empty FOOTNOTE_HOME and the same inbox"
        )


async def _hold(database: Database, name: str, value: str) -> str:
    """The value that a fact has; the first one given stays."""
    async with database.snapshot() as session:
        fact = await session.get(FactRow, name)
    if fact:
        return fact.value
    async with database.transaction() as session:
        fact = await session.get(FactRow, name) or FactRow(name=name, value=value)
        session.add(fact)
    return fact.value
