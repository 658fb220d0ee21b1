"""Finds the contents that may lack a reading or a publication; ``planning`` looks at each of these closely.

All is done with whole sets: a look at each document takes seconds in a home of ten thousand, and the
answer is nearly always that nothing is missing. It may find too many, never too few.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Select, except_, func, or_, select, tuple_
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import aliased
from sqlmodel import col

from storage.tables import DocumentRow, PublicationRow, ReadingRow, VersionRow

Kind = tuple[str, str]
"""(generation, rung) of a reading."""


async def contents_with_gaps(session: AsyncSession, wanted: list[Kind]) -> set[str]:
    """The sha256 of every content with a gap; ``wanted`` are the kinds of readings, the best one last."""
    first, best = wanted[0], wanted[-1]
    contents = _candidates(col(VersionRow.sha256))
    queries: list[Any] = [except_(contents, _contents_of(first))]
    if best != first:
        read = contents.where(col(VersionRow.sha256).in_(_contents_of(first, is_done=True)))
        queries.append(except_(read, _contents_of(best)))
    queries.append(_unserved(wanted))
    return {sha256 for query in queries for sha256 in await session.scalars(query)}


def _candidates(column: Any) -> Select[Any]:
    """The newest version of each document, and the older ones where one could not be read."""
    newer, other, failed = aliased(VersionRow), aliased(VersionRow), aliased(ReadingRow)
    newest = select(func.max(newer.id)).group_by(col(newer.document_id))
    troubled = (
        select(col(other.document_id))
        .join(failed, col(failed.sha256) == other.sha256)
        .where(col(failed.state) == "failed")
    )
    return (
        select(column)
        .select_from(VersionRow)
        .join(DocumentRow, col(DocumentRow.id) == VersionRow.document_id)
        .where(col(DocumentRow.state) != "deleted")
        .where(or_(col(VersionRow.id).in_(newest), col(VersionRow.document_id).in_(troubled)))
    )


def _contents_of(kind: Kind, *, is_done: bool = False) -> Select[Any]:
    """What readings of a kind were made of, or are to be."""
    query = select(col(ReadingRow.sha256)).where(tuple_(ReadingRow.generation, ReadingRow.rung) == kind)
    return query.where(col(ReadingRow.state) == "done") if is_done else query


def _unserved(wanted: list[Kind]) -> Select[Any]:
    """The contents that were read, of versions whose best reading is neither live nor on its way."""
    served = (
        select(col(PublicationRow.version_id))
        .join(ReadingRow, col(ReadingRow.id) == PublicationRow.reading_id)
        .where(col(PublicationRow.state).in_(("pending", "live")))
        .where(tuple_(ReadingRow.generation, ReadingRow.rung) == wanted[-1])
    )
    read = select(col(ReadingRow.sha256)).where(
        tuple_(col(ReadingRow.generation), col(ReadingRow.rung)).in_(wanted),
        col(ReadingRow.state) == "done",
        col(ReadingRow.chunks) > 0,
    )
    version = aliased(VersionRow)
    return select(col(version.sha256)).where(
        col(version.id).in_(except_(_candidates(col(VersionRow.id)), served)), col(version.sha256).in_(read)
    )
