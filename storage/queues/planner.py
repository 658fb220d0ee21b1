"""Planner: finds missing readings and publications, and adds their rows.

It compares the actual with the wanted state, so a crash between two steps loses nothing: the next plan finds
the gap. A new generation reads every content again; a live publication keeps answering until the new reading
of the same rung, or a better one, replaces it.

Contents that may have a gap are first found by set operations: visiting each document takes seconds in a home
of ten thousand, and usually nothing is missing. The sets may be too large, never too small.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Select,
    case,
    except_,
    exists,
    func,
    or_,
    select,
    tuple_,
    update,
)
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import aliased
from sqlmodel import col

from storage.clock import monotonic_seconds
from storage.models import Rung
from storage.sql.database import Database
from storage.sql.tables import DocumentRow, FactRow, PublicationRow, ReadingRow, VersionRow

# (generation, rung) of a reading.
Kind = tuple[str, str]

# Name of the fact that stores the generations in which the home is read.
GENERATIONS_FACT = "generations"

# Contents per statement and per transaction.
PLAN_BATCH_SIZE = 500
LONG_SECONDS = 0.5
# A search longer than LONG_SECONDS is repeated after this multiple of its duration at the earliest: a home
# may be large.
SEARCH_INTERVAL_FACTOR = 20

# Conditions on versions joined with their documents; cached, because building them takes longer than the
# query.
Conditions = list[ColumnElement[bool]]


async def contents_with_gaps(session: AsyncSession, wanted: list[Kind]) -> set[str]:
    """Return the sha256 of every content with a gap; ``wanted``: kinds of readings, the best one last."""
    return {sha256 for query in _gaps(tuple(wanted)) for sha256 in await session.scalars(query)}


@cache
def _gaps(wanted: tuple[Kind, ...]) -> Sequence[Any]:
    """Return one query per kind of gap, whose rows are contents with that gap."""
    first, best = wanted[0], wanted[-1]
    contents = _candidates(col(VersionRow.sha256))
    queries: list[Any] = [except_(contents, _contents_of(first))]
    if best != first:
        read = contents.where(col(VersionRow.sha256).in_(_contents_of(first, is_done=True)))
        queries.append(except_(read, _contents_of(best)))
    return [*queries, _unserved(wanted)]


def _candidates(column: Any) -> Select[Any]:
    """Select each document's newest version, and older ones if any version failed or is locked."""
    newer, other, failed = aliased(VersionRow), aliased(VersionRow), aliased(ReadingRow)
    newest = select(func.max(newer.id)).group_by(col(newer.document_id))
    troubled = (
        select(col(other.document_id))
        .join(failed, col(failed.sha256) == other.sha256)
        .where(col(failed.state) == "failed")
    )
    locked = select(col(other.document_id)).where(col(other.locked))
    return (
        select(column)
        .select_from(VersionRow)
        .join(DocumentRow, col(DocumentRow.id) == VersionRow.document_id)
        .where(col(DocumentRow.state) != "deleted", ~col(VersionRow.locked))
        .where(
            or_(
                col(VersionRow.id).in_(newest),
                col(VersionRow.document_id).in_(troubled),
                col(VersionRow.document_id).in_(locked),
            )
        )
    )


def _contents_of(kind: Kind, *, is_done: bool = False) -> Select[Any]:
    """Select the contents of the readings of a kind: of all, or of the finished ones."""
    query = select(col(ReadingRow.sha256)).where(tuple_(ReadingRow.generation, ReadingRow.rung) == kind)
    return query.where(col(ReadingRow.state) == "done") if is_done else query


def _unserved(wanted: tuple[Kind, ...]) -> Select[Any]:
    """Select the contents read, of versions whose best reading is neither live nor pending."""
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


@dataclass(frozen=True, slots=True)
class Generations:
    """Current generations: the parser, chunker and embedder with which readings are made."""

    quick: str
    # None: readings stop at quick.
    full: str | None
    # Common prefix of the full generations with the same pages and chunks, whatever the embedder.
    cut: str = ""

    def for_rung(self, rung: Rung) -> str | None:
        """Return the generation that makes readings of this rung."""
        return self.quick if rung is Rung.QUICK else self.full

    def pairs(self) -> list[tuple[str, str]]:
        """Return (generation, rung) of every wanted reading."""
        return [(made, rung.value) for rung in Rung if (made := self.for_rung(rung)) is not None]

    @property
    def key(self) -> str:
        """Both generations in one string, for comparison."""
        return f"{self.quick} {self.full or ''}"


async def plan(
    session: AsyncSession, generations: Generations, contents: Collection[str] | None = None
) -> int:
    """Add the rows of missing readings and publications; return how many were missing.

    Args:
        generations: the wanted readings.
        contents: only versions with one of these sha256; None for all.
    """
    if contents is not None:
        return await _plan_contents(session, generations, contents, is_news=True)
    found = await contents_with_gaps(session, generations.pairs())
    return sum([await _plan_contents(session, generations, some) for some in _portions(found)])


async def plan_fallback(session: AsyncSession, generations: Generations, sha256: str) -> int:
    """Plan all versions of the documents that have a content which cannot be read."""
    owners = select(col(VersionRow.document_id)).where(col(VersionRow.sha256) == sha256)
    query = select(col(VersionRow.sha256)).where(col(VersionRow.document_id).in_(owners)).distinct()
    contents = list(await session.scalars(query))
    return sum([await _plan_contents(session, generations, some) for some in _portions(contents)])


class GapFinder:
    """Periodically plans what a crash or a new generation left unplanned."""

    def __init__(self, database: Database, generations: Generations) -> None:
        self._database = database
        self._generations = generations
        self._due_at = monotonic_seconds()

    async def tick(self) -> int:
        """Add missing rows and return their number; skip if a long search ended recently.

        Writers never wait for the search, and only for one batch while rows are added.

        Raises:
            DatabaseUnavailable: the database does not work.
        """
        started = monotonic_seconds()
        if started < self._due_at:
            return 0
        async with self._database.snapshot() as session:
            found = await contents_with_gaps(session, self._generations.pairs())
        spent = monotonic_seconds() - started
        if spent > LONG_SECONDS:
            self._due_at = monotonic_seconds() + SEARCH_INTERVAL_FACTOR * spent
        added = 0
        for some in _portions(found):
            async with self._database.transaction() as session:
                added += await _plan_contents(session, self._generations, some)
        return added


def _portions(contents: Collection[str]) -> list[list[str]]:
    ordered = sorted(contents)
    return [ordered[start : start + PLAN_BATCH_SIZE] for start in range(0, len(ordered), PLAN_BATCH_SIZE)]


async def _plan_contents(
    session: AsyncSession, generations: Generations, contents: Collection[str], *, is_news: bool = False
) -> int:
    """Fill the gaps of these contents; ``is_news`` if they have just changed."""
    wanted = [col(VersionRow.sha256).in_(contents), *_is_wanted(generations)]
    if not is_news and not await are_current_generations(session, generations):
        wanted.append(~_is_answered())
    added = await _plan_readings(session, generations, wanted)
    if is_news:
        # Content that was only to be reread has arrived again as new, and does not answer yet.
        fresh = _of_documents(select(col(VersionRow.sha256))).where(*wanted, ~_is_answered())
        again = update(ReadingRow).where(col(ReadingRow.again), col(ReadingRow.state) == "waiting")
        await session.execute(again.where(col(ReadingRow.sha256).in_(fresh)).values(again=False))
    return added + await _plan_publications(session, generations, wanted)


async def set_current_generations(session: AsyncSession, generations: Generations) -> None:
    """Record that the home is read in these generations from now on.

    If two processes have different settings, only the one that started last rereads what is already live:
    otherwise each would undo the other's work for ever.
    """
    fact = await session.get(FactRow, GENERATIONS_FACT) or FactRow(name=GENERATIONS_FACT, value="")
    fact.value = generations.key
    session.add(fact)


async def are_current_generations(session: AsyncSession, generations: Generations) -> bool:
    """True if the home is read in these generations, or if none are recorded."""
    fact = await session.get(FactRow, GENERATIONS_FACT, populate_existing=True)
    return fact is None or fact.value == generations.key


async def _plan_readings(session: AsyncSession, generations: Generations, wanted: Conditions) -> int:
    missing = await _missing(session, wanted, generations.quick, Rung.QUICK)
    if generations.full is not None:
        is_read = _has_reading(generations.quick, Rung.QUICK, state="done")
        missing += await _missing(session, [is_read, *wanted], generations.full, Rung.FULL)
    session.add_all(missing)
    await session.flush()
    return len(missing)


async def _missing(
    session: AsyncSession, wanted: Conditions, generation: str, rung: Rung
) -> list[ReadingRow]:
    """Return readings to add for contents without one of this kind; those that already answer wait longer."""
    answers = _is_answered() if rung is Rung.QUICK else _is_answered(Rung.FULL)
    # MIN: a content can wait only if every version with it already answers.
    columns = select(col(VersionRow.sha256), func.min(case((answers, 1), else_=0)))
    query = _of_documents(columns).where(~_has_reading(generation, rung), *wanted)
    return [
        ReadingRow(sha256=sha256, generation=generation, rung=rung, again=bool(again))
        for sha256, again in (await session.execute(query.group_by(col(VersionRow.sha256)))).all()
    ]


async def _plan_publications(session: AsyncSession, generations: Generations, wanted: Conditions) -> int:
    columns = select(
        col(VersionRow.id), col(DocumentRow.channel_id), col(ReadingRow.id), col(ReadingRow.rung)
    )
    query = (
        _of_documents(columns)
        .join(ReadingRow, col(ReadingRow.sha256) == VersionRow.sha256)
        .where(col(ReadingRow.state) == "done", col(ReadingRow.chunks) > 0)
        .where(tuple_(col(ReadingRow.generation), col(ReadingRow.rung)).in_(generations.pairs()))
        .where(*wanted, ~_is_served())
    )
    # Of several finished readings of a version, only the best one is published.
    best: dict[int, PublicationRow] = {}
    for version, channel, reading, rung in (await session.execute(query)).all():
        if version not in best or rung == Rung.FULL:
            best[version] = PublicationRow(
                channel_id=channel, version_id=version, reading_id=reading, rung=rung
            )
    session.add_all(best.values())
    return len(best)


def _of_documents(columns: Select[*tuple[Any, ...]]) -> Select[*tuple[Any, ...]]:
    return columns.select_from(VersionRow).join(DocumentRow, col(DocumentRow.id) == VersionRow.document_id)


@cache
def _is_wanted(generations: Generations) -> Conditions:
    """Return conditions for the newest version that is live or may become so, of an existing document."""
    newer = aliased(VersionRow)
    overtaken = exists().where(
        col(newer.document_id) == VersionRow.document_id,
        col(newer.number) > VersionRow.number,
        ~_is_hopeless(newer, generations),
    )
    return [col(DocumentRow.state) != "deleted", ~overtaken, ~_is_hopeless(VersionRow, generations)]


def _is_hopeless(version: Any, generations: Generations) -> ColumnElement[bool]:
    reading = aliased(ReadingRow)
    failed = exists().where(
        col(reading.sha256) == version.sha256,
        col(reading.generation) == generations.quick,
        col(reading.state) == "failed",
    )
    return (failed & ~_is_live(version)) | col(version.locked)


def _is_live(version: Any) -> ColumnElement[bool]:
    """True if a version has a live publication, of any generation."""
    return exists().where(col(PublicationRow.version_id) == version.id, col(PublicationRow.state) == "live")


@cache
def _is_answered(rung: Rung | None = None) -> ColumnElement[bool]:
    """True if the version answers, by a reading of this rung or of any."""
    if rung is None:
        return _is_live(VersionRow)
    answering = aliased(ReadingRow)
    return exists().where(
        col(PublicationRow.version_id) == VersionRow.id,
        col(PublicationRow.state) == "live",
        col(PublicationRow.reading_id) == answering.id,
        col(answering.rung) == rung.value,
    )


@cache
def _has_reading(generation: str, rung: Rung, state: str | None = None) -> ColumnElement[bool]:
    reading = aliased(ReadingRow)
    found = exists().where(
        col(reading.sha256) == VersionRow.sha256,
        col(reading.generation) == generation,
        col(reading.rung) == rung.value,
    )
    return found.where(col(reading.state) == state) if state else found


@cache
def _is_served() -> ColumnElement[bool]:
    """True if this reading of the version, or a full one in place of a quick one, is pending or live."""
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
