"""Documents written directly into the tables, for tests of notices."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, count
from uuid import UUID

from sqlalchemy import select
from sqlmodel import col

from storage.chat.channels import Channels
from storage.chat.notification_events import record_failed
from storage.chat.notifications import OUTAGE, SOURCE_CHANGED, SOURCE_FAILED, Notices, relevant
from storage.chat_models import Notice
from storage.models import Channel, ChannelKey, Rung
from storage.queues.publication_queue import PublicationQueue
from storage.sql.database import Database
from storage.sql.leased_queue import LeasedQueue
from storage.sql.tables import (
    BlobRow,
    DocumentRow,
    FolderRow,
    NoticeRow,
    PublicationRow,
    ReadingRow,
    VersionRow,
)

LEASE = 60
KINDS = ("live", "failed", "stranger", "folder", SOURCE_FAILED, SOURCE_CHANGED, OUTAGE)


async def recent_notices(database: Database, channel_id: int, limit: int) -> list[Notice]:
    """Return a channel's newest notices that are still true, newest first."""
    own = (col(NoticeRow.channel_id) == channel_id) & (col(NoticeRow.state) != "dropped")
    async with database.snapshot() as session:
        kinds = [(await relevant(session, kind, own, limit, newest_first=True))[1] for kind in KINDS]
    return sorted(chain.from_iterable(kinds), key=lambda one: one.created_at, reverse=True)[:limit]


@dataclass
class NoticeShelf:
    """A channel's documents, written directly into the tables."""

    database: Database
    channel: Channel
    folder: int

    def __post_init__(self) -> None:
        self._numbers = count(1)
        self.notices = Notices(self.database)

    async def add(
        self, file: str, state: str = "done", document: UUID | None = None, **reading: object
    ) -> int:
        """Add a version whose quick reading has this state and these columns; return its id."""
        number = next(self._numbers)
        sha256 = f"{self.folder:032x}{number:032x}"
        async with self.database.transaction() as session:
            session.add(BlobRow(sha256=sha256, size=1))
            if document is None:
                row = DocumentRow(channel_id=self.channel.id, folder_id=self.folder, file=file)
                session.add(row)
                document = row.id
            await session.flush()
            version = VersionRow(document_id=document, number=number, sha256=sha256)
            session.add_all([version, _reading(sha256, state, **reading)])
            await session.flush()
            return version.id

    async def publish(self, version: int) -> bool:
        """Make a version live, as a worker does."""
        await self.finish(version)
        return await self.go_live()

    async def finish(self, version: int) -> None:
        """Finish the reading of a version, whose publication is pending then."""
        async with self.database.transaction() as session:
            row = await session.get_one(VersionRow, version)
            reading = await session.scalar(select(ReadingRow).where(col(ReadingRow.sha256) == row.sha256))
            assert reading is not None
            reading.state = "done"
            session.add(PublicationRow(channel_id=self.channel.id, version_id=version, reading_id=reading.id))

    async def go_live(self) -> bool:
        """Make the oldest pending version live."""
        work = PublicationQueue(LeasedQueue(self.database, PublicationRow, "worker", LEASE))
        claim = await work.claim(Rung.QUICK)
        assert claim is not None
        return await work.go_live(claim)

    async def document_of(self, version: int) -> UUID:
        """Return the document of a version."""
        async with self.database.snapshot() as session:
            return (await session.get_one(VersionRow, version)).document_id

    async def told(self) -> list[NoticeRow]:
        """Return every notice, oldest first."""
        async with self.database.snapshot() as session:
            return list(await session.scalars(select(NoticeRow).order_by(col(NoticeRow.id))))

    async def fail(self, version: int) -> None:
        """Record that a version is unreadable."""
        async with self.database.transaction() as session:
            row = await session.get_one(VersionRow, version)
            await record_failed(session, {row.sha256})


def _reading(sha256: str, state: str, **columns: object) -> ReadingRow:
    return ReadingRow(sha256=sha256, generation="g1", rung="quick", state=state, pages=2, chunks=3, **columns)


async def open_shelf(database: Database, key: ChannelKey) -> NoticeShelf:
    """Return an empty folder of one channel."""
    channel = await Channels(database).ensure(key)
    async with database.transaction() as session:
        folder = FolderRow(channel_id=channel.id, location=f"/srv/{channel.id}", watched=True)
        session.add(folder)
        await session.flush()
        return NoticeShelf(database, channel, folder.id)
