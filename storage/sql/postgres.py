"""PostgreSQL: one server for several processes, whose steps are kept apart by row locks.

What must run alone takes one advisory lock first. Whatever the server says of its troubles becomes
one of the sentences here; none repeats the URL.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from typing import Any

from sqlalchemy import URL, Connection, event, func, select, text
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncSession, create_async_engine
from sqlmodel import SQLModel

from storage.errors import SettingsError
from storage.sql.dialect import (
    QUEUE_SECONDS,
    READERS,
    SqlStatus,
    WriterQueue,
    migrate,
    refuse_other_schema,
)

ALONE = 0x666F6F746E6F7465
"""The advisory lock of whoever is alone among writers: "footnote" in ASCII."""
CONTENTS = ALONE + 1
"""That of whoever adds or removes files which SQL names."""
WRITERS = 6
LOCKS = 2
"""Connections that hold such a lock at the same time."""
IDLE_SECONDS = 60
"""A transaction of a worker that fell silent is ended by the server after so long."""

_UNREACHABLE = "the database server does not answer: is it running, and is its address in DATABASE_URL right?"
_BUSY = "the database server takes no more connections: raise its max_connections, or run fewer processes"
_REFUSED = "the database server refuses our name or password: check DATABASE_URL"
_ABSENT = "the database that DATABASE_URL names is not there: create it on the server"
_STOPPING = "the database server is starting or stopping"
_LOCKED = "another program keeps the database locked"
_OVERTAKEN = "another transaction was in the way"

_CAUSES = {
    "08": "the connection to the database is gone",
    "25006": "the database is read-only: DATABASE_URL must name the primary server",
    "25P03": "the connection to the database was idle for too long",
    "28": _REFUSED,
    "3D000": _ABSENT,
    "40001": _OVERTAKEN,
    "40P01": _OVERTAKEN,
    "42501": "the database user lacks rights: it must own its tables and be allowed to make them",
    "53": "the database server has no memory or room left",
    "53100": "the disk under the database is full",
    "53300": _BUSY,
    "55P03": _LOCKED,
    "57014": "the database server broke a statement off",
    "57P": _STOPPING,
    "58": "the disk under the database does not answer as it should",
    "XX001": "the database is damaged: restore it from a backup",
    "XX002": "an index of the database is damaged: REINDEX it",
}
"""By SQLSTATE or its beginning, the longest that fits; all else is a mistake of ours."""

_REFUSALS = {
    "too many": _BUSY,
    "connection slots": _BUSY,
    "authentication": _REFUSED,
    "does not exist": _ABSENT,
    "starting up": _STOPPING,
    "shutting down": _STOPPING,
}
"""By what the server says to a connection that it does not accept: there is no SQLSTATE then."""

_STATUS = text(
    "SELECT current_setting('server_version') AS version, pg_is_in_recovery() AS is_replica, "
    "(SELECT count(*) FROM pg_stat_replication) AS followers, clock_timestamp() AS clock"
)
_LOCK = select(func.pg_advisory_xact_lock(ALONE))


class PostgresDialect:
    """One database on a server."""

    def __init__(self, url: URL, busy_seconds: float) -> None:
        """Prepare the connections of ``postgresql://user:password@host/database``; none is made yet.

        Args:
            url: where the server is; its query may hold libpq's options, such as ``sslmode``.
            busy_seconds: how long a writer waits for another process's lock.

        Raises:
            SettingsError: the URL names another driver, or no database.
        """
        if url.drivername not in ("postgresql", "postgresql+psycopg") or not url.database:
            raise SettingsError(
                "DATABASE_URL must name a PostgreSQL database as in postgresql://user:password@host/footnote"
            )
        self._url = url.set(drivername="postgresql+psycopg")
        self._busy_seconds = busy_seconds
        self._turns = WriterQueue()
        self._writers = self._engine(WRITERS)
        self._locks = self._engine(LOCKS, isolation_level="AUTOCOMMIT")
        self._readers = self._engine(
            READERS, isolation_level="REPEATABLE READ", execution_options={"postgresql_readonly": True}
        )

    async def migrate(self, revision: str | None) -> None:
        """In one transaction that holds the lock: PostgreSQL takes changes of tables back as well."""
        engine = self._engine(1)
        event.listen(engine.sync_engine, "begin", _take_lock)
        await migrate(engine, revision)

    async def require_current(self) -> None:
        """By a reader."""
        await refuse_other_schema(self._readers)

    async def status(self) -> SqlStatus:
        """Who may not see who follows the server is told of none."""
        async with self.reader() as connection:
            row = (await connection.execute(_STATUS)).one()
        return SqlStatus(f"PostgreSQL {row.version.split()[0]}", row.is_replica, row.followers, row.clock)

    @asynccontextmanager
    async def transaction(self, *, exclusive: bool) -> AsyncIterator[AsyncSession]:
        """Every statement sees what was committed before it, which for one that is alone stays true."""
        # The turn comes first: tasks of this process that wait for the lock must not use up its connections.
        async with self._turns.turn() if exclusive else nullcontext():
            async with AsyncSession(self._writers, expire_on_commit=False) as session, session.begin():
                if exclusive:
                    await session.execute(_LOCK)
                yield session

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[AsyncSession]:
        """What was committed before its first statement."""
        async with AsyncSession(self._readers, expire_on_commit=False) as session:
            yield session

    @asynccontextmanager
    async def content_lock(self, alone: bool) -> AsyncIterator[None]:
        """A lock of a session, as files may take longer than a transaction may be idle; it ends with it."""
        suffix = "" if alone else "_shared"
        async with self._locks.connect() as connection:
            await connection.execute(text(f"SELECT pg_advisory_lock{suffix}({CONTENTS})"))
            try:
                yield
            finally:
                await connection.execute(text(f"SELECT pg_advisory_unlock{suffix}({CONTENTS})"))

    async def scrub(self) -> None:
        """Rewrite every table; the server's write-ahead log and its backups are its administrator's."""
        async with self._writers.connect() as opened:
            connection = await opened.execution_options(isolation_level="AUTOCOMMIT")
            for table in SQLModel.metadata.tables:
                await connection.execute(text(f'VACUUM (FULL, ANALYZE) "{table}"'))

    @asynccontextmanager
    async def reader(self) -> AsyncIterator[AsyncConnection]:
        """In a transaction: only there the server refuses to write."""
        async with self._readers.connect() as connection:
            yield connection

    def cause(self, error: DBAPIError) -> str | None:
        """By the SQLSTATE, or by the words of a server that did not let us in."""
        state = getattr(error.orig, "sqlstate", None)
        if state:
            return next((_CAUSES[state[:n]] for n in (5, 3, 2) if state[:n] in _CAUSES), None)
        if not isinstance(error, OperationalError | InterfaceError):
            return None
        said = str(error.orig)
        return next((cause for words, cause in _REFUSALS.items() if words in said), _UNREACHABLE)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._readers.dispose()
        await self._locks.dispose()
        await self._writers.dispose()

    def _engine(self, pool_size: int, **options: Any) -> AsyncEngine:
        """An engine that notices a restarted or vanished server and connects again."""
        asked = self._url.query.get("options", "")
        limits = f"-c lock_timeout={self._busy_seconds * 1000:.0f}"
        limits += " -c jit=off"  # compiling takes longer than any query of ours: 0.6 s against 0.1 s
        limits += f" -c idle_in_transaction_session_timeout={IDLE_SECONDS * 1000} -c timezone=UTC {asked}"
        defaults = {"connect_timeout": 10, "keepalives_idle": 20, "tcp_user_timeout": 30_000}
        named = {name: value for name, value in defaults.items() if name not in self._url.query}
        return create_async_engine(
            self._url,
            pool_size=pool_size,
            max_overflow=0,
            pool_timeout=QUEUE_SECONDS,
            pool_pre_ping=True,
            hide_parameters=True,  # errors are logged, and parameters are people's words
            connect_args={"application_name": "footnote", "options": limits, **named},
            **options,
        )


def _take_lock(connection: Connection) -> None:
    connection.execute(_LOCK)
