"""What may go for good: retired publications after a grace, and the contents of deleted documents."""

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
from storage.queues.publication_queue import PublicationClaim, claim_of
from storage.sql.database import Database
from storage.sql.leases import Leases, has_no_lease, held, release
from storage.sql.tables import BlobRow, DocumentRow, PublicationRow, ReadingRow, VersionRow
from storage.threads import run_in_thread

# Documents given up by one purge; the next one goes on.
GIVEN_UP_BATCH_SIZE = 100
# A moment that lies further ahead was written by a clock that was wrong.
MAX_CLOCK_SKEW = timedelta(minutes=1)


class PurgeQueue:
    """Claims what may be removed and records that it was."""

    def __init__(
        self, database: Database, leases: Leases, retire_grace_seconds: float, delete_grace_seconds: float
    ) -> None:
        """Keep replaced publications and deleted documents for their grace."""
        self._database = database
        self._leases = leases
        self._retire_grace = timedelta(seconds=retire_grace_seconds)
        self._delete_grace = timedelta(seconds=delete_grace_seconds)

    async def claim(self) -> PublicationClaim | None:
        """Take a retired publication that no question can still be reading and no undo brings back."""
        now = utc_now()
        query = (
            select(PublicationRow)
            .join(VersionRow, col(VersionRow.id) == PublicationRow.version_id)
            .join(DocumentRow, col(DocumentRow.id) == VersionRow.document_id)
            .where(col(PublicationRow.state) == "retired")
            .where(col(PublicationRow.retired_at) <= now - self._retire_grace)
            .where(
                or_(
                    col(DocumentRow.state) != "deleted",
                    col(PublicationRow.retired_at) != DocumentRow.deleted_at,
                    col(DocumentRow.deleted_at) <= now - self._delete_grace,
                )
            )
            .order_by(col(PublicationRow.retired_at))
        )
        async with self._database.transaction() as session:
            taken = await self._leases.take(session, PublicationRow, query)
            return await claim_of(session, taken[0]) if taken else None

    async def finish(self, claim: PublicationClaim) -> None:
        """The index holds nothing of it any more."""
        async with self._database.transaction() as session:
            row = await held(session, claim.lease, PublicationRow)
            if row is not None:
                release(row)
                row.state = "removed"

    async def _restart_graces(self) -> None:
        """Let a grace that began in the future, by a clock that was ahead, begin now.

        A publication that was retired with its document stays paired with it, so that the deletion can be
        undone; any other one must not become so.
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
            await session.execute(retired.values(retired_at=now - timedelta(seconds=1)))
            await session.execute(deleted.values(deleted_at=now))

    async def drop_contents(self, blobs: Blobs) -> list[UUID]:
        """Drop the readings and blobs that only documents deleted long ago had.

        The blobs go after SQL has forgotten their readings, and before anything arrives again; those that a
        crash leaves are wanted by nobody, and swept by the reconciler.

        Returns:
            The readings whose files may be removed now.
        """
        await self._restart_graces()
        await self._give_up_documents()
        async with blobs.removing():
            dead, readings = await self._forget_contents()
            await run_in_thread(partial(blobs.remove_all, dead))
        if readings:
            reach("after-purge")
        return readings

    async def _forget_contents(self) -> tuple[list[str], list[UUID]]:
        """(contents that nobody wants any more, their readings, which SQL does not know from now on)."""
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

    async def _give_up_documents(self) -> None:
        """Nothing brings these back from now on: an interrupted purge may leave half of what they had.

        What was quoted from them goes first, so that a purge which dies meanwhile begins again.
        """
        is_over = (
            (col(DocumentRow.state) == "deleted")
            & (col(DocumentRow.deleted_at) <= utc_now() - self._delete_grace)
            & col(DocumentRow.purged_at).is_(None)
        )
        async with self._database.snapshot() as session:
            over = select(col(DocumentRow.id)).where(is_over)
            ids = list(await session.scalars(over.limit(GIVEN_UP_BATCH_SIZE)))
        if not ids:
            return
        await erase_quotes(self._database, ids)
        given_up = update(DocumentRow).where(col(DocumentRow.id).in_(ids), is_over)
        async with self._database.transaction() as session:
            await session.execute(given_up.values(purged_at=utc_now()))

    async def drop_older_generations(self, generations: Generations) -> list[UUID]:
        """Drop the readings of generations that are not wanted any more and that nothing needs.

        They are kept while anything that other generations made of the same content is in the index,
        so that settings that are changed back find them again. An older version is not read again, so
        the last reading of its content stays, too.

        Returns:
            The readings whose files may be removed now.
        """
        is_older = tuple_(col(ReadingRow.generation), col(ReadingRow.rung)).not_in(generations.pairs())
        longest = timedelta(seconds=2 * self._leases.seconds)
        is_free = has_no_lease(ReadingRow.lease_until, utc_now(), longest)
        is_idle = (col(ReadingRow.state) != "done") & ~_is_published()
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
    """True if a document has the content that is not given up."""
    return exists().where(
        col(VersionRow.sha256) == content.sha256,
        col(VersionRow.document_id) == DocumentRow.id,
        col(DocumentRow.purged_at).is_(None),
    )


def _is_published() -> ColumnElement[bool]:
    """True if the index may hold anything of this very reading."""
    return exists().where(
        col(PublicationRow.reading_id) == ReadingRow.id, col(PublicationRow.state) != "removed"
    )


def _is_last(generations: Generations) -> ColumnElement[bool]:
    """True if nothing newer, and nothing of these generations, was made of a content that a document has."""
    other = aliased(ReadingRow)
    is_wanted_now = tuple_(col(other.generation), col(other.rung)).in_(generations.pairs())
    better = exists().where(
        col(other.sha256) == ReadingRow.sha256,
        col(other.state) == "done",
        or_(is_wanted_now, col(other.done_at) > ReadingRow.done_at),
        or_(col(other.rung) == Rung.FULL.value, col(other.rung) == ReadingRow.rung),  # quick replaces no full
    )
    return (col(ReadingRow.state) == "done") & is_wanted(ReadingRow) & ~better


def _is_indexed(wanted: Generations | None = None) -> ColumnElement[bool]:
    """True if the index may hold anything of the content, made by other generations than the wanted ones."""
    other = aliased(ReadingRow)
    found = exists().where(
        col(other.sha256) == ReadingRow.sha256,
        col(PublicationRow.reading_id) == other.id,
        col(PublicationRow.state) != "removed",
    )
    if wanted is None:
        return found
    return found.where(tuple_(col(other.generation), col(other.rung)).not_in(wanted.pairs()))
