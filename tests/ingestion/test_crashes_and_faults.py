"""Dead workers, failing engines, partial publications, several ingestions on one home."""

import asyncio
from functools import partial
from pathlib import Path

import pytest
from harness.ingestion_home import Home
from harness.waiting import PATIENCE
from samples.paper import pdf
from sqlalchemy import select, update

from ingestion.app import Ingestion
from ingestion.jobs.worker import Worker
from storage.errors import EngineStartError, LeaseLost, ReaderKilled
from storage.models import Rung
from storage.queues.planner import Generations, plan
from storage.queues.publication_queue import PublicationQueue
from storage.queues.reading_queue import MAX_ATTEMPTS, MAX_CRASHES, ReadingQueue
from storage.sql.leased_queue import LeasedQueue
from storage.sql.tables import PublicationRow, ReadingRow

LEAVE = pdf("Leave\nEmployees get twenty five days of marzipan leave a year.")


@pytest.fixture(autouse=True)
def short_pauses(home: Home) -> None:
    """Retry failures at once; stopping waits for no hanging reader."""
    home.given = {"max_backoff_seconds": 0.2, "make_worker": partial(Worker, drain_seconds=0.5)}


class StubbornReader:
    """A PDF reader that fails a number of times before it reads."""

    def __init__(self, home: Home, errors: list[Exception]) -> None:
        self._real = home.pdf
        self.errors = errors
        self.reads = 0

    async def fetch(self, path: Path) -> bytes:
        """Fail, or read."""
        self.reads += 1
        if self.errors:
            raise self.errors.pop(0)
        return await self._real.fetch(path)


def generations(home: Home) -> Generations:
    """Return the generations of this home's ingestions."""
    return home.ingestion(stop_at="quick").generations


async def test_a_reading_of_a_dead_worker_is_taken_over(home: Home) -> None:
    """Shows that its lease expires, and that the attempt counts."""
    await home.store("hr", "leave.pdf", LEAVE)
    dead = ReadingQueue(LeasedQueue(home.database, ReadingRow, "dead", 0.5), generations(home))
    assert await dead.claim(Rung.QUICK) is not None
    await home.serve(stop_at="quick")
    await home.until_found("hr", "marzipan", "leave.pdf")
    (row,) = await home.rows(ReadingRow)
    assert (row.attempts, row.fence) == (2, 2)


async def test_a_publication_of_a_dead_worker_gets_a_new_id(home: Home) -> None:
    """Shows that its partial data in the index is not used and is cleaned up."""
    await home.store("hr", "leave.pdf", LEAVE)
    home.index.is_down = True
    serving = await home.serve(stop_at="quick")
    await home.until_row(PublicationRow, lambda row: row.reason)
    await serving.stop()
    async with home.database.transaction() as session:
        free = {"next_attempt_at": None, "lease_owner": None, "lease_until": None}
        await session.execute(update(PublicationRow).values(free))
    dead = PublicationQueue(LeasedQueue(home.database, PublicationRow, "dead", 0.5))
    claim = await dead.claim(Rung.QUICK)
    assert claim is not None
    home.index.is_down = False
    await home.serve(stop_at="quick")
    live = await home.until_found("hr", "marzipan", "leave.pdf")
    assert live.id != claim.id
    with pytest.raises(LeaseLost):
        await dead.go_live(claim)
    await home.until_row(PublicationRow, lambda row: (row.id, row.state) == (claim.id, "removed"))


async def test_a_file_that_kills_its_process_ten_times_fails(home: Home) -> None:
    """Shows that attempts are counted before the file is opened."""
    await home.store("hr", "leave.pdf", LEAVE)
    dying = ReadingQueue(LeasedQueue(home.database, ReadingRow, "dying", 0.05), generations(home))
    for _ in range(MAX_CRASHES):
        assert await dying.claim(Rung.QUICK) is not None
        await asyncio.sleep(0.1)
    await home.serve(stop_at="quick")
    await home.until_row(ReadingRow, lambda row: row.state == "failed")
    (row,) = await home.rows(ReadingRow)
    assert "ten times" in row.reason


async def test_an_engine_outage_uses_up_no_attempts(home: Home) -> None:
    """Covers a PDF process that fails to start five times."""
    reader = StubbornReader(home, [EngineStartError("no memory")] * 5)
    serving = home.ingestion(stop_at="quick", pdf=reader)
    await serving.start(home.inbox)
    home.drop("hr/leave.pdf", LEAVE)
    await home.until_found("hr", "marzipan", "leave.pdf")
    (row,) = await home.rows(ReadingRow)
    assert (row.attempts, reader.reads) == (1, 6)


async def test_a_failing_file_is_attempted_three_times(home: Home) -> None:
    """Shows that two failures are retried and the third is final."""
    forgiven = StubbornReader(home, [ReaderKilled("It needs more memory than the limit.")] * 2)
    serving = home.ingestion(stop_at="quick", pdf=forgiven)
    await serving.start(home.inbox)
    home.drop("hr/leave.pdf", LEAVE)
    await home.until_found("hr", "marzipan", "leave.pdf")
    forgiven.errors += [ReaderKilled("It needs more memory than the limit.")] * 3
    home.drop("hr/other.pdf", pdf("Another one."))
    await home.until_row(ReadingRow, lambda row: row.state == "failed")
    assert (await home.documents("hr"))["other.pdf"].reason == "It needs more memory than the limit."


async def test_crashes_of_the_process_use_up_no_attempts(home: Home) -> None:
    """Shows that a power loss during a reading does not count as a failure of the file."""
    await home.store("hr", "leave.pdf", LEAVE)
    dying = ReadingQueue(LeasedQueue(home.database, ReadingRow, "dying", 0.05), generations(home))
    for _ in range(MAX_ATTEMPTS):
        assert await dying.claim(Rung.QUICK) is not None
        await asyncio.sleep(0.1)
    reader = StubbornReader(home, [ReaderKilled("The system stopped the reader.")] * 2)
    await home.ingestion(stop_at="quick", pdf=reader).start(home.inbox)
    await home.until_found("hr", "marzipan", "leave.pdf")


async def test_publishing_waits_for_an_unavailable_index(home: Home) -> None:
    """Shows that no attempt is counted and no publication retired during the outage."""
    home.index.is_down = True
    await home.serve(stop_at="quick")
    home.drop("hr/leave.pdf", LEAVE)
    await home.until_row(PublicationRow, lambda row: row.reason)
    await asyncio.sleep(1.5)
    (waiting,) = await home.rows(PublicationRow)
    assert waiting.attempts == 0
    home.index.is_down = False
    live = await home.until_found("hr", "marzipan", "leave.pdf")
    assert live.id == waiting.id


async def test_an_uncertain_publication_gets_a_new_id(home: Home) -> None:
    """Shows that an id which the index may hold in part is retired, removed and never shown."""
    home.index.fails_while_writing = 1
    home.index.loses = 1
    await home.serve(stop_at="quick")
    home.drop("hr/leave.pdf", LEAVE)
    live = await home.until_found("hr", "marzipan", "leave.pdf")
    rows = {row.id: row.state for row in await home.rows(PublicationRow)}
    assert len(rows) == 3
    assert [id for id, state in rows.items() if state == "live"] == [live.id]
    tenant = (await home.channel("hr")).tenant

    async def is_clean() -> bool:
        return set(await home.index.publications(tenant)) == {live.id}

    await home.until(is_clean)


async def test_two_ingestions_on_one_home_do_each_step_once(home: Home) -> None:
    readers = [StubbornReader(home, []), StubbornReader(home, [])]
    for reader in readers:
        await home.ingestion(pdf=reader).start(home.inbox)
    for number in range(8):
        home.drop(f"hr/{number}.pdf", pdf(f"Page\nThe word is marzipan{number}."))
    for number in range(8):
        await home.until_found("hr", f"marzipan{number}", f"{number}.pdf", Rung.FULL)
    assert sum(reader.reads for reader in readers) == 8
    assert len(home.index.sealed) == len(set(home.index.sealed)) == 16
    assert len(await home.rows(ReadingRow)) == 16


async def test_stopping_releases_unfinished_steps_at_once(home: Home) -> None:
    """Shows that the next start need not wait for leases, and that no attempt is lost."""
    reader = HangingReader()
    first = home.ingestion(stop_at="quick", lease_seconds=600, pdf=reader)
    await first.start(home.inbox)
    home.drop("hr/leave.pdf", LEAVE)
    await asyncio.wait_for(reader.is_reading.wait(), PATIENCE)
    await first.stop()
    (row,) = await home.rows(ReadingRow)
    assert (row.lease_owner, row.attempts) == (None, 0)
    await home.serve(stop_at="quick")
    await home.until_found("hr", "marzipan", "leave.pdf")


class HangingReader:
    """A PDF reader that hangs."""

    def __init__(self) -> None:
        self.is_reading = asyncio.Event()

    async def fetch(self, path: Path) -> bytes:
        """Hang."""
        self.is_reading.set()
        await asyncio.Event().wait()
        raise AssertionError(path)


async def test_a_lost_lease_ends_the_step(home: Home) -> None:
    """Shows that a worker whose row was taken over stops and changes nothing."""
    reader = HangingReader()
    slow = home.ingestion(stop_at="quick", pdf=reader)
    await slow.start(home.inbox)
    home.drop("hr/leave.pdf", LEAVE)
    await asyncio.wait_for(reader.is_reading.wait(), PATIENCE)
    async with home.database.transaction() as session:
        (row,) = await session.scalars(select(ReadingRow))
        row.fence += 1
        row.lease_owner = row.lease_until = None
    reader.is_reading.clear()
    await asyncio.wait_for(reader.is_reading.wait(), PATIENCE)
    (row,) = await home.rows(ReadingRow)
    assert row.lease_owner is not None


async def test_planning_fills_the_gaps_left_by_a_crash(home: Home) -> None:
    """Missing rows are derived from existing ones; a second plan adds nothing."""
    ingestion: Ingestion = home.ingestion()
    await home.store("hr", "leave.pdf", LEAVE)
    async with home.database.transaction() as session:
        for row in await session.scalars(select(ReadingRow)):
            await session.delete(row)
    for expected in (1, 0):
        async with home.database.transaction() as session:
            assert await plan(session, ingestion.generations) == expected
