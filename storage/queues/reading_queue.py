"""Queue of readings: compare-and-sets on the ``reading`` table, waiting -> done or failed.

An attempt is counted and committed before a PDF is opened, so that a PDF that kills the whole process still
runs out of attempts; an infrastructure error returns the attempt. Attempts that ended with an error are
counted separately: a machine that crashed twice must not leave a file only one. Full readings start from a
quick one, which the PDF has survived: a crash during one is never attributed to the file.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, select, text
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from storage.chat.notification_events import record_failed
from storage.clock import utc_now
from storage.models import Reading, Rung
from storage.queues.planner import Generations, plan, plan_fallback
from storage.sql.leased_queue import Lease, LeasedQueue, end_lease
from storage.sql.tables import IS_PRESENT, DocumentRow, ReadingRow, VersionRow

# Attempts that may end with an error of the file.
MAX_ATTEMPTS = 3
# Attempts that may end with a crash of the process: three crashes of the machine are not the file's fault.
MAX_CRASHES = 10
# Keys in the details of a reading in progress: its start time, and the pages and share of work done by then.
BEGUN_AT, BEGUN_FROM, BEGUN_SHARE = "begun_at", "begun_from", "begun_share"
# Share of its work that is done, from 0 to 1.
SHARE = "share"
# Key in the details of a reading: usual seconds of the full reading of its content.
FULL_SECONDS = "full_seconds"
# Key in the details of an unfinished reading: number of attempts that ended with an error.
_FAULTS = "faults"


@dataclass(frozen=True, slots=True)
class ReadingClaim:
    """Reading that this worker has claimed."""

    lease: Lease
    id: UUID
    sha256: str
    rung: Rung
    # 1 for the first attempt; above the limit if the last one crashed its process.
    attempt: int
    # For a full reading: the quick reading of the same content, from which it starts.
    quick: Reading | None
    # For a full reading: one of the same content for another embedder, with identical chunks.
    same_chunks: Reading | None = None

    @property
    def is_spent(self) -> bool:
        """True if all attempts are used up."""
        return self.attempt > MAX_CRASHES


@dataclass(frozen=True, slots=True)
class ReadingResult:
    """Result of a reading."""

    title: str
    pages: int
    chunks: int
    details: dict[str, Any]
    figures: int = 0
    # Space of its vectors; None if it has none.
    space: str | None = None


class ReadingQueue:
    """Claims readings and records their outcomes; calls raise LeaseLost if another worker has the reading."""

    def __init__(self, rows: LeasedQueue[ReadingRow], generations: Generations) -> None:
        """Work on the readings of these generations only."""
        self._rows = rows
        self._generations = generations

    async def claim(self, rung: Rung) -> ReadingClaim | None:
        """Claim the oldest waiting reading of this rung, or return None; rereadings come last."""
        query = (
            select(ReadingRow)
            .where(col(ReadingRow.state) == "waiting", col(ReadingRow.rung) == rung.value)
            .where(col(ReadingRow.generation) == self._generations.for_rung(rung))
            .order_by(col(ReadingRow.again), col(ReadingRow.created_at), col(ReadingRow.id))
        )
        async with self._rows.database.transaction(exclusive=False) as session:
            taken = await self._rows.claim(session, query)
            if taken is None:
                return None
            row, _ = taken
            # Only quick readings use up attempts: see the module.
            row.attempts += rung is Rung.QUICK
            details = row.details or {}
            begun = {BEGUN_AT: utc_now().isoformat(), BEGUN_FROM: row.pages_begun}
            row.details = {**details, **begun, BEGUN_SHARE: details.get(SHARE, 0.0)}
            lease = Lease(self._rows, row.id, "waiting", row.fence)
            claim = ReadingClaim(lease, row.id, row.sha256, rung, row.attempts, None)
            if rung is Rung.QUICK:
                return claim
            quick = await self._made(session, row, col(ReadingRow.generation) == self._generations.quick)
            if quick and FULL_SECONDS in quick.details:
                row.details = {**row.details, FULL_SECONDS: quick.details[FULL_SECONDS]}
            is_alike = col(ReadingRow.generation).startswith(self._generations.cut, autoescape=True)
            alike = await self._made(session, row, is_alike) if self._generations.cut else None
            return replace(claim, quick=quick, same_chunks=alike)

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

    async def note_progress(self, claim: ReadingClaim, share: float) -> None:
        """Record which share of the work is done, also in pages, to show progress of a long reading."""
        pages = int(share * claim.quick.pages + 1e-9) if claim.quick else 0
        async with self._rows.holding(claim.lease, exclusive=False) as (_, row):
            # A reading that starts again after a crash keeps its progress until it gets further.
            row.pages_begun = max(row.pages_begun, pages)
            details = row.details or {}
            row.details = {**details, SHARE: max(details.get(SHARE, 0.0), share)}

    async def finish(self, claim: ReadingClaim, made: ReadingResult) -> None:
        """Mark it done and plan what follows."""
        async with self._rows.holding(claim.lease) as (session, row):
            end_lease(row)
            row.state, row.done_at = "done", utc_now()
            row.title, row.pages, row.chunks, row.details = made.title, made.pages, made.chunks, made.details
            row.figures, row.space = made.figures, made.space
            await session.flush()
            await plan(session, self._generations, {row.sha256})

    async def fail(self, claim: ReadingClaim, reason: str, *, is_locked: bool = False) -> bool:
        """Record a document error: retry later, or fail for good; return True if it has failed.

        ``is_locked``: it lacks a password; ``LockedPdfs`` has it tried with another one.
        """
        async with self._rows.holding(claim.lease) as (session, row):
            end_lease(row, reason, self._rows.backoff(row.attempts))
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
        async with self._rows.database.snapshot() as session:
            return list(await session.scalars(query.distinct()))

    async def _give_up(self, session: AsyncSession, quick: Reading, full: ReadingRow) -> None:
        """Fail the quick reading without text that the full reading was to complete."""
        row = await session.get(ReadingRow, quick.id, with_for_update=True)
        if row is not None:
            row.state, row.attempts = "failed", MAX_ATTEMPTS
            row.reason, row.locked = full.reason, full.locked

    async def release(self, claim: ReadingClaim, reason: str | None = None, at_least: float = 0) -> None:
        """Release a claim, as ``LeasedQueue.release``, without counting the attempt."""
        async with self._rows.holding(claim.lease, exclusive=False) as (_, row):
            self._rows.release(row, reason, at_least)
            row.attempts -= claim.rung is Rung.QUICK

    async def requeue_base(self, claim: ReadingClaim, base: UUID, reason: str) -> None:
        """Release a full reading and requeue the reading from which it starts, whose files are lost."""
        async with self._rows.holding(claim.lease) as (session, row):
            end_lease(row, reason)
            await requeue_reading(session, base)


def _count_fault(row: ReadingRow) -> int:
    """Count an error of the file; return the number of errors since it began to wait."""
    faults: int = (row.details or {}).get(_FAULTS, 0) + 1
    row.details = {**(row.details or {}), _FAULTS: faults}
    return faults


async def requeue_reading(session: AsyncSession, reading: UUID) -> bool:
    """Requeue a finished reading whose files are lost or corrupt, under its id; False if it is not done."""
    row = await session.get(ReadingRow, reading, with_for_update=True)
    if row is None or row.state != "done":
        return False
    end_lease(row)
    row.state, row.attempts, row.pages_begun, row.done_at = "waiting", 0, 0, None
    return True
