"""Purge: retired publications after a grace period, and the contents of deleted documents."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from uuid import UUID

from sqlalchemy import ColumnElement, delete, exists, or_, select, tuple_, update
from sqlalchemy.orm import aliased
from sqlmodel import col

from storage.chat.retention import erase_quotes
from storage.clock import utc_now
from storage.crash_points import reach
from storage.files.blobs import Blobs
from storage.models import Rung
from storage.queues.planner import Generations, are_current_generations
from storage.queues.publication_queue import PublicationClaim, load_claim
from storage.sql.leased_queue import LeasedQueue, end_lease
from storage.sql.tables import BlobRow, DocumentRow, PublicationRow, ReadingRow, VersionRow
from storage.threads import run_in_thread

# Documents per purge; the next purge continues.
PURGE_BATCH_SIZE = 100
# A time further ahead was written by a wrong clock.
MAX_CLOCK_SKEW = timedelta(minutes=1)


class PurgeQueue:
    """Claims publications to remove from the index, and purges contents."""

    def __init__(
        self, rows: LeasedQueue[PublicationRow], retire_grace_seconds: float, delete_grace_seconds: float
    ) -> None:
        """Keep replaced publications and deleted documents for their grace periods."""
        self._rows = rows
        self._database = rows.database
        self._retire_grace = timedelta(seconds=retire_grace_seconds)
        self._delete_grace = timedelta(seconds=delete_grace_seconds)

    async def claim(self) -> PublicationClaim | None:
        """Claim a retired publication that no question can still read and no undo can restore."""
        now = utc_now()
        query = (
            select(PublicationRow)
            .join(VersionRow, col(VersionRow.id) == PublicationRow.version_id)
            .join(DocumentRow, col(DocumentRow.id) == VersionRow.document_id)
            .where(col(PublicationRow.state) == "retired")
            .where(col(PublicationRow.retired_at) <= now - self._retire_grace)
            .where(
                or_(
                    # An undo restores only what was retired together with its document.
                    col(DocumentRow.state) != "deleted",
                    col(PublicationRow.retired_at) != DocumentRow.deleted_at,
                    col(DocumentRow.deleted_at) <= now - self._delete_grace,
                )
            )
            .order_by(col(PublicationRow.retired_at))
        )
        async with self._database.transaction() as session:
            taken = await self._rows.claim(session, query)
            return await load_claim(session, self._rows, taken[0]) if taken else None

    async def finish(self, claim: PublicationClaim) -> None:
        """Mark the publication as removed from the index."""
        async with self._rows.holding(claim.lease) as (_, row):
            end_lease(row)
            row.state = "removed"

    async def _restart_graces(self) -> None:
        """Restart grace periods that begin in the future, set by a clock that was ahead.

        A publication retired with its document stays paired with it by an equal time, so that the deletion
        can be undone; no other one may become paired.
        """
        now = utc_now()
        is_ahead = col(PublicationRow.retired_at) > now + MAX_CLOCK_SKEW
        went_along = exists().where(
            col(VersionRow.id) == PublicationRow.version_id,
            col(VersionRow.document_id) == DocumentRow.id,
            col(DocumentRow.deleted_at) == PublicationRow.retired_at,
        )
        retired = update(PublicationRow).where(col(PublicationRow.state) == "retired", is_ahead)
        deleted = update(DocumentRow).where(col(DocumentRow.deleted_at) > now + MAX_CLOCK_SKEW)
        async with self._database.transaction() as session:
            await session.execute(retired.where(went_along).values(retired_at=now))
            # A second earlier, so that it equals no document's time of deletion.
            await session.execute(retired.values(retired_at=now - timedelta(seconds=1)))
            await session.execute(deleted.values(deleted_at=now))

    async def drop_contents(self, blobs: Blobs) -> list[UUID]:
        """Drop the readings and blobs that only long-deleted documents had.

        Blobs are removed after SQL has dropped their readings, and before any can be added again; those left
        by a crash are unreferenced, and the reconciler removes them.

        Returns:
            The readings whose files may be removed now.
        """
        await self._restart_graces()
        await self._mark_purged()
        async with blobs.removing():
            dead, readings = await self._forget_contents()
            await run_in_thread(partial(blobs.remove_all, dead))
        if readings:
            reach("after-purge")
        return readings

    async def _forget_contents(self) -> tuple[list[str], list[UUID]]:
        """Delete the rows of unreferenced contents; return (those contents, their readings)."""
        async with self._database.transaction() as session:
            gone = (
                select(col(VersionRow.sha256))
                .join(DocumentRow, col(DocumentRow.id) == VersionRow.document_id)
                .where(col(DocumentRow.purged_at).is_not(None))
            )
            contents = select(col(ReadingRow.sha256)).where(col(ReadingRow.sha256).in_(gone)).distinct()
            unwanted = contents.where(~is_wanted(ReadingRow), ~_is_indexed()).limit(100)
            dead = list(await session.scalars(unwanted))
            query = select(col(ReadingRow.id)).where(col(ReadingRow.sha256).in_(dead))
            readings = list(await session.scalars(query))
            await session.execute(delete(PublicationRow).where(col(PublicationRow.reading_id).in_(readings)))
            await session.execute(delete(ReadingRow).where(col(ReadingRow.id).in_(readings)))
        return dead, readings

    async def _mark_purged(self) -> None:
        """Mark documents as purged after their grace period, so that none is restored with half of its data.

        Their quotes are erased first, so that a purge that dies in between starts again.
        """
        is_over = (
            (col(DocumentRow.state) == "deleted")
            & (col(DocumentRow.deleted_at) <= utc_now() - self._delete_grace)
            & col(DocumentRow.purged_at).is_(None)
        )
        async with self._database.snapshot() as session:
            over = select(col(DocumentRow.id)).where(is_over)
            ids = list(await session.scalars(over.limit(PURGE_BATCH_SIZE)))
        if not ids:
            return
        await erase_quotes(self._database, ids)
        given_up = update(DocumentRow).where(col(DocumentRow.id).in_(ids), is_over)
        async with self._database.transaction() as session:
            await session.execute(given_up.values(purged_at=utc_now()))

    async def drop_older_generations(self, generations: Generations) -> list[UUID]:
        """Drop unneeded readings of generations that are no longer current.

        They are kept while the index holds anything that other generations made of the same content, so that
        reverted settings find them again. The last reading of a content is kept, too, because an older
        version is not read again.

        Returns:
            The readings whose files may be removed now.
        """
        is_older = tuple_(col(ReadingRow.generation), col(ReadingRow.rung)).not_in(generations.pairs())
        is_free = LeasedQueue(self._database, ReadingRow, seconds=self._rows.seconds).is_free()
        # The index may hold something of this very reading.
        is_published = exists().where(
            col(PublicationRow.reading_id) == ReadingRow.id, col(PublicationRow.state) != "removed"
        )
        is_idle = (col(ReadingRow.state) != "done") & ~is_published
        is_needed = _is_indexed(generations) | _is_last(generations)
        query = select(col(ReadingRow.id)).where(is_older, is_free, or_(is_idle, ~is_needed))
        async with self._database.transaction() as session:
            if not await are_current_generations(session, generations):
                return []
            readings = list(await session.scalars(query.limit(500)))
            await session.execute(delete(PublicationRow).where(col(PublicationRow.reading_id).in_(readings)))
            await session.execute(delete(ReadingRow).where(col(ReadingRow.id).in_(readings)))
        return readings


def is_wanted(content: type[BlobRow] | type[ReadingRow]) -> ColumnElement[bool]:
    """True if a document that is not purged has the content."""
    return exists().where(
        col(VersionRow.sha256) == content.sha256,
        col(VersionRow.document_id) == DocumentRow.id,
        col(DocumentRow.purged_at).is_(None),
    )


def _is_last(generations: Generations) -> ColumnElement[bool]:
    """True if a document's content has no newer reading, and none of these generations."""
    other = aliased(ReadingRow)
    is_wanted_now = tuple_(col(other.generation), col(other.rung)).in_(generations.pairs())
    better = exists().where(
        col(other.sha256) == ReadingRow.sha256,
        col(other.state) == "done",
        or_(is_wanted_now, col(other.done_at) > ReadingRow.done_at),
        # A quick reading replaces no full one.
        or_(col(other.rung) == Rung.FULL.value, col(other.rung) == ReadingRow.rung),
    )
    return (col(ReadingRow.state) == "done") & is_wanted(ReadingRow) & ~better


def _is_indexed(wanted: Generations | None = None) -> ColumnElement[bool]:
    """True if the index may hold anything of the content, made by other generations than ``wanted``."""
    other = aliased(ReadingRow)
    found = exists().where(
        col(other.sha256) == ReadingRow.sha256,
        col(PublicationRow.reading_id) == other.id,
        col(PublicationRow.state) != "removed",
    )
    if wanted is None:
        return found
    return found.where(tuple_(col(other.generation), col(other.rung)).not_in(wanted.pairs()))
