"""SQL database: SQLite or PostgreSQL behind one interface, with a schema that is always current.

Only ``storage.sql`` knows the two engines; their errors become DatabaseUnavailable here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Self

from sqlalchemy import URL, Executable, Row, make_url, select, text
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import SQLModel

from storage.errors import DatabaseUnavailable, SettingsError
from storage.sql.changes import ChangeCounters, changed_tables
from storage.sql.dialect import Dialect, SqlStatus
from storage.sql.postgres import PostgresDialect
from storage.sql.sqlite import SqliteDialect

# Time that a writer waits for another process's transaction.
BUSY_SECONDS = 10

_DIALECTS: dict[str, Callable[[URL, float], Dialect]] = {
    "sqlite": SqliteDialect,
    "postgresql": PostgresDialect,
}


class Database:
    """Transactions and snapshots on the tables of ``storage.sql.tables``."""

    def __init__(self, dialect: Dialect) -> None:
        """Use a dialect; call ``open`` instead, which brings the schema up to date first."""
        self._dialect = dialect
        self.changes = ChangeCounters()

    @classmethod
    async def open(cls, url: str, *, busy_seconds: float = BUSY_SECONDS, revision: str | None = None) -> Self:
        """Open a database and bring its schema up to date.

        Several processes may open a fresh database at once: one of them creates the tables.

        Args:
            url: ``sqlite:////path/of/file.db`` or ``postgresql://user:password@host/database``.
            busy_seconds: time that a writer waits for another process's transaction.
            revision: stop at this one, for an empty database that receives the rows of an older release.

        Raises:
            SettingsError: the URL has neither form, or the file lies on a network share.
            NewerDatabase: a newer release has changed the tables.
            DatabaseUnavailable: the file or server is locked, full, corrupt or unreachable.
        """
        database = cls(_dialect_of(url, busy_seconds))
        with database._translated_errors():
            await database._dialect.migrate(revision)
        return database

    @classmethod
    async def attach(cls, url: str) -> Self:
        """Open a database whose schema must be current; change nothing.

        Raises:
            OlderDatabase: this release has never been started on it.
            SettingsError, NewerDatabase, DatabaseUnavailable: as ``open``.
        """
        database = cls(_dialect_of(url, BUSY_SECONDS))
        try:
            with database._translated_errors():
                await database._dialect.require_current()
        except BaseException:
            await database.aclose()
            raise
        return database

    async def status(self) -> SqlStatus:
        """Return the engine's version, replication and clock.

        Raises:
            DatabaseUnavailable: the database is gone.
        """
        with self._translated_errors():
            return await self._dialect.status()

    @asynccontextmanager
    async def transaction(
        self, *, exclusive: bool = True, brief: bool = False
    ) -> AsyncIterator[AsyncSession]:
        """Yield a session for writing; commit at the end, or roll back on an error.

        An exclusive transaction is alone from its first line: what it reads stays true, and its side effects
        outside SQL happen while nobody else writes. Never nest transactions, and never wait for a network in
        one: all writers wait.

        Args:
            exclusive: False for a step that needs only the rows that it locks (``with_for_update``), by key
                or skipping those that others hold. On SQLite such steps are exclusive as well; on
                PostgreSQL they run concurrently with each other and with an exclusive one.
            brief: True for a few statements that find a few rows by key. SQLite then executes them on
                the event loop, where they take microseconds.

        Raises:
            DatabaseUnavailable: locked for longer than a writer waits, full or gone.
        """
        with self._translated_errors():
            async with self._dialect.transaction(exclusive=exclusive, brief=brief) as session:
                yield session
        self.changes.note(changed_tables(session))

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[AsyncSession]:
        """Yield a read-only session that sees one snapshot; writers do not wait for it.

        Raises:
            DatabaseUnavailable: the database is gone.
        """
        with self._translated_errors():
            async with self._dialect.snapshot() as session:
                yield session

    async def rows(
        self, query: Executable, values: Mapping[str, Any] | None = None, *, brief: bool = False
    ) -> Sequence[Row[Any]]:
        """Return the rows of one SELECT of columns; a single statement sees one snapshot.

        Cheaper than ``snapshot`` with one statement: no transaction, no ORM objects. ``brief``: it finds a
        few rows by key, as in ``transaction``.

        Raises:
            DatabaseUnavailable: the database is gone.
        """
        with self._translated_errors():
            async with self._dialect.reader(brief=brief) as connection:
                return (await connection.execute(query, values)).all()

    async def ping(self) -> None:
        """Verify that a transaction can begin; write nothing.

        Raises:
            DatabaseUnavailable: none can.
        """
        async with self.transaction(exclusive=False) as session:
            await session.execute(select(1))

    @asynccontextmanager
    async def content_lock(self, exclusive: bool) -> AsyncIterator[None]:
        """Hold the lock on blob files across machines: shared to add some, ``exclusive`` to remove some.

        Enter it before a transaction, never inside one.

        Raises:
            DatabaseUnavailable: others hold it for longer than a writer waits, or the database is gone.
        """
        with self._translated_errors():
            async with self._dialect.content_lock(exclusive):
                yield

    async def purge_deleted(self) -> None:
        """Overwrite deleted rows, so that no byte of them stays in the database's files.

        Raises:
            DatabaseUnavailable: locked for longer than a writer waits, full or gone.
        """
        with self._translated_errors():
            await self._dialect.purge_deleted()

    async def drop_tables(self) -> None:
        """Drop every table with its rows; ``open`` creates them again.

        Raises:
            DatabaseUnavailable: locked for longer than a writer waits, full or gone.
        """
        async with self.transaction() as session:
            for table in reversed(SQLModel.metadata.sorted_tables):
                await session.execute(text(f'DROP TABLE IF EXISTS "{table.name}"'))
            await session.execute(text("DROP TABLE IF EXISTS alembic_version"))

    async def aclose(self) -> None:
        """Close all connections."""
        await self._dialect.aclose()

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        """Translate the driver's infrastructure errors into DatabaseUnavailable; pass on all others."""
        try:
            yield
        except PoolTimeoutError as error:
            self.changes.note_outage()
            raise DatabaseUnavailable(
                "timed out waiting for the database: too many pending transactions"
            ) from error
        except DBAPIError as error:
            cause = self._dialect.cause(error)
            if cause is None and error.connection_invalidated:
                cause = "the database connection was lost"
            if cause is None:
                raise
            self.changes.note_outage()
            raise DatabaseUnavailable(cause) from error


def _dialect_of(url: str, busy_seconds: float) -> Dialect:
    """Return the dialect that a URL chooses; no error repeats the URL, which may hold a password."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise SettingsError("DATABASE_URL is not a valid database URL") from None
    made = _DIALECTS.get(parsed.get_backend_name())
    if made is None or (made is SqliteDialect and "?" in url):
        raise SettingsError(
            "DATABASE_URL must name an SQLite file, as in sqlite:////srv/footnote/footnote.db, "
            "or a PostgreSQL database, as in postgresql://user:password@host/footnote"
        )
    return made(parsed, busy_seconds)
