"""The steps of reading, as compare-and-sets on the ``reading`` table: waiting -> done or failed.

A try is counted and committed before a PDF is opened, so that one which kills the whole process
still runs out of tries; a fault of the infrastructure gives the try back. Tries that ended with an
error are counted apart: a machine that went down twice must not leave a file a single one. Full
readings start from a quick one, which the PDF has survived: a kill in the middle of one is never held
against the file.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, select, text
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from storage.chat.notification_events import record_failed
from storage.clock import utc_now
from storage.models import Reading, Rung
from storage.queues.planner import Generations, plan, plan_fallback
from storage.sql.database import Database
from storage.sql.leases import Lease, Leases, held, release
from storage.sql.tables import IS_PRESENT, DocumentRow, ReadingRow, VersionRow

# Tries that may end with an error of the file's own.
MAX_ATTEMPTS = 3
# Tries that may end with the whole process: a machine that goes down thrice is no fault of the file.
MAX_CRASHES = 10
# Where the details of a full reading that is held say since when, and how many pages were done by then.
BEGUN_AT, BEGUN_FROM = "begun_at", "begun_from"
# Where the details of a reading that is not done count the tries which ended with an error.
_FAULTS = "faults"


@dataclass(frozen=True, slots=True)
class ReadingClaim:
    """A reading that is ours to make."""

    lease: Lease
    id: UUID
    sha256: str
    rung: Rung
    # 1 for the first try; one above the limit when the last try ended with its whole process.
    attempt: int
    # For a full reading: the quick one of the same content, which it starts from.
    quick: Reading | None
    # For a full reading: one made of the same content for another embedder: its chunks are the same.
    alike: Reading | None = None

    @property
    def is_spent(self) -> bool:
        """True if all tries are used up already."""
        return self.attempt > MAX_CRASHES


@dataclass(frozen=True, slots=True)
class ReadingResult:
    """What a reading came to."""

    title: str
    pages: int
    chunks: int
    details: dict[str, Any]
    figures: int = 0
    # Where its vectors lie; None when it has none.
    space: str | None = None


class ReadingQueue:
    """Claims readings and writes down how they ended."""

    def __init__(self, database: Database, leases: Leases, generations: Generations) -> None:
        """Work on the readings of these generations only."""
        self._database = database
        self.leases = leases
        self._generations = generations

    async def claim(self, rung: Rung) -> ReadingClaim | None:
        """Take the oldest reading of this rung that waits, or None; what is only read again comes last."""
        query = (
            select(ReadingRow)
            .where(col(ReadingRow.state) == "waiting", col(ReadingRow.rung) == rung.value)
            .where(col(ReadingRow.generation) == self._generations.of(rung))
            .order_by(col(ReadingRow.again), col(ReadingRow.created_at), col(ReadingRow.id))
        )
        async with self._database.transaction(exclusive=False) as session:
            taken = await self.leases.take(session, ReadingRow, query)
            if taken is None:
                return None
            row, _ = taken
            row.attempts += rung is Rung.QUICK
            if rung is Rung.FULL:
                begun = {BEGUN_AT: utc_now().isoformat(), BEGUN_FROM: row.pages_begun}
                row.details = {**(row.details or {}), **begun}
            lease = Lease(ReadingRow, row.id, "waiting", row.fence)
            claim = ReadingClaim(lease, row.id, row.sha256, rung, row.attempts, None)
            if rung is Rung.QUICK:
                return claim
            quick = await self._made(session, row, col(ReadingRow.generation) == self._generations.quick)
            is_alike = col(ReadingRow.generation).startswith(self._generations.cut, autoescape=True)
            alike = await self._made(session, row, is_alike) if self._generations.cut else None
            return replace(claim, quick=quick, alike=alike)

    async def _made(
        self, session: AsyncSession, wanted: ReadingRow, is_one: ColumnElement[bool]
    ) -> Reading | None:
        """Return a finished reading of the same content."""
        query = select(ReadingRow).where(
            col(ReadingRow.sha256) == wanted.sha256, is_one, col(ReadingRow.state) == "done"
        )
        row = (await session.scalars(query)).first()
        if row is None:
            return None
        return Reading(
            row.id,
            row.sha256,
            row.generation,
            Rung(row.rung),
            row.title,
            row.pages,
            row.chunks,
            row.figures,
            row.details or {},
        )

    async def note_pages(self, claim: ReadingClaim, pages: int) -> None:
        """So many pages are done so far: people see that a long reading goes on.

        One that is begun again after a kill stands where it stood until it comes further.
        """
        async with self._database.transaction(exclusive=False) as session:
            row = await held(session, claim.lease, ReadingRow)
            if row is not None:
                row.pages_begun = max(row.pages_begun, pages)

    async def finish(self, claim: ReadingClaim, made: ReadingResult) -> bool:
        """Mark it done and plan what follows from it; False when the lease was lost."""
        async with self._database.transaction() as session:
            row = await held(session, claim.lease, ReadingRow)
            if row is None:
                return False
            release(row)
            row.state, row.done_at = "done", utc_now()
            row.title, row.pages, row.chunks, row.details = made.title, made.pages, made.chunks, made.details
            row.figures, row.space = made.figures, made.space
            await session.flush()
            await plan(session, self._generations, {row.sha256})
            return True

    async def fail(self, claim: ReadingClaim, reason: str, *, is_locked: bool = False) -> bool:
        """Return a document fault: try again later, or quarantine it; returns whether it is given up.

        One that ``is_locked`` lacks a password; ``LockedReadings`` has it tried with another one.
        """
        async with self._database.transaction() as session:
            row = await held(session, claim.lease, ReadingRow)
            if row is None:
                return False
            release(row, reason, self.leases.pause(row.attempts))
            row.locked = is_locked
            if claim.quick and not claim.quick.chunks:
                await self._give_up(session, claim.quick, row)
            if _count_fault(row) >= MAX_ATTEMPTS or claim.is_spent or claim.rung is Rung.FULL:
                row.state, row.next_attempt_at = "failed", None
                await session.flush()
                await record_failed(session, {row.sha256})
                await plan_fallback(session, self._generations, row.sha256)
            return row.state == "failed"

    async def files(self, claim: ReadingClaim) -> list[str]:
        """Return the files that have the content now, sorted."""
        query = (
            select(col(DocumentRow.file))
            .join(VersionRow, col(VersionRow.document_id) == DocumentRow.id)
            .where(col(VersionRow.sha256) == claim.sha256, text(f"document.{IS_PRESENT}"))
            .order_by(col(DocumentRow.file))
        )
        async with self._database.snapshot() as session:
            return list(await session.scalars(query.distinct()))

    async def _give_up(self, session: AsyncSession, quick: Reading, full: ReadingRow) -> None:
        """A quick reading without text, that a full one was to find, failed with it."""
        row = await session.get(ReadingRow, quick.id, with_for_update=True)
        if row is not None:
            row.state, row.attempts = "failed", MAX_ATTEMPTS
            row.reason, row.locked = full.reason, full.locked

    async def give_back(self, claim: ReadingClaim, reason: str | None, wait: timedelta | None) -> None:
        """Not the document's fault: the try does not count."""
        async with self._database.transaction(exclusive=False) as session:
            row = await held(session, claim.lease, ReadingRow)
            if row is not None:
                release(row, reason, wait)
                row.attempts -= claim.rung is Rung.QUICK

    async def wait_for(self, claim: ReadingClaim, base: UUID, reason: str) -> None:
        """The files of a reading that a full one starts from are lost: that one is made again first."""
        async with self._database.transaction() as session:
            row = await held(session, claim.lease, ReadingRow)
            if row is not None:
                release(row, reason)
                await lose_reading(session, base)


def _count_fault(row: ReadingRow) -> int:
    """Note one more error of the file's own; returns how many there were since it waits."""
    faults: int = (row.details or {}).get(_FAULTS, 0) + 1
    row.details = {**(row.details or {}), _FAULTS: faults}
    return faults


async def lose_reading(session: AsyncSession, reading: UUID) -> bool:
    """The files of a finished reading are gone or damaged: it waits to be made once more, under its id."""
    row = await session.get(ReadingRow, reading, with_for_update=True)
    if row is None or row.state != "done":
        return False
    release(row)
    row.state, row.attempts, row.pages_begun, row.done_at = "waiting", 0, 0, None
    return True
