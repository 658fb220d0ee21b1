"""The database keeps what it acknowledged, one writer at a time, whoever is killed."""

import asyncio
import re
import sqlite3
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import create_engine, select, text, update
from sqlmodel import SQLModel

from storage.database import Database
from storage.errors import DatabaseUnavailable, NewerDatabase, SettingsError
from storage.migrations.shape import SHAPE
from storage.mounts import is_network_share
from storage.tables import ChannelRow, FactRow


def file_of(url: str) -> Path:
    return Path(url.removeprefix("sqlite:///"))


def schema_of(file: Path) -> list[list[str]]:
    """All definitions of a database as their sorted words: neither layout nor order of columns counts."""
    with sqlite3.connect(file) as connection:
        rows = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    connection.close()
    return sorted(
        sorted(re.findall(r"\w+", sql)) for (sql,) in rows if not re.search("alembic_version|sqlite_", sql)
    )


async def keep(database: Database, name: str, value: str = "") -> None:
    async with database.transaction() as session:
        session.add(FactRow(name=name, value=value))


async def count_facts(database: Database) -> int:
    async with database.snapshot() as session:
        return len((await session.scalars(select(FactRow))).all())


async def test_the_migrations_make_exactly_the_tables_of_the_code(
    database: Database, database_url: str, tmp_path: Path
) -> None:
    """A migrated database and one made from the metadata have the same definitions."""
    engine = create_engine(f"sqlite:///{tmp_path}/made.db")
    SQLModel.metadata.create_all(engine)
    engine.dispose()
    assert schema_of(file_of(database_url)) == schema_of(tmp_path / "made.db")


async def test_alembic_sees_no_difference_to_the_code(database: Database, database_url: str) -> None:
    """Autogenerate, which writes future revisions, has nothing to write."""
    engine = create_engine(database_url)
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), SQLModel.metadata) == []
    engine.dispose()


async def test_the_planner_is_told_of_indexes_that_exist(database: Database) -> None:
    """Statistics written by hand name real indexes, one number per column and one for the rows."""
    async with database.snapshot() as session:
        for table, indexes in SHAPE.items():
            for index, rows in indexes.items():
                columns = (await session.execute(text(f"PRAGMA index_info({index})"))).all()
                assert len(columns) == len(rows.split()) - 1, (table, index)


async def test_every_connection_is_durable_and_checks_its_keys(database: Database) -> None:
    """WAL, full synchronisation and foreign keys hold for writers and readers."""
    for opened in (database.transaction(), database.snapshot()):
        async with opened as session:
            values = [
                (await session.execute(text(f"PRAGMA {name}"))).scalar_one()
                for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
            ]
            assert values == ["wal", 2, 1, 10_000]


async def test_eight_tasks_lose_no_update(database: Database) -> None:
    """Read-modify-write from eight tasks at once counts to exactly 8 x 25."""
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


async def test_a_failed_transaction_leaves_nothing_behind(database: Database) -> None:
    """An exception inside a transaction takes back all of it and passes through unchanged."""

    async def write_half() -> None:
        async with database.transaction() as session:
            session.add(FactRow(name="half", value="done"))
            await session.flush()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await write_half()
    assert await count_facts(database) == 0


async def test_a_transaction_is_alone_from_its_first_line(database: Database, database_url: str) -> None:
    """Before any statement of its own runs, no other program can write any more."""
    other = sqlite3.connect(file_of(database_url), isolation_level=None, timeout=0)
    async with database.transaction():
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("BEGIN IMMEDIATE")
    other.execute("BEGIN IMMEDIATE")
    other.close()


async def test_cancelled_transactions_do_not_block_the_next_one(database: Database) -> None:
    """Tasks cancelled at any moment of their transaction neither keep the lock nor half of their rows."""

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
    async with asyncio.timeout(5):
        await write_pair(60)
    async with database.snapshot() as session:
        names = set((await session.scalars(select(FactRow.name))).all())
    assert {name[:-1] for name in names if name.endswith("a")} == {
        name[:-1] for name in names if name.endswith("b")
    }
    assert "60b" in names


async def test_a_snapshot_keeps_its_moment(database: Database) -> None:
    """What is committed after a snapshot's first read is not seen in it, and writers do not wait for it."""
    async with database.snapshot() as reading:
        assert (await reading.scalars(select(FactRow))).all() == []
        await keep(database, "late")
        assert (await reading.scalars(select(FactRow))).all() == []
    assert await count_facts(database) == 1


async def test_a_snapshot_cannot_write(database: Database) -> None:
    """A write in a snapshot is refused by the engine itself."""
    with pytest.raises(DatabaseUnavailable):
        async with database.snapshot() as session:
            await session.execute(update(FactRow).values(value="written"))


async def test_a_mistake_in_sql_is_not_called_an_outage(database: Database) -> None:
    """Only the engine's own faults become DatabaseUnavailable: a wrong statement would retry for ever."""
    with pytest.raises(Exception, match="no such table") as caught:
        async with database.snapshot() as session:
            await session.execute(text("SELECT * FROM nowhere"))
    assert not isinstance(caught.value, DatabaseUnavailable)


async def test_moments_come_back_with_their_zone(database: Database) -> None:
    """SQLite forgets zones; the tables put UTC back."""
    async with database.transaction() as session:
        session.add(ChannelRow(tenant="lo", platform="local", name="it"))
    async with database.snapshot() as session:
        channel = (await session.scalars(select(ChannelRow))).one()
    assert channel.created_at.utcoffset() is not None


OPENING = """
import asyncio, sys
from storage.database import Database
from storage.tables import FactRow

async def main():
    database = await Database.open(sys.argv[1])
    async with database.transaction() as session:
        session.add(FactRow(name=sys.argv[2], value=""))
    await database.aclose()

asyncio.run(main())
"""

WRITING = """
import asyncio, sys
from storage.database import Database
from storage.tables import FactRow

async def main():
    database = await Database.open(sys.argv[1])
    for number in range(100_000):
        async with database.transaction() as session:
            session.add(FactRow(name=str(number), value="first"))
            await session.flush()
            session.add(FactRow(name=f"{number} again", value="second"))
        print(number, flush=True)

asyncio.run(main())
"""


async def start(program: str, *arguments: str) -> asyncio.subprocess.Process:
    """Another Python process, whose warnings are errors too."""
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-W", "error", "-c", program, *arguments), stdout=PIPE, stderr=PIPE
    )


async def test_processes_that_open_a_fresh_home_at_once_all_succeed(database_url: str) -> None:
    """Six processes start on no database at all; one makes the tables, each writes its row."""
    processes = [await start(OPENING, database_url, str(number)) for number in range(6)]
    errors = [(await process.communicate())[1].decode() for process in processes]
    assert [process.returncode for process in processes] == [0] * 6, "".join(errors)
    database = await Database.open(database_url)
    assert await count_facts(database) == 6
    await database.aclose()


async def test_kill_9_loses_no_row_that_was_acknowledged(database_url: str) -> None:
    """A writer killed between two commits leaves whole transactions, and all it had reported."""
    writer = await start(WRITING, database_url)
    assert writer.stdout is not None
    for _ in range(40):
        await writer.stdout.readline()
    writer.kill()
    rest, _ = await writer.communicate()
    reported = 39 + rest.count(b"\n")
    database = await Database.open(database_url)
    async with database.snapshot() as session:
        names = set((await session.scalars(select(FactRow.name))).all())
    await database.aclose()
    assert names >= {str(number) for number in range(reported + 1)}
    assert len(names) == 2 * len([name for name in names if "again" not in name])


async def test_a_home_of_a_newer_release_is_refused(database: Database, database_url: str) -> None:
    """A revision that this release does not know ends in a sentence and changes nothing."""
    async with database.transaction() as session:
        await session.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(NewerDatabase, match="newer release"):
        await Database.open(database_url)
    async with database.snapshot() as session:
        assert (await session.execute(text("SELECT version_num FROM alembic_version"))).scalar() == "9999"


async def test_a_lock_that_is_not_let_go_is_an_outage(database: Database, database_url: str) -> None:
    """Another program holding the write lock ends in DatabaseUnavailable; reading goes on."""
    impatient = await Database.open(database_url, busy_seconds=0.2)
    other = sqlite3.connect(file_of(database_url), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(DatabaseUnavailable, match="locked"):
        await keep(impatient, "late")
    assert await count_facts(impatient) == 0
    other.close()
    await impatient.aclose()


async def test_a_full_disk_is_an_outage_and_heals(database: Database) -> None:
    """When the file cannot grow, the write is taken back; when it can again, it succeeds."""

    async def write(limit: int) -> None:
        async with database.transaction() as session:
            await session.execute(text(f"PRAGMA max_page_count = {limit}"))
            session.add(FactRow(name="large", value="x" * 500_000))

    with pytest.raises(DatabaseUnavailable, match="full"):
        await write(1)
    assert await count_facts(database) == 0
    await write(1_000_000)
    assert await count_facts(database) == 1


async def test_a_file_that_is_no_database_is_named(database_url: str) -> None:
    """Foreign bytes in the database's place are reported as damage, not overwritten."""
    file_of(database_url).parent.mkdir()
    file_of(database_url).write_bytes(b"not a database at all, but long enough to be read as a header" * 40)
    with pytest.raises(DatabaseUnavailable, match="not a database"):
        await Database.open(database_url)


async def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    """A file where the home should be is an outage with the path in its sentence."""
    (tmp_path / "home").write_text("in the way")
    with pytest.raises(DatabaseUnavailable, match="home"):
        await Database.open(f"sqlite:///{tmp_path}/home/footnote.db")


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
async def test_urls_of_other_databases_are_refused_without_their_secrets(url: str) -> None:
    """What is not an SQLite file is refused, and the message repeats nothing of the URL."""
    with pytest.raises(SettingsError) as caught:
        await Database.open(url)
    assert "u:p" not in str(caught.value)
    assert "DATABASE_URL" in str(caught.value)


def test_network_shares_are_told_from_local_disks() -> None:
    """The longest mount point decides, blanks in it included."""
    table = (
        "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
        "40 22 0:50 / /mnt/the\\040share rw shared:1 - cifs //server/x rw\n"
        "41 22 0:51 / /mnt/nfs rw - nfs4 server:/x rw\n"
        "42 41 8:2 / /mnt/nfs/local rw - xfs /dev/sdb1 rw\n"
    )
    paths = ["/srv/db", "/mnt/the share/a/b.pdf", "/mnt/nfs/a", "/mnt/nfs/local/a", "/mnt/nfsx"]
    assert [is_network_share(Path(path), table) for path in paths] == [False, True, True, False, False]
