"""Facts about a home that must not change unnoticed."""

from __future__ import annotations

from storage.database import Database
from storage.errors import ChangedEmbedder
from storage.tables import FactRow

_EMBEDDER = "embedder"


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
