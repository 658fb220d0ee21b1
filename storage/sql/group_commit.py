"""Group commit: SQLite transactions that wait at the same time become durable by one commit.

Each runs in a savepoint, one after another, and is acknowledged when the commit of its group is on disk. They
share one aiosqlite connection, on which no task that is cancelled can break off another one's statement.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

import aiosqlite
from sqlalchemy import ExceptionContext, event
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncSession

from storage.sql.dialect import QUEUE_SECONDS, WriterQueue

T = TypeVar("T")

# What is called for a statement and its rows; BEGIN IMMEDIATE and COMMIT wait for others and the disk.
_STATEMENT = {"execute", "executemany", "fetchone", "fetchmany", "fetchall"}
MAX_MEMBERS = 64
# How old a group may be when another transaction joins it: the first one waits for all of them.
MAX_SECONDS = 0.05


class UncancelledConnection(aiosqlite.Connection):
    """Every statement runs to its end, even when its task is cancelled meanwhile.

    SQLAlchemy throws a connection away when a statement is broken off, and with it the work of all
    tasks that share its transaction.
    """

    # Whether statements run in the caller's thread; never one that waits for a lock or the disk.
    #
    # A way to the connection's thread and back waits twice for the interpreter's lock, for 5 ms each time
    # that another thread computes: a hundred times as long as SQLite needs for a row that it finds by a key.
    is_brief = False

    async def _execute(self, fn: Any, *args: Any, **kwargs: Any) -> Any:
        if self._is_quick(fn, args):
            return fn(*args, **kwargs)
        return await run_to_completion(super()._execute(fn, *args, **kwargs))  # type: ignore[no-untyped-call]

    def _is_quick(self, fn: Any, args: Sequence[Any]) -> bool:
        """True if it is over at once, and so not worth a way to the connection's thread and back.

        A plain BEGIN locks nothing yet; inside a transaction, savepoints are kept in memory.
        """
        name, is_open = getattr(fn, "__name__", ""), self._conn.in_transaction
        if self.is_brief and name in _STATEMENT:
            return True
        if name == "execute":
            return args[0] == "BEGIN" or (is_open and args[0].startswith(("SAVEPOINT ", "RELEASE ")))
        if name == "rollback":
            return not is_open
        is_of_cursor = isinstance(getattr(fn, "__self__", None), sqlite3.Cursor)
        return fn == self._conn.cursor or (is_of_cursor and name == "close")


async def connect(file: Path, busy_seconds: float) -> aiosqlite.Connection:
    """Return a connection in driver-level autocommit: whoever uses it writes BEGIN."""
    opened = partial(
        sqlite3.connect, file, isolation_level=None, timeout=busy_seconds, check_same_thread=False
    )
    connection = UncancelledConnection(opened, iter_chunk_size=64)
    connection._thread.daemon = True  # as SQLAlchemy has it: a forgotten connection must not hold the exit up
    return await connection


async def run_to_completion(step: Coroutine[Any, Any, T]) -> T:
    """What a step returns; a cancellation that comes meanwhile is felt where the task waits next."""
    running = asyncio.ensure_future(step)
    is_cancelled = False
    while not running.done():
        try:
            await asyncio.wait([running])
        except asyncio.CancelledError:
            is_cancelled = True
    task = asyncio.current_task()
    if is_cancelled and task is not None:
        task.uncancel()  # asked for once more in the next line, and not twice: timeouts count requests
        task.cancel()
    return running.result()


@contextmanager
def brief_statements(connection: AsyncConnection) -> Iterator[None]:
    """Yield the statements of this context change no thread."""
    driver = _driver(connection)
    if driver is not None:
        driver.is_brief = True
    try:
        yield
    finally:
        if driver is not None:
            driver.is_brief = False


def _driver(connection: AsyncConnection) -> UncancelledConnection | None:
    """Return a connection as ``connect`` made it; None when it is gone."""
    if connection.closed or connection.invalidated:
        return None
    driver = connection.sync_connection.connection.driver_connection  # type: ignore[union-attr]
    return cast("UncancelledConnection | None", driver)


class CommitGroup:
    """Transactions on one connection that will be committed together."""

    def __init__(self, connection: AsyncConnection) -> None:
        """Begin with the connection's transaction already open."""
        self.connection = connection
        self.members = 0
        self.settled = asyncio.Event()
        # Why nothing of it was kept.
        self.failure: BaseException | None = None
        self._full_at = time.monotonic() + MAX_SECONDS

    @property
    def is_full(self) -> bool:
        """True if the next transaction has to begin another group."""
        return self.members >= MAX_MEMBERS or time.monotonic() > self._full_at

    @property
    def is_whole(self) -> bool:
        """True if SQLite still holds the transaction."""
        return bool((driver := _driver(self.connection)) and driver.in_transaction)


class GroupCommit:
    """The only writer of a process."""

    def __init__(self, engine: AsyncEngine, timeout_seconds: float = QUEUE_SECONDS) -> None:
        """Write through an engine of steady connections whose transactions begin with BEGIN IMMEDIATE.

        Whoever waits longer than ``timeout_seconds`` seconds for a turn gives up.
        """
        self._engine = engine
        self._turns = WriterQueue(timeout_seconds)
        self._group: CommitGroup | None = None
        self._closers: set[asyncio.Task[None]] = set()
        event.listen(engine.sync_engine, "handle_error", self._note)

    @asynccontextmanager
    async def transaction(self, *, brief: bool = False) -> AsyncIterator[AsyncSession]:
        """Yield a session that is alone; when the context has ended, what it wrote is on disk.

        ``brief``: it reads and writes a few rows that it finds by keys.
        """
        async with self._turns.turn():
            group = await self._join()
            with brief_statements(group.connection) if brief else nullcontext():
                async with self._member(group) as session:
                    yield session
        await group.settled.wait()
        if group.failure is not None:
            raise group.failure

    @asynccontextmanager
    async def _member(self, group: CommitGroup) -> AsyncIterator[AsyncSession]:
        """Yield a session in a savepoint of the group."""
        async with AsyncSession(
            group.connection, expire_on_commit=False, join_transaction_mode="create_savepoint"
        ) as session:
            try:
                yield session
                await asyncio.sleep(0)  # a cancellation during the last statement is felt here
                await session.commit()
            except BaseException as error:
                await self._undo(session, group)
                if group.failure is not None and isinstance(error, SQLAlchemyError):
                    raise group.failure from error
                raise

    async def aclose(self) -> None:
        """Commit what is open, then let go of the file."""
        async with self._turns.turn():
            await self._commit()
        await asyncio.gather(*self._closers, return_exceptions=True)
        await self._engine.dispose()

    async def _join(self) -> CommitGroup:
        """Return the group to write into; a new one is closed after all those who are waiting by now."""
        if self._group is not None and self._group.is_full:
            await self._commit()
        if self._group is None:
            self._group = CommitGroup(await run_to_completion(self._begin()))
            closer = asyncio.create_task(self._close(self._group))
            self._closers.add(closer)
            closer.add_done_callback(self._closers.discard)
        self._group.members += 1
        return self._group

    async def _begin(self) -> AsyncConnection:
        connection = await self._engine.connect()
        try:
            await connection.begin()
        except BaseException:
            await connection.close()
            raise
        return connection

    async def _close(self, group: CommitGroup) -> None:
        """Turns go by arrival, so this one comes after everybody who waited when the group began.

        However long one of them takes: without the commit its members would wait for ever.
        """
        async with self._turns.turn(must_come=True):
            if self._group is group:
                await self._commit()

    async def _commit(self) -> None:
        if self._group is not None:
            group, self._group = self._group, None
            await run_to_completion(_settle(group))

    async def _undo(self, session: AsyncSession, group: CommitGroup) -> None:
        """Take back what one transaction wrote; a group that cannot be kept without it is lost."""
        try:
            await session.rollback()
        except SQLAlchemyError as error:
            group.failure = group.failure or error
        if group.failure is not None:
            await self._commit()

    def _note(self, context: ExceptionContext) -> None:
        """After some faults, such as a full disk, SQLite has rolled back the whole group."""
        if self._group is not None and self._group.failure is None and not self._group.is_whole:
            self._group.failure = context.sqlalchemy_exception


async def _settle(group: CommitGroup) -> None:
    """Commit a group and wake its members; one that failed is rolled back by closing its connection."""
    try:
        if group.failure is None:
            await group.connection.commit()
    except SQLAlchemyError as error:
        group.failure = error
    finally:
        if group.failure is not None:
            await group.connection.invalidate()
        await group.connection.close()
        group.settled.set()
