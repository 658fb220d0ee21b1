"""Facts about a home that must not change unnoticed."""

from __future__ import annotations

import logging
from typing import Protocol

from sqlalchemy import select
from sqlmodel import col

from storage.database import Database
from storage.embedding import space_of
from storage.errors import ChangedIndex
from storage.models import TenantName
from storage.tables import FactRow

_EMBEDDER = "embedder"
"""Written by the first release only."""
_INDEX = "index"
_ADDRESS = "index address"
_log = logging.getLogger(__name__)


async def first_space(database: Database) -> str | None:
    """The space of vectors that were written before spaces had names; None when there are none.

    The first release held a home to one embedder, and wrote down which.
    """
    async with database.snapshot() as session:
        fact = await session.get(FactRow, _EMBEDDER)
    return space_of(fact.value) if fact else None


class NamedIndex(Protocol):
    """An index that can be told from every other one."""

    @property
    def identity(self) -> str:
        """Changes when the index is another one, or was emptied."""

    async def tenants(self) -> set[TenantName]:
        """Every tenant there is."""


async def require_same_index(database: Database, index: NamedIndex, address: str) -> None:
    """Keep which index this home's documents were published to, and refuse another one.

    One that was emptied where it stands is taken again: the reconciler publishes everything anew.

    Args:
        database: the home's.
        index: the one that is configured.
        address: where it is, as the settings say.

    Raises:
        ChangedIndex: it is at another place, or holds another home's documents: ours are not there.
        IndexUnavailable: it does not answer.
    """
    held = await _keep_facts(database, {_INDEX: index.identity, _ADDRESS: address})
    if held[_INDEX] == index.identity:
        return
    if held[_ADDRESS] != address or await index.tenants():
        raise ChangedIndex(
            "this home's documents are in another index than the one WEAVIATE_URL chooses now: set "
            "WEAVIATE_URL back, or start with an empty FOOTNOTE_HOME and the same inbox"
        )
    _log.warning("the index was emptied: everything is published to it again")
    async with database.transaction() as session:
        await session.merge(FactRow(name=_INDEX, value=index.identity))


async def _keep_facts(database: Database, values: dict[str, str]) -> dict[str, str]:
    """The values that facts have; the first ones given stay."""
    query = select(FactRow).where(col(FactRow.name).in_(values))
    async with database.snapshot() as session:
        held = {fact.name: fact.value for fact in await session.scalars(query)}
    if held.keys() == values.keys():
        return held
    async with database.transaction() as session:
        held = {fact.name: fact.value for fact in await session.scalars(query)}
        session.add_all(FactRow(name=name, value=value) for name, value in values.items() if name not in held)
    return values | held
