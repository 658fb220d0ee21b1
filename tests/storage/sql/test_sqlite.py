"""SQLite: durable, one writer from the first statement, named errors, planner statistics."""

import re
import sqlite3
from pathlib import Path

import pytest
from samples.databases import keep, names_in
from sqlalchemy import create_engine, text
from sqlmodel import SQLModel

from storage.errors import DatabaseUnavailable
from storage.sql.database import Database
from storage.sql.migrations.shape import SHAPE
from storage.sql.tables import FactRow


@pytest.fixture
def database_url(sqlite_url: str) -> str:
    """SQLite only."""
    return sqlite_url


def file_of(url: str) -> Path:
    return Path(url.removeprefix("sqlite:///"))


def schema_of(file: Path) -> list[list[str]]:
    """Return the definitions of a database as sorted words, ignoring layout and column order."""
    with sqlite3.connect(file) as connection:
        rows = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    connection.close()
    return sorted(
        sorted(re.findall(r"\w+", sql)) for (sql,) in rows if not re.search("alembic_version|sqlite_", sql)
    )


async def test_migrations_create_exactly_the_tables_of_the_code(
    database: Database, database_url: str, tmp_path: Path
) -> None:
    """A migrated database and one created from the metadata have the same definitions."""
    engine = create_engine(f"sqlite:///{tmp_path}/made.db")
    SQLModel.metadata.create_all(engine)
    engine.dispose()
    assert schema_of(file_of(database_url)) == schema_of(tmp_path / "made.db")


async def test_planner_statistics_name_existing_indexes(database: Database) -> None:
    """Each has one number for the rows and one per column."""
    async with database.snapshot() as session:
        for table, indexes in SHAPE.items():
            for index, rows in indexes.items():
                columns = (await session.execute(text(f"PRAGMA index_info({index})"))).all()
                assert len(columns) == len(rows.split()) - 1, (table, index)


async def test_every_connection_is_durable_and_checks_foreign_keys(database: Database) -> None:
    """WAL, synchronous=FULL and foreign keys are set for writers and readers."""
    for opened in (database.transaction(), database.snapshot()):
        async with opened as session:
            values = [
                (await session.execute(text(f"PRAGMA {name}"))).scalar_one()
                for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
            ]
            assert values == ["wal", 2, 1, 10_000]


async def test_an_exclusive_transaction_locks_from_its_first_line(
    database: Database, database_url: str
) -> None:
    """No other program can write before its first statement."""
    other = sqlite3.connect(file_of(database_url), isolation_level=None, timeout=0)
    async with database.transaction():
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("BEGIN IMMEDIATE")
    other.execute("BEGIN IMMEDIATE")
    other.close()


async def test_a_lock_held_by_another_program_is_an_outage(database: Database, database_url: str) -> None:
    """Writing raises DatabaseUnavailable; reading still works."""
    impatient = await Database.open(database_url, busy_seconds=0.2)
    other = sqlite3.connect(file_of(database_url), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(DatabaseUnavailable, match="locked"):
        await keep(impatient, "late")
    assert len(await names_in(impatient)) == 0
    other.close()
    await impatient.aclose()


async def test_a_full_disk_is_an_outage_that_recovers(database: Database) -> None:
    """The write is rolled back, and succeeds once the file can grow."""

    async def write(limit: int) -> None:
        async with database.transaction() as session:
            await session.execute(text(f"PRAGMA max_page_count = {limit}"))
            session.add(FactRow(name="large", value="x" * 500_000))

    with pytest.raises(DatabaseUnavailable, match="full"):
        await write(1)
    assert len(await names_in(database)) == 0
    await write(1_000_000)
    assert len(await names_in(database)) == 1


async def test_a_file_that_is_no_database_is_reported(database_url: str) -> None:
    """Reported as corrupt and not overwritten."""
    file_of(database_url).parent.mkdir()
    file_of(database_url).write_bytes(b"not a database at all, but long enough to be read as a header" * 40)
    with pytest.raises(DatabaseUnavailable, match="not a database"):
        await Database.open(database_url)


async def test_a_folder_that_cannot_be_created_is_reported(tmp_path: Path) -> None:
    """A file in place of the home is an outage whose message has the path."""
    (tmp_path / "home").write_text("in the way")
    with pytest.raises(DatabaseUnavailable, match="home"):
        await Database.open(f"sqlite:///{tmp_path}/home/footnote.db")
