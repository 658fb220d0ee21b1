"""SQLite: one file on a local disk, one writer at a time, concurrent readers.

Transactions start with BEGIN IMMEDIATE, because SQLite loses updates silently when a transaction reads first
and writes later.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncSession, create_async_engine

from storage.errors import DatabaseUnavailable, SettingsError
from storage.mounts import is_network_share
from storage.sql.dialect import QUEUE_SECONDS, READERS, SqlStatus, migrate, require_current_schema
from storage.sql.group_commit import GroupCommit, brief_statements, connect

# What an admin should check, by SQLite's primary result code; any other error is a bug of ours.
_CAUSES = {
    sqlite3.SQLITE_BUSY: "the database is locked by another program",
    sqlite3.SQLITE_LOCKED: "the database is locked by another program",
    sqlite3.SQLITE_PERM: "no permission to read or write the database: check its owner and permissions",
    sqlite3.SQLITE_READONLY: "the database is read-only: check its owner and permissions",
    sqlite3.SQLITE_IOERR: "I/O error on the database's disk",
    sqlite3.SQLITE_FULL: "the disk under the database is full",
    sqlite3.SQLITE_CANTOPEN: "the database file cannot be opened: check its folder and permissions",
    sqlite3.SQLITE_PROTOCOL: "the database is locked by another program",
    sqlite3.SQLITE_CORRUPT: "the database file is corrupt: restore a backup",
    sqlite3.SQLITE_NOTADB: "the database file is not a database: restore it from a backup",
}

JOURNAL_POLL_SECONDS = 0.05

# Execution option of an engine that opens no transactions: each statement sees a separate snapshot.
_WITHOUT_BEGIN = "without_begin"


class SqliteDialect:
    """SQLite file and its connections."""

    def __init__(self, url: URL, busy_seconds: float) -> None:
        """Prepare the connections to ``sqlite:////path/of/file.db``; connect later.

        Args:
            url: names the file.
            busy_seconds: time that a writer waits for another process's transaction.

        Raises:
            SettingsError: the URL names no file, or one on a network share.
            DatabaseUnavailable: the file's folder cannot be created.
        """
        self._file, self._busy_seconds = _file_of(url), busy_seconds
        self._writer = GroupCommit(self._engine())
        self._readers = self._engine("BEGIN", pool_size=READERS, query_only="ON")
        self._statements = self._readers.execution_options(**{_WITHOUT_BEGIN: True})

    async def migrate(self, revision: str | None) -> None:
        """Migrate with foreign keys off, as SQLite's recipe for changing tables says."""
        await migrate(self._engine(foreign_keys="OFF"), revision)

    async def require_current(self) -> None:
        """Verify the schema over a reader's connection; never create a missing file."""
        if not self._file.exists():
            raise DatabaseUnavailable(f"there is no database at {self._file}")
        await require_current_schema(self._statements)

    async def status(self) -> SqlStatus:
        """Return SQLite's version; its clock is ours."""
        return SqlStatus(f"SQLite {sqlite3.sqlite_version}")

    @asynccontextmanager
    async def transaction(self, *, exclusive: bool, brief: bool) -> AsyncIterator[AsyncSession]:
        """Yield an exclusive session in any case: SQLite has no row locks."""
        async with self._writer.transaction(brief=brief) as session:
            yield session

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[AsyncSession]:
        """Yield a read-only session that sees what was committed before its first statement.

        Writers do not wait for it.
        """
        async with AsyncSession(self._readers, expire_on_commit=False) as session:
            yield session

    @asynccontextmanager
    async def content_lock(self, exclusive: bool) -> AsyncIterator[None]:
        """Do nothing: a single machine protects its files with file locks."""
        yield

    async def purge_deleted(self) -> None:
        """Rewrite the file, then empty its journal; blocks all others, about a second for 100 MB.

        Raises:
            DatabaseUnavailable: another program holds the file, or there is no room for a second one.
        """
        try:
            await asyncio.to_thread(vacuum, self._file, self._busy_seconds)
        except sqlite3.Error as error:
            cause = _CAUSES.get(getattr(error, "sqlite_errorcode", 0) & 0xFF, str(error))
            raise DatabaseUnavailable(f"could not overwrite deleted data yet: {cause}") from error

    @asynccontextmanager
    async def reader(self, *, brief: bool) -> AsyncIterator[AsyncConnection]:
        """Yield a connection without a transaction: BEGIN and rollback take longer than a small query."""
        async with self._statements.connect() as connection:
            with brief_statements(connection) if brief else nullcontext():
                yield connection

    def cause(self, error: DBAPIError) -> str | None:
        """Return the cause by SQLite's result code."""
        return _CAUSES.get(getattr(error.orig, "sqlite_errorcode", 0) & 0xFF)

    async def aclose(self) -> None:
        """Commit, then close all connections."""
        await self._readers.dispose()
        await self._writer.aclose()

    def _engine(self, begin: str = "BEGIN IMMEDIATE", *, pool_size: int = 1, **pragmas: str) -> AsyncEngine:
        """Return an engine whose driver never begins implicitly: transactions start with ``begin``."""
        engine = create_async_engine(
            URL.create("sqlite+aiosqlite", database=str(self._file)),
            async_creator=partial(connect, self._file, self._busy_seconds),
            pool_size=pool_size,
            max_overflow=0,
            pool_timeout=QUEUE_SECONDS,
            hide_parameters=True,  # errors are logged, and parameters hold users' words
        )
        # WAL: readers and the writer do not block each other. FULL: every commit is synced to the disk.
        # secure_delete: deleted rows are overwritten with zeros.
        settings = {"journal_mode": "WAL", "synchronous": "FULL", "foreign_keys": "ON", "secure_delete": "ON"}
        settings |= pragmas

        def set_pragmas(connection: Any, _record: Any) -> None:
            cursor = connection.cursor()
            for name, value in settings.items():
                cursor.execute(f"PRAGMA {name} = {value}")
            cursor.close()

        def start(connection: Connection) -> None:
            if _WITHOUT_BEGIN in connection.get_execution_options():
                return
            connection.exec_driver_sql(begin)

        event.listen(engine.sync_engine, "connect", set_pragmas)
        event.listen(engine.sync_engine, "begin", start)
        return engine


def _file_of(url: URL) -> Path:
    """Return the database's file; create its folder, and refuse a network share."""
    if not url.database:
        raise SettingsError(
            "DATABASE_URL must name an SQLite file, as in sqlite:////srv/footnote/footnote.db"
        )
    file = Path(url.database).absolute()
    if is_network_share(file):
        raise SettingsError(f"{file} is on a network share, where SQLite can lose data: use a local disk")
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise DatabaseUnavailable(f"cannot create {file.parent}: {error.strerror}") from error
    return file


def vacuum(file: Path, busy_seconds: float) -> None:
    """VACUUM, then empty the write-ahead log, which keeps old pages until their readers end.

    ``secure_delete`` alone is not enough: rows that moved to another page leave a copy on the old one.

    Args:
        file: a database in WAL mode; other processes may use it.
        busy_seconds: time to wait for a writer, and then for the readers.

    Raises:
        sqlite3.Error: the file is locked for longer, the disk is full, or a reader does not end.
    """
    # mode=rw: never create a missing file.
    uri = f"{file.as_uri()}?mode=rw"
    with closing(sqlite3.connect(uri, uri=True, timeout=busy_seconds, isolation_level=None)) as connection:
        connection.execute("VACUUM")
        deadline = time.monotonic() + busy_seconds
        while connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
            if time.monotonic() > deadline:
                error = sqlite3.OperationalError("a reader blocks the checkpoint")
                error.sqlite_errorcode = sqlite3.SQLITE_BUSY
                raise error
            time.sleep(JOURNAL_POLL_SECONDS)
