"""Reading queue: several worker processes plan once and claim each row once."""

from datetime import timedelta
from uuid import UUID

import pytest
from harness.clocks import shift_wall_clock
from samples.databases import run_at_once
from sqlalchemy import func, select
from sqlmodel import col

from storage.chat.channels import Channels
from storage.errors import LeaseLost
from storage.models import ChannelKey, Platform, Rung
from storage.queues.planner import Generations, plan
from storage.queues.reading_queue import ReadingQueue, ReadingResult
from storage.sql.database import Database
from storage.sql.leased_queue import LeasedQueue
from storage.sql.tables import BlobRow, DocumentRow, FolderRow, PublicationRow, ReadingRow, VersionRow

WORKING = """
import asyncio, os, sys
from storage.sql.database import Database
from storage.sql.leased_queue import LeasedQueue
from storage.models import Rung
from storage.queues.planner import Generations, plan
from storage.queues.reading_queue import ReadingQueue
from storage.sql.tables import ReadingRow

async def main():
    url, number = sys.argv[1:]
    database = await Database.open(url, busy_seconds=300)
    generations = Generations("q1", None)
    work = ReadingQueue(LeasedQueue(database, ReadingRow, f"worker {number}", 600), generations)

    async def claim_all():
        while claim := await work.claim(Rung.QUICK):
            os.write(1, f"claimed {claim.id}\\n".encode())

    async with database.transaction() as session:
        os.write(1, f"planned {await plan(session, generations)}\\n".encode())
    await asyncio.gather(*(claim_all() for _ in range(3)))
    await database.aclose()

asyncio.run(main())
"""


async def fill(database: Database, count: int) -> None:
    """Add documents with one unread version each."""
    channel = await Channels(database).ensure(ChannelKey(Platform.LOCAL, "", "shelf"))
    async with database.transaction() as session:
        folder = FolderRow(channel_id=channel.id, location="/shelf", watched=True)
        session.add(folder)
        await session.flush()
        files = [f"{number}.pdf" for number in range(count)]
        documents = [DocumentRow(channel_id=channel.id, folder_id=folder.id, file=file) for file in files]
        session.add_all(documents)
        session.add_all(BlobRow(sha256=row.id.hex, size=1) for row in documents)
        await session.flush()
        session.add_all(VersionRow(document_id=row.id, number=1, sha256=row.id.hex) for row in documents)


async def test_three_processes_plan_and_claim_each_reading_once(
    database: Database, database_url: str
) -> None:
    """Among three concurrent plans one fills the gaps and the others add nothing.

    Each row is claimed by one worker, and no pending row is skipped.
    """
    await fill(database, 200)
    told = [line.split() for line in await run_at_once(3, WORKING, database_url)]
    assert sorted(int(added) for what, added in told if what == "planned") == [0, 0, 200]
    taken = [UUID(one) for what, one in told if what == "claimed"]
    assert len(taken) == len(set(taken)) == 200
    async with database.snapshot() as session:
        fences = (await session.execute(select(ReadingRow.fence, ReadingRow.attempts).distinct())).all()
        assert await session.scalar(select(func.count()).select_from(ReadingRow)) == 200
        assert await session.scalar(select(func.count()).select_from(PublicationRow)) == 0
    assert [tuple(row) for row in fences] == [(1, 1)]


@pytest.mark.parametrize("resting", [False, True])
async def test_leases_and_delays_from_a_fast_clock_are_ignored(database: Database, resting: bool) -> None:
    """Shows that a dead worker's lease and a long delay from a fast clock are not waited for."""
    await fill(database, 1)
    generations = Generations("q1", None)
    with shift_wall_clock(timedelta(hours=3)):
        async with database.transaction() as session:
            await plan(session, generations)
        early = ReadingQueue(LeasedQueue(database, ReadingRow, "early", 15), generations)
        claim = await early.claim(Rung.QUICK)
        assert claim is not None
        if resting:
            await early.release(claim, "the index does not answer", 30)
    late = ReadingQueue(LeasedQueue(database, ReadingRow, "late", 15), generations)
    assert await late.claim(Rung.QUICK) is not None
    assert await late.claim(Rung.QUICK) is None


async def test_the_page_count_of_a_restarted_reading_never_falls(database: Database) -> None:
    """Shows that the progress shown for a full reading survives a release and a new claim."""
    await fill(database, 1)
    generations = Generations("q1", "f1")
    async with database.transaction() as session:
        (sha256,) = await session.scalars(select(BlobRow.sha256))
        session.add(ReadingRow(sha256=sha256, generation="f1", rung="full"))
        session.add(ReadingRow(sha256=sha256, generation="q1", rung="quick", state="done", pages=100))
    work = ReadingQueue(LeasedQueue(database, ReadingRow, "worker", 15), generations)
    shown = []
    for pages in (70, 10, 80):
        claim = await work.claim(Rung.FULL)
        assert claim is not None
        await work.note_progress(claim, pages / 100)
        await work.release(claim)
        async with database.snapshot() as session:
            of_full = select(ReadingRow.pages_begun).where(col(ReadingRow.rung) == "full")
            shown.append(await session.scalar(of_full))
    assert shown == [70, 70, 80]


async def test_a_stale_owner_cannot_change_a_reading(database: Database) -> None:
    """Fencing: after a takeover no step of the first worker has an effect."""
    await fill(database, 1)
    generations = Generations("q1", None)
    async with database.transaction() as session:
        await plan(session, generations)
    slow = ReadingQueue(LeasedQueue(database, ReadingRow, "slow", 15), generations)
    quick = ReadingQueue(LeasedQueue(database, ReadingRow, "quick", 15), generations)
    lost = await slow.claim(Rung.QUICK)
    with shift_wall_clock(timedelta(seconds=16)):
        assert lost is not None
        assert await quick.claim(Rung.QUICK)

    async def row() -> ReadingRow:
        async with database.snapshot() as session:
            return (await session.scalars(select(ReadingRow))).one()

    before = await row()
    for step in (
        lost.lease.renew(),
        slow.finish(lost, ReadingResult("late", 9, 9, {})),
        slow.fail(lost, "late"),
        slow.note_progress(lost, 0.9),
        slow.release(lost, "late"),
        slow.requeue_base(lost, lost.id, "late"),
    ):
        with pytest.raises(LeaseLost):
            await step
    assert await row() == before
