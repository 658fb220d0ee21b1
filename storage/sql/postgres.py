"""PostgreSQL: one server for several processes, isolated by row locks.

Exclusive transactions take one advisory lock first. Server errors become one of the messages here; none
repeats the URL.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from sqlalchemy import URL, Connection, event, func, select, text
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncSession, create_async_engine
from sqlmodel import SQLModel

from storage.clock import monotonic_seconds
from storage.errors import SettingsError
from storage.sql.dialect import (
    QUEUE_SECONDS,
    READERS,
    SqlStatus,
    WriterQueue,
    migrate,
    require_current_schema,
)
from storage.task_group import cancel_and_wait

if TYPE_CHECKING:
    from psycopg import AsyncConnection as PsycopgConnection

# Advisory lock of exclusive transactions: "footnote" in ASCII.
EXCLUSIVE_LOCK = 0x666F6F746E6F7465
# Advisory lock for adding or removing files that SQL names.
CONTENT_LOCK = EXCLUSIVE_LOCK + 1
WRITERS = 6
# Connections that hold a content lock at the same time.
LOCKS = 2
# The server ends the transaction of a worker that has been silent for this time.
IDLE_SECONDS = 60

# A step that takes longer than SUSPECT_SECONDS has a separate connection probe the server.
PROBE_AFTER_SECONDS, TICK_SECONDS = 1.0, 0.25
# The server counts as silent if it does not accept the probe within this time.
SILENT_SECONDS = 2.5
PROBE_INTERVAL_SECONDS = 0.5
# Once the server was found silent, connecting fails fast for this time.
FAIL_FAST_SECONDS = 2.0

_UNREACHABLE = "the database server does not answer: is it running, and is its address in DATABASE_URL right?"
_BUSY = "the database server has too many connections: raise max_connections, or run fewer processes"
_REFUSED = "database authentication failed: check user and password in DATABASE_URL"
_ABSENT = "the database in DATABASE_URL does not exist: create it"
_STOPPING = "the database server is starting or stopping"
_LOCKED = "the database is locked by another program"
_OVERTAKEN = "conflict with another transaction"

# By SQLSTATE or its prefix, the longest that matches; any other error is a bug of ours.
_CAUSES = {
    "08": "the database connection was lost",
    "25006": "the database is read-only: DATABASE_URL must name the primary server",
    "25P03": "the connection to the database was idle for too long",
    "28": _REFUSED,
    "3D000": _ABSENT,
    "40001": _OVERTAKEN,
    "40P01": _OVERTAKEN,
    "42501": "the database user lacks privileges: it must own its tables and be able to create tables",
    "53": "the database server is out of memory or disk space",
    "53100": "the disk under the database is full",
    "53300": _BUSY,
    "55P03": _LOCKED,
    "57014": "the database server cancelled a statement",
    "57P": _STOPPING,
    "58": "I/O error on the database's disk",
    "XX001": "the database is corrupt: restore a backup",
    "XX002": "a database index is corrupt: run REINDEX",
}

# By the message of a refused connection, which comes without an SQLSTATE.
_REFUSALS = {
    "too many": _BUSY,
    "connection slots": _BUSY,
    "authentication": _REFUSED,
    "does not exist": _ABSENT,
    "starting up": _STOPPING,
    "shutting down": _STOPPING,
}

_STATUS = text(
    "SELECT current_setting('server_version') AS version, pg_is_in_recovery() AS is_replica, "
    "(SELECT count(*) FROM pg_stat_replication) AS followers, clock_timestamp() AS clock"
)
_LOCK = select(func.pg_advisory_xact_lock(EXCLUSIVE_LOCK))


class ServerWatchdog:
    """Watches a process's connections to one server, and aborts them once the server is silent.

    libpq waits for an answer for as long as its connection exists. Through a network partition, a proxy, or
    to a hanging server that may be long: a proxy or a kernel answers keepalives. Cancelling the waiting task
    does not help either: psycopg then asks the server to cancel the statement, and gives it ten seconds.
    """

    def __init__(self) -> None:
        self._connections: WeakSet[PsycopgConnection[Any]] = WeakSet()
        self._connecting: set[asyncio.Task[PsycopgConnection[Any]]] = set()
        self._target: tuple[tuple[Any, ...], dict[str, Any]] = ((), {})
        self._steps: dict[int, float] = {}
        # Number of completed steps.
        self._ended = 0
        self._numbers = itertools.count()
        self._watching: asyncio.Task[None] | None = None
        self._silent_until = 0.0

    async def connect(self, *target: Any, **options: Any) -> PsycopgConnection[Any]:
        """Return a connection that is aborted once the server is silent; arguments as of psycopg.

        Raises:
            psycopg.OperationalError: the server is silent, or refuses.
        """
        import psycopg  # noqa: PLC0415 - imported only where PostgreSQL is used

        if self._is_silent():
            raise psycopg.OperationalError("the server is not responding; retrying shortly")
        self._target = target, options
        connecting = asyncio.create_task(psycopg.AsyncConnection.connect(*target, **options))
        self._connecting.add(connecting)
        connecting.add_done_callback(self._connecting.discard)
        try:
            connection = await connecting
        except asyncio.CancelledError:
            if connecting.cancelled() and self._is_silent():
                raise psycopg.OperationalError("the server does not answer") from None
            if connecting.done() and not connecting.cancelled() and not connecting.exception():
                await connecting.result().close()  # it was established at the very moment of the cancellation
            connecting.cancel()
            raise
        self._connections.add(connection)
        return connection

    @contextmanager
    def step(self) -> Iterator[None]:
        """Count the context as a step that waits for the server."""
        number = next(self._numbers)
        self._steps[number] = monotonic_seconds()
        if self._watching is None or self._watching.done():
            self._watching = asyncio.create_task(self._watch(), name="database-watch")
        try:
            yield
            self._ended += 1
        finally:
            del self._steps[number]

    async def aclose(self) -> None:
        """Stop watching."""
        if self._watching:
            await cancel_and_wait(self._watching)

    async def _watch(self) -> None:
        """Probe the server when a step waits for long; end when none waits."""
        while self._steps:
            await asyncio.sleep(TICK_SECONDS)
            since = min(self._steps.values(), default=monotonic_seconds())
            if monotonic_seconds() - since <= PROBE_AFTER_SECONDS:
                continue
            if not await self._is_alive():
                self._silent_until = monotonic_seconds() + FAIL_FAST_SECONDS
                self._abort_connections()
            await asyncio.sleep(PROBE_INTERVAL_SECONDS)

    async def _is_alive(self) -> bool:
        """True if the server accepts or refuses a connection, or completes any step."""
        asking, before = asyncio.create_task(self._probe()), self._ended
        # Wait in turns of the event loop: time in which the loop itself was blocked does not count.
        for _ in range(round(SILENT_SECONDS / TICK_SECONDS)):
            done, _ = await asyncio.wait({asking}, timeout=TICK_SECONDS)
            if done or self._ended != before:
                break
        answers = asking.done() or self._ended != before
        await cancel_and_wait(asking)
        return answers

    async def _probe(self) -> None:
        import psycopg  # noqa: PLC0415 - imported only where PostgreSQL is used

        target, options = self._target
        with suppress(psycopg.Error):
            connection = await psycopg.AsyncConnection.connect(*target, **options)
            await connection.close()

    def _abort_connections(self) -> None:
        """Shut down every socket below libpq, so that waiting tasks fail at once."""
        for task in list(self._connecting):
            task.cancel()
        for connection in [one for one in self._connections if not one.closed]:
            # A duplicate of the descriptor: closing it leaves libpq's own open.
            with suppress(OSError), socket.socket(fileno=os.dup(connection.fileno())) as duplicate:
                duplicate.shutdown(socket.SHUT_RDWR)

    def _is_silent(self) -> bool:
        return monotonic_seconds() < self._silent_until


class PostgresDialect:
    """PostgreSQL database on a server."""

    def __init__(self, url: URL, busy_seconds: float) -> None:
        """Prepare the connections to ``postgresql://user:password@host/database``; connect later.

        Args:
            url: address of the server; its query may hold libpq's options, such as ``sslmode``.
            busy_seconds: time that a writer waits for another process's lock.

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
        self._watch = ServerWatchdog()
        self._writers = self._engine(WRITERS)
        self._locks = self._engine(LOCKS, isolation_level="AUTOCOMMIT")
        # REPEATABLE READ: all statements of a transaction see one snapshot.
        self._readers = self._engine(
            READERS, isolation_level="REPEATABLE READ", execution_options={"postgresql_readonly": True}
        )

    async def migrate(self, revision: str | None) -> None:
        """Migrate in one transaction that holds the lock: PostgreSQL rolls back DDL as well."""
        engine = self._engine(1)
        event.listen(engine.sync_engine, "begin", _acquire_lock)
        await migrate(engine, revision)

    async def require_current(self) -> None:
        """Verify the schema over a reader's connection."""
        await require_current_schema(self._readers)

    async def status(self) -> SqlStatus:
        """Return version, replication and clock; a user who may not see replicas gets a count of 0."""
        async with self.reader() as connection:
            row = (await connection.execute(_STATUS)).one()
        return SqlStatus(f"PostgreSQL {row.version.split()[0]}", row.is_replica, row.followers, row.clock)

    @asynccontextmanager
    async def transaction(self, *, exclusive: bool, brief: bool) -> AsyncIterator[AsyncSession]:
        """Yield a session whose statements see what was committed before; if exclusive, that stays true."""
        # The turn comes first: tasks of this process that wait for the lock must not exhaust its pool.
        async with self._turns.turn() if exclusive else nullcontext():
            with self._watch.step():
                async with AsyncSession(self._writers, expire_on_commit=False) as session, session.begin():
                    if exclusive:
                        await session.execute(_LOCK)
                    yield session

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[AsyncSession]:
        """Yield a read-only session that sees what was committed before its first statement."""
        with self._watch.step():
            async with AsyncSession(self._readers, expire_on_commit=False) as session:
                yield session

    @asynccontextmanager
    async def content_lock(self, exclusive: bool) -> AsyncIterator[None]:
        """Hold a session-level advisory lock: files may take longer than a transaction may be idle."""
        suffix = "" if exclusive else "_shared"
        with self._watch.step():
            async with self._locks.connect() as connection:
                await connection.execute(text(f"SELECT pg_advisory_lock{suffix}({CONTENT_LOCK})"))
                try:
                    yield
                finally:
                    await connection.execute(text(f"SELECT pg_advisory_unlock{suffix}({CONTENT_LOCK})"))

    async def purge_deleted(self) -> None:
        """Rewrite every table; the server's write-ahead log and backups are up to its administrator."""
        async with self._writers.connect() as opened:
            connection = await opened.execution_options(isolation_level="AUTOCOMMIT")
            for table in SQLModel.metadata.tables:
                await connection.execute(text(f'VACUUM (FULL, ANALYZE) "{table}"'))

    @asynccontextmanager
    async def reader(self, *, brief: bool = False) -> AsyncIterator[AsyncConnection]:
        """Yield a connection in a transaction: only there does the server refuse to write."""
        with self._watch.step():
            async with self._readers.connect() as connection:
                yield connection

    def cause(self, error: DBAPIError) -> str | None:
        """Return the cause by the SQLSTATE, or by the message of a refused connection."""
        state = getattr(error.orig, "sqlstate", None)
        if state:
            return next((_CAUSES[state[:n]] for n in (5, 3, 2) if state[:n] in _CAUSES), None)
        if not isinstance(error, OperationalError | InterfaceError):
            return None
        said = str(error.orig)
        return next((cause for words, cause in _REFUSALS.items() if words in said), _UNREACHABLE)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._watch.aclose()
        await self._readers.dispose()
        await self._locks.dispose()
        await self._writers.dispose()

    def _engine(self, pool_size: int, **options: Any) -> AsyncEngine:
        """Return an engine that detects a restarted or vanished server and reconnects."""
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
            hide_parameters=True,  # errors are logged, and parameters hold users' words
            connect_args={
                "application_name": "footnote",
                "options": limits,
                "async_creator_fn": self._watch.connect,
                **named,
            },
            **options,
        )


def _acquire_lock(connection: Connection) -> None:
    connection.execute(_LOCK)
