"""Queue of publications: compare-and-sets on the ``publication`` table, pending -> live -> retired.

Going live is one transaction: readers see the old publication or the new one, never none or both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID, uuid4

from sqlalchemy import Select, func, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from storage.chat.answer_sources import mark_outdated, record_page_notes
from storage.chat.notification_events import record_live, record_unstorable
from storage.clock import utc_now
from storage.models import Rung, TenantName
from storage.queues.reading_queue import requeue_reading
from storage.sql.database import Database
from storage.sql.document_state import newest_number
from storage.sql.leased_queue import Lease, LeasedQueue, end_lease
from storage.sql.tables import ChannelRow, DocumentRow, PublicationRow, ReadingRow, VersionRow

# All live publications, with the columns for ``read_expected``.
LIVE = (
    select(
        col(PublicationRow.id),
        col(ChannelRow.tenant),
        col(ReadingRow.chunks) + col(ReadingRow.figures),
        col(ReadingRow.space),
        col(ReadingRow.state),
    )
    .join(ChannelRow, col(ChannelRow.id) == PublicationRow.channel_id)
    .join(ReadingRow, col(ReadingRow.id) == PublicationRow.reading_id)
    .where(col(PublicationRow.state) == "live")
)

_RANKS = [Rung.QUICK, Rung.FULL]


@dataclass(frozen=True, slots=True)
class PublicationClaim:
    """Publication claimed for writing into its tenant, or for removal from it."""

    lease: Lease
    id: UUID
    tenant: TenantName
    document_id: UUID
    folder_id: int
    version: int
    sha256: str
    # The content is password-protected.
    is_locked: bool
    reading_id: UUID
    rung: Rung
    # Title of the reading; '' if it has none.
    title: str
    file: str
    pages: int
    chunks: int
    figures: int
    # Vector space of the reading; None if it has no vectors.
    space: str | None

    @property
    def objects(self) -> int:
        """Number of its objects in the index: chunks, followed by figures."""
        return self.chunks + self.figures


class ExpectedPublication(NamedTuple):
    """Live publication and what the index has to hold of it."""

    id: UUID
    tenant: TenantName
    # Chunks and figures.
    objects: int
    vectors: int
    space: str | None
    # True if its reading is finished; a lost one has to be made again first.
    is_read: bool


async def read_expected(
    database: Database, live: Select[UUID, str, int, str | None, str]
) -> list[ExpectedPublication]:
    """Return what the index has to hold of the publications selected from ``LIVE``."""
    async with database.snapshot() as session:
        rows = (await session.execute(live)).all()
    return [
        ExpectedPublication(id, TenantName(tenant), objects, objects if space else 0, space, state == "done")
        for id, tenant, objects, space, state in rows
    ]


class PublicationQueue:
    """Claims publications, makes them live and retires their predecessors.

    Calls with a claim raise LeaseLost if another worker has the publication.
    """

    def __init__(self, rows: LeasedQueue[PublicationRow]) -> None:
        self._rows = rows
        self._database = rows.database

    async def claim(self, rung: Rung) -> PublicationClaim | None:
        """Claim the oldest pending publication of a reading of this rung, or return None.

        One held by a dead worker gets a new id first, because it is unknown what the index received of it.
        """
        query = (
            select(PublicationRow)
            .join(ReadingRow, col(ReadingRow.id) == PublicationRow.reading_id)
            .where(col(PublicationRow.state) == "pending", col(PublicationRow.rung) == rung.value)
            .where(col(ReadingRow.state) == "done")
            .order_by(col(PublicationRow.created_at), col(PublicationRow.id))
        )
        async with self._database.transaction(exclusive=False) as session:
            taken = await self._rows.claim(session, query)
            if taken is None:
                return None
            row, was_abandoned = taken
            if was_abandoned:
                row = _replace(session, row)
                self._rows.lease(row)
                await session.flush()
            return await load_claim(session, self._rows, row)

    async def go_live(self, claim: PublicationClaim) -> bool:
        """Make it live; return False if overtaken: document deleted, something better live."""
        async with self._rows.holding(claim.lease) as (session, row):
            end_lease(row)
            document = await session.get(DocumentRow, claim.document_id, with_for_update=True)
            live = await _live_of(session, claim.document_id)
            # A newer version outranks an older one; of the same version, full outranks quick.
            mine = (claim.version, _RANKS.index(claim.rung))
            if document is None or document.state == "deleted" or any(rank > mine for _, rank in live):
                _retire(row)
                return False
            for predecessor, _ in live:
                _retire(predecessor)
            row.state, row.live_at = "live", utc_now()
            # Only when the version was not live yet: a full reading that replaces a quick one is no news.
            if all(number != claim.version for _, (number, _) in live):
                await record_live(session, row)
                await mark_outdated(session, [claim.document_id])
                await record_page_notes(session, row)
            return True

    async def refuse(self, claim: PublicationClaim, reason: str) -> None:
        """Retire a version whose folder has no password for its content.

        ``reason`` is a message for an admin. An older version keeps answering.
        """
        async with self._rows.holding(claim.lease) as (session, row):
            end_lease(row)
            _retire(row)
            document = await session.get_one(DocumentRow, claim.document_id, with_for_update=True)
            version = await session.get_one(VersionRow, row.version_id)
            version.locked = True
            for live, (number, _) in await _live_of(session, claim.document_id):
                if number == claim.version:
                    _retire(live)
            is_newest = await session.scalar(
                select(newest_number(VersionRow) == col(VersionRow.number)).where(
                    col(VersionRow.id) == version.id
                )
            )
            if is_newest and document.state == "present":
                document.state, document.reason = "quarantined", reason
                await record_unstorable(session, document, reason)
            await mark_outdated(session, [claim.document_id])

    async def retry_under_new_id(self, claim: PublicationClaim, reason: str | None = None) -> None:
        """Retire this id, of which the index may hold anything, and release a new one in its place."""
        async with self._rows.holding(claim.lease) as (session, row):
            self._rows.release(_replace(session, row), reason)

    async def release(self, claim: PublicationClaim, reason: str | None = None) -> None:
        """Release the unwritten row, as ``LeasedQueue.release``."""
        async with self._rows.holding(claim.lease, exclusive=False) as (_, row):
            self._rows.release(row, reason)

    async def requeue_reading(self, claim: PublicationClaim, reason: str) -> None:
        """Release the unwritten row and queue its reading, whose files are lost, for another run."""
        async with self._rows.holding(claim.lease) as (session, row):
            end_lease(row, reason)
            await requeue_reading(session, claim.reading_id)

    async def newest_live(self, limit: int) -> list[ExpectedPublication]:
        """Return the publications that went live last, newest first."""
        newest = LIVE.order_by(col(PublicationRow.live_at).desc(), col(PublicationRow.id)).limit(limit)
        return await read_expected(self._database, newest)

    async def pending(self) -> int:
        """Return the number of finished readings that are not published yet."""
        query = (
            select(func.count())
            .select_from(PublicationRow)
            .join(ReadingRow, col(ReadingRow.id) == PublicationRow.reading_id)
            .where(col(PublicationRow.state) == "pending", col(ReadingRow.state) == "done")
        )
        return int((await self._database.rows(query))[0][0])

    async def replace_live(self, publication: UUID) -> bool:
        """Publish it again under a new id, as the index lost a part of it; the old one answers until then.

        Returns False if it is no longer live, or if its successor is pending.
        """
        async with self._database.transaction() as session:
            row = await session.get(PublicationRow, publication, with_for_update=True)
            if row is None or row.state != "live":
                return False
            successor = select(PublicationRow).filter_by(
                version_id=row.version_id, reading_id=row.reading_id, state="pending"
            )
            if (await session.scalars(successor)).first() is not None:
                return False
            session.add(_copy(row))
            return True


async def republish(session: AsyncSession, document: UUID) -> None:
    """Publish again what is live of a document, whose name has changed: names are searched, too."""
    for row, _ in await _live_of(session, document):
        session.add(_copy(row))


def _replace(session: AsyncSession, row: PublicationRow) -> PublicationRow:
    """Retire a pending row and add its successor with the same fence."""
    successor = _copy(row)
    successor.fence = row.fence
    end_lease(row)
    _retire(row)
    session.add(successor)
    return successor


def _copy(row: PublicationRow) -> PublicationRow:
    return PublicationRow(
        id=uuid4(),
        channel_id=row.channel_id,
        version_id=row.version_id,
        reading_id=row.reading_id,
        rung=row.rung,
    )


def _retire(row: PublicationRow) -> None:
    row.state, row.retired_at = "retired", utc_now()


async def _live_of(session: AsyncSession, document: UUID) -> list[tuple[PublicationRow, tuple[int, int]]]:
    """Return a document's live publications, each with its rank: (version number, rung)."""
    query = (
        select(PublicationRow, col(VersionRow.number), col(ReadingRow.rung))
        .join(VersionRow, col(VersionRow.id) == PublicationRow.version_id)
        .join(ReadingRow, col(ReadingRow.id) == PublicationRow.reading_id)
        .where(col(VersionRow.document_id) == document, col(PublicationRow.state) == "live")
    )
    rows = (await session.execute(query)).all()
    return [(row, (number, _RANKS.index(Rung(rung)))) for row, number, rung in rows]


async def load_claim(
    session: AsyncSession, rows: LeasedQueue[PublicationRow], row: PublicationRow
) -> PublicationClaim:
    """Return all that a worker needs to know about a publication that it holds."""
    query = (
        select(ChannelRow, DocumentRow, VersionRow, ReadingRow)
        .select_from(VersionRow)
        .join(DocumentRow, col(DocumentRow.id) == VersionRow.document_id)
        .join(ChannelRow, col(ChannelRow.id) == row.channel_id)
        .join(ReadingRow, col(ReadingRow.id) == row.reading_id)
        .where(col(VersionRow.id) == row.version_id)
    )
    channel, document, version, reading = (await session.execute(query)).one()
    return PublicationClaim(
        lease=Lease(rows, row.id, row.state, row.fence),
        id=row.id,
        tenant=TenantName(channel.tenant),
        document_id=document.id,
        folder_id=document.folder_id,
        version=version.number,
        sha256=version.sha256,
        is_locked=bool((reading.details or {}).get("is_locked")),
        reading_id=reading.id,
        rung=Rung(reading.rung),
        title=reading.title,
        file=document.file,
        pages=reading.pages,
        chunks=reading.chunks,
        figures=reading.figures,
        space=reading.space,
    )
