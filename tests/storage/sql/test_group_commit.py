"""Group commit: concurrent transactions share a commit without affecting each other."""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from functools import partial
from itertools import count
from pathlib import Path

import pytest
from harness.waiting import PATIENCE
from samples.databases import keep, names_in
from sqlalchemy import Connection, Engine, event, text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

from storage.errors import DatabaseUnavailable
from storage.sql.database import Database
from storage.sql.group_commit import GroupCommit, connect
from storage.sql.tables import FactRow, FolderRow


@pytest.fixture
def database_url(sqlite_url: str) -> str:
    """SQLite only: PostgreSQL has group commit of its own."""
    return sqlite_url


class BriefDatabase(Database):
    """A database whose transactions are all brief."""

    @asynccontextmanager
    async def transaction(self, *, exclusive: bool = True, brief: bool = True) -> AsyncIterator[AsyncSession]:
        """Yield a session that may write."""
        async with super().transaction(exclusive=exclusive, brief=brief) as session:
            yield session


@pytest.fixture(params=[Database, BriefDatabase], ids=["thread", "brief"])
async def database(request: pytest.FixtureRequest, database_url: str) -> AsyncIterator[Database]:
    """A database on each path: statements in the connection's thread, then brief transactions."""
    kind: type[Database] = request.param
    opened = await kind.open(database_url)
    yield opened
    await opened.aclose()


@contextmanager
def counted_commits() -> Iterator[list[Connection]]:
    """Yield a list that collects the commits of all engines."""
    seen: list[Connection] = []

    def note(connection: Connection) -> None:
        seen.append(connection)

    event.listen(Engine, "commit", note)
    try:
        yield seen
    finally:
        event.remove(Engine, "commit", note)


async def test_concurrent_writers_share_a_commit(database: Database) -> None:
    """Shows that thirty-two writers need a few commits, not thirty-two."""
    async with asyncio.timeout(PATIENCE):  # a group may end early on a busy machine
        for attempt in count():
            with counted_commits() as commits:
                await asyncio.gather(*(keep(database, f"{attempt} {number}") for number in range(32)))
            assert len(await names_in(database)) == 32 * (attempt + 1)
            assert commits
            if len(commits) < 16:
                break


async def test_a_lone_writer_commits_at_once(database: Database) -> None:
    """Shows that without concurrency every transaction is a commit of its own."""
    with counted_commits() as commits:
        for number in range(3):
            await keep(database, str(number))
    assert len(commits) == 3


async def test_brief_transactions_run_on_the_loop_thread(database: Database) -> None:
    """Shows that only the begin and the commit of a group run in another thread."""
    elsewhere: set[str] = set()

    def note(statement: str) -> None:
        if threading.current_thread() is not threading.main_thread():
            elsewhere.add(statement.partition(" ")[0])

    async with database.transaction() as session:
        session.add(FactRow(name="first", value=""))
        connection = await (await session.connection()).get_raw_connection()
        driver = connection.driver_connection
    await driver.set_trace_callback(note)
    await asyncio.gather(keep(database, "a"), keep(database, "b"))
    await driver.set_trace_callback(None)
    statements = set() if isinstance(database, BriefDatabase) else {"INSERT"}
    assert elsewhere == {"BEGIN", "COMMIT"} | statements
    assert await names_in(database) == {"first", "a", "b"}


async def test_a_slow_writer_times_out_others_and_still_commits(sqlite_url: str) -> None:
    """Shows that waiting for the slowest writer of a group is bounded."""
    file = Path(sqlite_url.removeprefix("sqlite:///"))
    file.parent.mkdir()
    engine = create_async_engine(f"sqlite+aiosqlite:///{file}", async_creator=partial(connect, file, 10))
    event.listen(engine.sync_engine, "begin", lambda begun: begun.exec_driver_sql("BEGIN IMMEDIATE"))
    writer = GroupCommit(engine, timeout_seconds=0.01)
    async with asyncio.timeout(PATIENCE), writer.transaction() as session:
        await session.execute(text("CREATE TABLE slow (id)"))
        with pytest.raises(DatabaseUnavailable):
            async with writer.transaction():
                pytest.fail("two writers at once")
    await writer.aclose()
    with closing(sqlite3.connect(file)) as other:
        assert other.execute("SELECT name FROM sqlite_master").fetchall() == [("slow",)]


async def test_an_acknowledged_row_is_committed(database: Database, database_url: str) -> None:
    """Shows that other programs see a row when its writer continues."""

    async def write(number: int) -> int:
        await keep(database, str(number))
        with sqlite3.connect(database_url.removeprefix("sqlite:///")) as other:
            (found,) = other.execute("SELECT count(*) FROM fact WHERE name = ?", [str(number)]).fetchone()
        other.close()
        return int(found)

    assert await asyncio.gather(*(write(number) for number in range(40))) == [1] * 40


async def test_a_failed_body_rolls_back_only_its_own_rows(database: Database) -> None:
    """Savepoints: every third writer fails, and the others of its group are unaffected."""

    async def write(number: int) -> None:
        async with database.transaction() as session:
            session.add(FactRow(name=str(number), value=""))
            await session.flush()
            if number % 3 == 0:
                raise ZeroDivisionError

    ended = await asyncio.gather(*(write(number) for number in range(12)), return_exceptions=True)
    assert [isinstance(one, ZeroDivisionError) for one in ended] == [n % 3 == 0 for n in range(12)]
    assert await names_in(database) == {str(number) for number in range(12) if number % 3}


async def test_a_constraint_violation_reaches_its_writer_only(database: Database) -> None:
    await keep(database, "taken")
    ended = await asyncio.gather(
        keep(database, "a"), keep(database, "taken"), keep(database, "b"), return_exceptions=True
    )
    assert [type(one) for one in ended] == [type(None), IntegrityError, type(None)]
    assert await names_in(database) == {"taken", "a", "b"}


async def test_cancelled_transactions_do_not_affect_their_group(database: Database) -> None:
    """Shows that the rest of the group is committed, wherever a task is cancelled."""

    async def write_pair(name: str) -> None:
        async with database.transaction() as session:
            session.add(FactRow(name=f"{name}a", value=""))
            await session.flush()
            await asyncio.sleep(0)
            session.add(FactRow(name=f"{name}b", value=""))

    for number in range(40):
        victim = asyncio.create_task(write_pair(f"victim {number} "))
        others = [asyncio.create_task(write_pair(f"{number}-{n} ")) for n in range(3)]
        await asyncio.sleep(number * 0.0002)
        victim.cancel()
        await asyncio.gather(victim, return_exceptions=True)
        await asyncio.gather(*others)
    names = await names_in(database)
    assert {f"{number}-{n} {half}" for number in range(40) for n in range(3) for half in "ab"} <= names
    assert {name[:-1] for name in names if name[-1] == "a"} == {
        name[:-1] for name in names if name[-1] == "b"
    }


async def test_a_writer_cancelled_while_waiting_leaves_no_open_group(database: Database) -> None:
    """Shows that the commit does not depend on the task that was expected to be last."""
    entered, go_on = asyncio.Event(), asyncio.Event()

    async def write_slowly() -> None:
        async with database.transaction() as session:
            session.add(FactRow(name="slow", value=""))
            entered.set()
            await go_on.wait()

    slow = asyncio.create_task(write_slowly())
    await entered.wait()
    waiting = [asyncio.create_task(keep(database, str(number))) for number in range(5)]
    await asyncio.sleep(0)
    for task in waiting:
        task.cancel()
    go_on.set()
    await asyncio.wait_for(slow, PATIENCE)
    await asyncio.gather(*waiting, return_exceptions=True)
    assert await names_in(database) == {"slow"}


async def test_a_timeout_inside_a_transaction_stays_a_timeout(database: Database) -> None:
    """Shows that a cancellation delayed by a statement still ends as the timeout's own."""

    async def write_for_ever() -> None:
        async with asyncio.timeout(0.05), database.transaction() as session:
            while True:
                await session.execute(text("SELECT 1"))
                await asyncio.sleep(0)

    with pytest.raises(TimeoutError):
        await write_for_ever()
    await keep(database, "next")
    assert await names_in(database) == {"next"}


async def test_a_full_disk_fails_every_uncommitted_writer(database: Database) -> None:
    """Shows that an error which makes SQLite roll back the group reaches all of it; the next group is new."""

    async def write(name: str, limit: int | None = None) -> None:
        async with database.transaction() as session:
            if limit:
                await session.execute(text(f"PRAGMA max_page_count = {limit}"))
            session.add(FactRow(name=name, value="x" * 500_000 if limit == 1 else ""))

    async with asyncio.timeout(PATIENCE):  # on a busy machine they may be in different groups
        for attempt in count():
            names = [f"{name} {attempt}" for name in ("before", "large", "after")]
            writers = (write(name, 1 if name.startswith("large") else None) for name in names)
            ended = await asyncio.gather(*writers, return_exceptions=True)
            kept = await names_in(database)
            assert {name for name, end in zip(names, ended, strict=True) if end is None} == kept & {*names}
            await write(f"healed {attempt}", 1_000_000)
            if ended[0] is not None:
                break
    assert [type(one) for one in ended[:2]] == [DatabaseUnavailable] * 2
    assert "full" in str(ended[0])
    assert f"healed {attempt}" in await names_in(database)


async def test_a_failed_commit_fails_its_whole_group(database: Database) -> None:
    """Shows that no writer is acknowledged when the engine refuses the commit."""
    kept: set[str] = set()

    async def write_orphan() -> None:
        async with database.transaction() as session:
            await session.execute(text("PRAGMA defer_foreign_keys = ON"))
            session.add(FolderRow(channel_id=404, location="/nowhere", watched=False))

    async def write_three(number: int) -> list[type]:
        before, after = f"before {number}", f"after {number}"
        ended = await asyncio.gather(
            keep(database, before), write_orphan(), keep(database, after), return_exceptions=True
        )
        kept.update(name for name, fault in ((before, ended[0]), (after, ended[2])) if fault is None)
        assert await names_in(database) == kept
        return [type(one) for one in ended]

    async with asyncio.timeout(PATIENCE):  # on a busy machine they may be in different groups
        for number in count():
            if await write_three(number) == [IntegrityError] * 3:
                break
    await keep(database, "next")
    assert await names_in(database) == kept | {"next"}


async def test_closing_commits_pending_transactions(database_url: str) -> None:
    """Shows that a transaction that ended before the database was closed is committed."""
    database = await Database.open(database_url)
    writers = [asyncio.create_task(keep(database, str(number))) for number in range(10)]
    await asyncio.sleep(0)
    await database.aclose()
    await asyncio.gather(*writers, return_exceptions=True)
    again = await Database.open(database_url)
    done = {str(number) for number, one in enumerate(writers) if one.exception() is None}
    assert await names_in(again) >= done
    await again.aclose()
    await database.aclose()
