"""Planner: gaps are found without blocking writers and filled in batches."""

import asyncio
from uuid import UUID

import pytest
from sqlalchemy import func, select

from storage.chat.channels import Channels
from storage.models import ChannelKey, Platform, Rung
from storage.queues.planner import PLAN_BATCH_SIZE, GapFinder, Generations, plan
from storage.queues.reading_queue import MAX_ATTEMPTS, ReadingQueue
from storage.sql.database import Database
from storage.sql.leased_queue import LeasedQueue
from storage.sql.tables import BlobRow, DocumentRow, FolderRow, ReadingRow, VersionRow

GENERATIONS = Generations("q1", None)


@pytest.fixture
async def folder(database: Database) -> FolderRow:
    """An empty folder."""
    channel = await Channels(database).ensure(ChannelKey(Platform.LOCAL, "", "shelf"))
    async with database.transaction() as session:
        row = FolderRow(channel_id=channel.id, location="/shelf", watched=True)
        session.add(row)
    return row


async def shelve(database: Database, folder: FolderRow, file: str, versions: int = 1) -> list[str]:
    """Add a document with unread versions; return their sha256."""
    async with database.transaction() as session:
        row = DocumentRow(channel_id=folder.channel_id, folder_id=folder.id, file=file)
        session.add(row)
        contents = [f"{row.id.hex}{number:032x}" for number in range(1, versions + 1)]
        session.add_all(BlobRow(sha256=sha256, size=1) for sha256 in contents)
        await session.flush()
        numbered = enumerate(contents, start=1)
        session.add_all(VersionRow(document_id=row.id, number=n, sha256=sha256) for n, sha256 in numbered)
    return contents


async def readings(database: Database) -> dict[str, UUID]:
    """Return the reading ids by content."""
    async with database.snapshot() as session:
        return {row.sha256: row.id for row in await session.scalars(select(ReadingRow))}


async def test_planning_in_batches_lets_writers_in(database: Database, folder: FolderRow) -> None:
    """Shows that a question is received while a large home is planned."""
    async with database.transaction() as session:
        documents = [
            DocumentRow(channel_id=folder.channel_id, folder_id=folder.id, file=f"{number}.pdf")
            for number in range(2 * PLAN_BATCH_SIZE + 1)
        ]
        session.add_all([*documents, *(BlobRow(sha256=f"{row.id.hex:0<64}", size=1) for row in documents)])
        await session.flush()
        session.add_all(
            VersionRow(document_id=row.id, number=1, sha256=f"{row.id.hex:0<64}") for row in documents
        )
    look = asyncio.create_task(GapFinder(database, GENERATIONS).tick())
    seen = set()
    while not look.done():
        async with database.transaction() as session:
            seen.add(await session.scalar(select(func.count()).select_from(ReadingRow)))
    assert look.result() == 2 * PLAN_BATCH_SIZE + 1
    assert seen & {PLAN_BATCH_SIZE, 2 * PLAN_BATCH_SIZE}
    assert await GapFinder(database, GENERATIONS).tick() == 0


async def test_an_unreadable_version_falls_back_to_the_older_one(
    database: Database, folder: FolderRow
) -> None:
    """Shows that a failure plans only its own document, so that many failures do not scan the whole home."""
    old, new = await shelve(database, folder, "bad.pdf", versions=2)
    await shelve(database, folder, "unplanned.pdf")
    async with database.transaction() as session:
        await plan(session, GENERATIONS, {new})
    work = ReadingQueue(LeasedQueue(database, ReadingRow, "me", 60), GENERATIONS)
    for tries in range(1, MAX_ATTEMPTS + 1):
        claim = await work.claim(Rung.QUICK)
        assert claim is not None
        assert claim.sha256 == new
        assert await work.fail(claim, "It cannot be read.") is (tries == MAX_ATTEMPTS)
        async with database.transaction() as session:
            (await session.get_one(ReadingRow, claim.id)).next_attempt_at = None
    assert set(await readings(database)) == {old, new}
