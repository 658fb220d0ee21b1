"""The SQL database: one writer at a time, readers beside it, and a schema that is always current.

Transactions start with BEGIN IMMEDIATE, because SQLite loses updates silently when a transaction
reads first and writes later; only this module knows the driver.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Self

from sqlalchemy import URL, Connection, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, create_async_engine

from storage.errors import DatabaseUnavailable, SettingsError
from storage.mounts import is_network_share

BUSY_SECONDS = 10
"""How long a writer waits for another process's transaction."""
QUEUE_SECONDS = 30
"""How long a task waits for its turn in this process."""
READERS = 8

_CAUSES = {
    sqlite3.SQLITE_BUSY: "another program keeps the database locked",
    sqlite3.SQLITE_LOCKED: "another program keeps the database locked",
    sqlite3.SQLITE_PERM: "the database may not be read or written: check its owner and permissions",
    sqlite3.SQLITE_READONLY: "the database is read-only: check its owner and permissions",
    sqlite3.SQLITE_IOERR: "the disk under the database does not answer as it should",
    sqlite3.SQLITE_FULL: "the disk under the database is full",
    sqlite3.SQLITE_CANTOPEN: "the database file cannot be opened: check its folder and permissions",
    sqlite3.SQLITE_PROTOCOL: "another program keeps the database locked",
    sqlite3.SQLITE_CORRUPT: "the database file is damaged: restore it from a backup",
    sqlite3.SQLITE_NOTADB: "the database file is not a database: restore it from a backup",
}
"""What an admin should look at, by SQLite's primary result code; all else is a mistake of ours."""


class Database:
    """Transactions and snapshots on the tables of ``storage.tables``."""

    def __init__(self, url: URL, busy_seconds: float) -> None:
        """Prepare the engines; ``open`` is the way in, because the schema must be current first."""
        self._writer = _engine(url, busy_seconds)
        self._readers = _engine(url, busy_seconds, "BEGIN", pool_size=READERS, query_only="ON")

    @classmethod
    async def open(cls, url: str, *, busy_seconds: float = BUSY_SECONDS) -> Self:
        """Open the database at ``url`` (``sqlite:////path/of/file.db``) and bring its schema up to date.

        Several processes may open a fresh database at once: one of them makes the tables.

        Raises:
            SettingsError: the URL is no SQLite file, or the file lies on a network share.
            NewerDatabase: a newer release has changed the tables.
            DatabaseUnavailable: the file is locked, full, damaged or cannot be opened.
        """
        place = _place(url)
        await _migrate(place, busy_seconds)
        return cls(place, busy_seconds)

    @asynccontextmanager
    async def transaction(self, *, alone: bool = True) -> AsyncIterator[AsyncSession]:
        """A session that may write: it waits for its turn, commits at the end, or rolls back.

        ``alone=False`` is for steps that only row locks have to guard; on SQLite they are alone too.

        Its first line already runs alone: what it reads stays true, and what it does beside SQL is
        done while nobody else writes. Never open one inside another, and never wait for a network
        in one: all writers wait.

        Raises:
            DatabaseUnavailable: locked for longer than a writer waits, full or gone.
        """
        with translated_errors():
            async with AsyncSession(self._writer, expire_on_commit=False) as session, session.begin():
                await session.connection()  # takes the lock now, not at the first statement
                yield session

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[AsyncSession]:
        """A session that only reads, all of it from one moment; writers do not wait for it.

        Raises:
            DatabaseUnavailable: the database is gone.
        """
        with translated_errors():
            async with AsyncSession(self._readers, expire_on_commit=False) as session:
                yield session

    async def aclose(self) -> None:
        """Let go of the file."""
        await self._readers.dispose()
        await self._writer.dispose()


@contextmanager
def translated_errors() -> Iterator[None]:
    """Turn the driver's infrastructure faults into DatabaseUnavailable and let all others pass."""
    try:
        yield
    except PoolTimeoutError as error:
        raise DatabaseUnavailable("too much work is waiting for the database") from error
    except DBAPIError as error:
        code = getattr(error.orig, "sqlite_errorcode", 0) & 0xFF
        if error.connection_invalidated:
            raise DatabaseUnavailable("the connection to the database is gone") from error
        if code not in _CAUSES:
            raise
        raise DatabaseUnavailable(_CAUSES[code]) from error


def _place(url: str) -> URL:
    """The database's URL with our driver, once its folder exists and is fit for it."""
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise SettingsError("DATABASE_URL is not the URL of a database") from None
    if parsed.get_backend_name() != "sqlite" or not parsed.database or "?" in url:
        raise SettingsError(
            "DATABASE_URL must name an SQLite file, as in sqlite:////srv/footnote/footnote.db"
        )
    file = Path(parsed.database).absolute()
    if is_network_share(file):
        raise SettingsError(f"{file} lies on a network share, where SQLite loses data: use a local disk")
    _make_folder(file.parent)
    return URL.create("sqlite+aiosqlite", database=str(file))


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise DatabaseUnavailable(f"{folder} cannot be made: {error.strerror}") from error


def _engine(
    url: URL, busy_seconds: float, begin: str = "BEGIN IMMEDIATE", *, pool_size: int = 1, **pragmas: str
) -> AsyncEngine:
    """An engine whose driver never begins by itself: ``begin`` is what a transaction starts with."""
    engine = create_async_engine(
        url,
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=QUEUE_SECONDS,
        connect_args={"isolation_level": None, "timeout": busy_seconds},
    )
    settings = {"journal_mode": "WAL", "synchronous": "FULL", "foreign_keys": "ON", **pragmas}

    def set_pragmas(connection: Any, _record: Any) -> None:
        cursor = connection.cursor()
        for name, value in settings.items():
            cursor.execute(f"PRAGMA {name} = {value}")
        cursor.close()

    def start(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    event.listen(engine.sync_engine, "connect", set_pragmas)
    event.listen(engine.sync_engine, "begin", start)
    return engine


async def _migrate(url: URL, busy_seconds: float) -> None:
    """Bring the schema up to date in one transaction, with foreign keys off as SQLite's own recipe says."""
    from storage.migrations.upgrade import upgrade  # noqa: PLC0415 - Alembic is slow to import

    engine = _engine(url, busy_seconds, foreign_keys="OFF")
    try:
        with translated_errors():
            async with engine.begin() as connection:
                await connection.run_sync(upgrade)
    finally:
        await engine.dispose()
