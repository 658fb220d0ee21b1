"""Says which readings and publications are still missing, and adds their rows.

It looks at what there is, not at what just happened, so a crash between two steps loses nothing:
the next plan finds the gap.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, Select, exists, func, or_, select, tuple_
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import aliased
from sqlmodel import col

from storage.models import Rung
from storage.tables import DocumentRow, PublicationRow, ReadingRow, VersionRow


@dataclass(frozen=True, slots=True)
class Generations:
    """Which parser, chunker and embedder make the readings now."""

    quick: str
    full: str | None
    """None: reading stops at quick."""

    def of(self, rung: Rung) -> str | None:
        """The generation that makes readings of this rung."""
        return self.quick if rung is Rung.QUICK else self.full

    def pairs(self) -> list[tuple[str, str]]:
        """(generation, rung) of every reading that is wanted."""
        return [(made, rung.value) for rung in Rung if (made := self.of(rung)) is not None]


class _Wanted(NamedTuple):
    """A version that should answer: the newest of its document that can be read."""

    version_id: int
    channel_id: int
    reading_id: UUID
    rung: str


async def plan(
    session: AsyncSession, generations: Generations, contents: Collection[str] | None = None
) -> int:
    """Add the rows of missing readings and publications; returns how many were missing.

    Args:
        session: an open transaction.
        generations: the readings wanted.
        contents: only versions with one of these sha256, or None for all of them.
    """
    added = await _plan_readings(session, generations, contents)
    return added + await _plan_publications(session, generations, contents)


async def _plan_readings(
    session: AsyncSession, generations: Generations, contents: Collection[str] | None
) -> int:
    wanted = _wanted_versions(generations, contents).with_only_columns(col(VersionRow.sha256)).distinct()
    missing = [
        (sha256, generations.quick, Rung.QUICK)
        for sha256 in await _without_reading(session, wanted, generations.quick, Rung.QUICK)
    ]
    if generations.full is not None:
        is_read = _has_reading(generations.quick, Rung.QUICK, state="done")
        missing += [
            (sha256, generations.full, Rung.FULL)
            for sha256 in await _without_reading(session, wanted.where(is_read), generations.full, Rung.FULL)
        ]
    session.add_all(ReadingRow(sha256=sha256, generation=made, rung=rung) for sha256, made, rung in missing)
    await session.flush()
    return len(missing)


async def _without_reading(
    session: AsyncSession, wanted: Select[Any], generation: str, rung: Rung
) -> list[str]:
    return list((await session.execute(wanted.where(~_has_reading(generation, rung)))).scalars())


async def _plan_publications(
    session: AsyncSession, generations: Generations, contents: Collection[str] | None
) -> int:
    query = (
        _wanted_versions(generations, contents)
        .join(ReadingRow, col(ReadingRow.sha256) == VersionRow.sha256)
        .where(col(ReadingRow.state) == "done")
        .where(tuple_(col(ReadingRow.generation), col(ReadingRow.rung)).in_(generations.pairs()))
        .where(~_is_served())
        .with_only_columns(
            col(VersionRow.id), col(DocumentRow.channel_id), col(ReadingRow.id), col(ReadingRow.rung)
        )
    )
    best: dict[int, _Wanted] = {}
    for row in (await session.execute(query)).all():
        wanted = _Wanted(*row)
        if wanted.version_id not in best or wanted.rung == Rung.FULL:
            best[wanted.version_id] = wanted
    session.add_all(
        PublicationRow(channel_id=one.channel_id, version_id=one.version_id, reading_id=one.reading_id)
        for one in best.values()
    )
    return len(best)


def _wanted_versions(generations: Generations, contents: Collection[str] | None) -> Select[Any]:
    """Per document that is not deleted, its newest version whose quick reading did not fail."""
    other = aliased(VersionRow)
    failed = exists().where(
        col(ReadingRow.sha256) == other.sha256,
        col(ReadingRow.generation) == generations.quick,
        col(ReadingRow.state) == "failed",
    )
    newest = (
        select(func.max(other.number))
        .where(col(other.document_id) == VersionRow.document_id, ~failed)
        .correlate(VersionRow)
        .scalar_subquery()
    )
    query = (
        select(VersionRow)
        .join(DocumentRow, col(DocumentRow.id) == VersionRow.document_id)
        .where(col(DocumentRow.state) != "deleted", col(VersionRow.number) == newest)
    )
    return query if contents is None else query.where(col(VersionRow.sha256).in_(contents))


def _has_reading(generation: str, rung: Rung, state: str | None = None) -> ColumnElement[bool]:
    reading = aliased(ReadingRow)
    found = exists().where(
        col(reading.sha256) == VersionRow.sha256,
        col(reading.generation) == generation,
        col(reading.rung) == rung.value,
    )
    return found.where(col(reading.state) == state) if state else found


def _is_served() -> ColumnElement[bool]:
    """Whether this reading of this version, or a full one instead of a quick one, is on its way or live."""
    served = aliased(ReadingRow)
    return (
        exists()
        .where(col(PublicationRow.version_id) == VersionRow.id)
        .where(col(PublicationRow.state).in_(("pending", "live")))
        .where(col(PublicationRow.reading_id) == served.id)
        .where(
            or_(
                col(served.id) == ReadingRow.id,
                (col(served.rung) == Rung.FULL.value) & (col(ReadingRow.rung) == Rung.QUICK.value),
            )
        )
    )
