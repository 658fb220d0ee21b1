"""Facts about a home that must not change unnoticed."""

from __future__ import annotations

from storage.database import Database
from storage.errors import ChangedEmbedder, ChangedIndex
from storage.tables import FactRow

_EMBEDDER = "embedder"
_INDEX = "index"


async def hold_embedder(database: Database, embedder_id: str) -> None:
    """Keep which embedder makes this home's vectors, and refuse another one.

    Raises:
        ChangedEmbedder: vectors of another embedder are here; those of two cannot be compared.
    """
    held = await _hold(database, _EMBEDDER, embedder_id)
    if held != embedder_id:
        raise ChangedEmbedder(
            f"the vectors in this home were made by the embedder {held}, but {embedder_id} is configured: "
            "set FOOTNOTE_EMBEDDER back to the first one, or start with an empty FOOTNOTE_HOME"
        )


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
