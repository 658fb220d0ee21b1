"""The database keeps acknowledged writes, with one writer at a time, through crashes."""

import asyncio

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from harness.waiting import PATIENCE
from samples.databases import keep, names_in, run_at_once, start
from sqlalchemy import bindparam, create_engine, select, text, update
from sqlmodel import SQLModel

from storage.errors import DatabaseUnavailable, NewerDatabase, SettingsError
from storage.sql.database import Database
from storage.sql.tables import ChannelRow, FactRow


async def test_alembic_autogenerate_finds_no_difference(database: Database, database_url: str) -> None:
    engine = create_engine(database_url)
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), SQLModel.metadata) == []
    engine.dispose()


async def test_eight_tasks_lose_no_update(database: Database) -> None:
    """Read-modify-write in eight concurrent tasks counts to exactly 8 x 25."""
    await keep(database, "counter", "0")

    async def increment() -> None:
        for _ in range(25):
            async with database.transaction() as session:
                fact = await session.get_one(FactRow, "counter")
                await asyncio.sleep(0)
                fact.value = str(int(fact.value) + 1)

    await asyncio.gather(*(increment() for _ in range(8)))
    async with database.snapshot() as session:
        assert (await session.get_one(FactRow, "counter")).value == "200"


async def test_a_failed_transaction_is_rolled_back(database: Database) -> None:
    """An exception in a transaction rolls it back and propagates unchanged."""

    async def write_half() -> None:
        async with database.transaction() as session:
            session.add(FactRow(name="half", value="done"))
            await session.flush()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await write_half()
    assert len(await names_in(database)) == 0


async def test_cancelled_transactions_release_the_lock(database: Database) -> None:
    """Tasks cancelled at any point of their transaction neither keep the lock nor half of their rows."""

    async def write_pair(number: int) -> None:
        async with database.transaction() as session:
            session.add(FactRow(name=f"{number}a", value=""))
            await session.flush()
            await asyncio.sleep(0.001)
            session.add(FactRow(name=f"{number}b", value=""))

    for number in range(60):
        task = asyncio.create_task(write_pair(number))
        await asyncio.sleep(number * 0.0002)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    async with asyncio.timeout(PATIENCE):
        await write_pair(60)
    names = await names_in(database)
    assert {name[:-1] for name in names if name.endswith("a")} == {
        name[:-1] for name in names if name.endswith("b")
    }
    assert "60b" in names


async def test_a_snapshot_is_a_consistent_read(database: Database) -> None:
    """Later commits are not visible in it, and writers do not wait for it."""
    async with database.snapshot() as reading:
        assert (await reading.scalars(select(FactRow))).all() == []
        await keep(database, "late")
        assert (await reading.scalars(select(FactRow))).all() == []
    assert len(await names_in(database)) == 1


async def test_a_snapshot_is_read_only(database: Database) -> None:
    """The engine itself refuses a write in a snapshot."""
    with pytest.raises(DatabaseUnavailable):
        async with database.snapshot() as session:
            await session.execute(update(FactRow).values(value="written"))


async def test_a_single_query_sees_committed_rows_and_cannot_write(database: Database) -> None:
    """Runs without a transaction: nothing stays open."""
    query = select(ChannelRow.name).where(ChannelRow.tenant == bindparam("tenant"))  # type: ignore[arg-type]
    assert await database.rows(query, {"tenant": "lo"}) == []
    async with database.transaction() as session:
        session.add(ChannelRow(tenant="lo", platform="local", name="it"))
    assert await database.rows(query, {"tenant": "lo"}) == [("it",)]
    with pytest.raises(DatabaseUnavailable):
        await database.rows(update(FactRow).values(value="written"))


async def test_an_sql_error_is_no_outage(database: Database) -> None:
    """Only engine failures become DatabaseUnavailable; a wrong statement would be retried for ever."""
    with pytest.raises(Exception, match="nowhere") as caught:
        async with database.snapshot() as session:
            await session.execute(text("SELECT * FROM nowhere"))
    assert not isinstance(caught.value, DatabaseUnavailable)


async def test_timestamps_keep_their_timezone(database: Database) -> None:
    """SQLite drops time zones; the tables restore UTC."""
    async with database.transaction() as session:
        session.add(ChannelRow(tenant="lo", platform="local", name="it"))
    async with database.snapshot() as session:
        channel = (await session.scalars(select(ChannelRow))).one()
    assert channel.created_at.utcoffset() is not None


OPENING = """
import asyncio, sys
from storage.sql.database import Database
from storage.sql.tables import FactRow

async def main():
    database = await Database.open(sys.argv[1])
    async with database.transaction() as session:
        session.add(FactRow(name=sys.argv[2], value=""))
    await database.aclose()

asyncio.run(main())
"""

WRITING = """
import asyncio, itertools, sys
from storage.sql.database import Database
from storage.sql.tables import FactRow

async def write(database, numbers):
    for number in numbers:
        async with database.transaction() as session:
            session.add(FactRow(name=str(number), value="first"))
            await session.flush()
            session.add(FactRow(name=f"{number} again", value="second"))
        print(number, flush=True)

async def main():
    database = await Database.open(sys.argv[1])
    numbers = itertools.count()
    await asyncio.gather(*(write(database, numbers) for _ in range(8)))

asyncio.run(main())
"""


async def test_processes_that_open_a_new_home_at_once_all_succeed(database_url: str) -> None:
    """Six processes start without a database; one creates the tables, each writes its row."""
    await run_at_once(6, OPENING, database_url)
    database = await Database.open(database_url)
    assert len(await names_in(database)) == 6
    await database.aclose()


async def test_kill_9_loses_no_acknowledged_row(database_url: str) -> None:
    """Eight killed writers leave whole transactions, and all that they had reported."""
    writer = await start(WRITING, database_url)
    assert writer.stdout is not None
    reported = [await writer.stdout.readline() for _ in range(200)]
    writer.kill()
    reported += (await writer.communicate())[0].splitlines(keepends=True)
    database = await Database.open(database_url)
    names = await names_in(database)
    await database.aclose()
    assert names >= {line.decode().strip() for line in reported if line.endswith(b"\n")}
    assert len(names) == 2 * len([name for name in names if "again" not in name])


async def test_a_home_of_a_newer_release_is_refused(database: Database, database_url: str) -> None:
    """An unknown revision ends with an error message and no change."""
    async with database.transaction() as session:
        await session.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(NewerDatabase, match="newer release"):
        await Database.open(database_url)
    async with database.snapshot() as session:
        assert (await session.execute(text("SELECT version_num FROM alembic_version"))).scalar() == "9999"


@pytest.mark.parametrize(
    "url",
    [
        "mysql://u:p@host/db",
        "postgresql+asyncpg://u:p@host/db",
        "postgresql://u:p@host",
        "postgresql://u:p@host:port/db",
        "sqlite://",
        "sqlite:////home/a?b.db",
        "nonsense",
    ],
)
async def test_urls_of_other_databases_are_refused_and_not_quoted(url: str) -> None:
    """Only SQLite files and PostgreSQL are accepted; the message repeats nothing of the URL."""
    with pytest.raises(SettingsError) as caught:
        await Database.open(url)
    assert "u:p" not in str(caught.value)
    assert "DATABASE_URL" in str(caught.value)
