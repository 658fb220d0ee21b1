"""Group commit: concurrent SQLite transactions become durable by one commit.

Each runs in a savepoint, one after another, and is acknowledged when the commit of its group is on disk. They
share one aiosqlite connection, on which a cancelled task cannot abort another task's statement.
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

# Driver methods that run a statement or fetch its rows. BEGIN IMMEDIATE and COMMIT wait for other writers and
# the disk, so they never run in a brief context.
_STATEMENT = {"execute", "executemany", "fetchone", "fetchmany", "fetchall"}
MAX_MEMBERS = 64
# Maximum age of a group that a transaction may join: the first member waits for all of them.
MAX_SECONDS = 0.05


class UncancelledConnection(aiosqlite.Connection):
    """Connection whose statements run to completion, even if their task is cancelled.

    SQLAlchemy discards a connection when a statement is aborted, and with it the work of all tasks that share
    its transaction.
    """

    # True to run statements in the caller's thread; never one that waits for a lock or the disk.
    # A round trip to the connection's thread waits twice for the interpreter's lock, for 5 ms each time that
    # another thread computes: a hundred times as long as SQLite needs to find a row by its key.
    is_brief = False

    async def _execute(self, fn: Any, *args: Any, **kwargs: Any) -> Any:
        if self._is_quick(fn, args):
            return fn(*args, **kwargs)
        return await run_to_completion(super()._execute(fn, *args, **kwargs))  # type: ignore[no-untyped-call]

    def _is_quick(self, fn: Any, args: Sequence[Any]) -> bool:
        """True if the call returns at once, so that a round trip to the connection's thread is not worth it.

        A plain BEGIN takes no lock yet; inside a transaction, savepoints stay in memory.
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
    """Return a connection in driver-level autocommit: its user sends BEGIN explicitly."""
    opened = partial(
        sqlite3.connect, file, isolation_level=None, timeout=busy_seconds, check_same_thread=False
    )
    connection = UncancelledConnection(opened, iter_chunk_size=64)
    connection._thread.daemon = True  # as SQLAlchemy does: a forgotten connection must not block the exit
    return await connection


async def run_to_completion(step: Coroutine[Any, Any, T]) -> T:
    """Return a step's result; cancellation is deferred to the next await."""
    running = asyncio.ensure_future(step)
    is_cancelled = False
    while not running.done():
        try:
            await asyncio.wait([running])
        except asyncio.CancelledError:
            is_cancelled = True
    task = asyncio.current_task()
    if is_cancelled and task is not None:
        task.uncancel()  # the next line requests it again: once in all, because timeouts count requests
        task.cancel()
    return running.result()


@contextmanager
def brief_statements(connection: AsyncConnection) -> Iterator[None]:
    """Run the statements of this context in the caller's thread."""
    driver = _driver(connection)
    if driver is not None:
        driver.is_brief = True
    try:
        yield
    finally:
        if driver is not None:
            driver.is_brief = False


def _driver(connection: AsyncConnection) -> UncancelledConnection | None:
    """Return the driver's connection, as made by ``connect``; None if it is gone."""
    if connection.closed or connection.invalidated:
        return None
    driver = connection.sync_connection.connection.driver_connection  # type: ignore[union-attr]
    return cast("UncancelledConnection | None", driver)


class CommitGroup:
    """Transactions on one connection that are committed together."""

    def __init__(self, connection: AsyncConnection) -> None:
        """Start with the connection's transaction already open."""
        self.connection = connection
        self.members = 0
        self.settled = asyncio.Event()
        # Why the whole group was rolled back.
        self.failure: BaseException | None = None
        self._full_at = time.monotonic() + MAX_SECONDS

    @property
    def is_full(self) -> bool:
        """True if the next transaction has to start another group."""
        return self.members >= MAX_MEMBERS or time.monotonic() > self._full_at

    @property
    def is_whole(self) -> bool:
        """True if SQLite still holds the transaction."""
        return bool((driver := _driver(self.connection)) and driver.in_transaction)


class GroupCommit:
    """Single writer of a process."""

    def __init__(self, engine: AsyncEngine, timeout_seconds: float = QUEUE_SECONDS) -> None:
        """Write through an engine of pooled connections whose transactions begin with BEGIN IMMEDIATE.

        A task that waits longer than ``timeout_seconds`` seconds for its turn fails.
        """
        self._engine = engine
        self._turns = WriterQueue(timeout_seconds)
        self._group: CommitGroup | None = None
        self._closers: set[asyncio.Task[None]] = set()
        event.listen(engine.sync_engine, "handle_error", self._on_error)

    @asynccontextmanager
    async def transaction(self, *, brief: bool = False) -> AsyncIterator[AsyncSession]:
        """Yield an exclusive session; when the context has ended, its writes are on disk.

        ``brief``: it reads and writes a few rows that it finds by key.
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
                await asyncio.sleep(0)  # raises a cancellation that arrived during the last statement
                await session.commit()
            except BaseException as error:
                await self._undo(session, group)
                if group.failure is not None and isinstance(error, SQLAlchemyError):
                    # The group's failure is the cause; this error only follows from it.
                    raise group.failure from error
                raise

    async def aclose(self) -> None:
        """Commit the open group, then close the file."""
        async with self._turns.turn():
            await self._commit()
        await asyncio.gather(*self._closers, return_exceptions=True)
        await self._engine.dispose()

    async def _join(self) -> CommitGroup:
        """Return the group to join; a new one is committed after all tasks that are waiting now."""
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
        """Commit the group after every task that waited when it began, because turns are FIFO."""
        # No timeout: without this commit the members would wait for ever.
        async with self._turns.turn(no_timeout=True):
            if self._group is group:
                await self._commit()

    async def _commit(self) -> None:
        if self._group is not None:
            group, self._group = self._group, None
            await run_to_completion(_settle(group))

    async def _undo(self, session: AsyncSession, group: CommitGroup) -> None:
        """Roll back one transaction; if its savepoint cannot be undone, fail the whole group."""
        try:
            await session.rollback()
        except SQLAlchemyError as error:
            group.failure = group.failure or error
        if group.failure is not None:
            await self._commit()

    def _on_error(self, context: ExceptionContext) -> None:
        """Fail the group if SQLite has rolled it back entirely, as it does on a full disk."""
        if self._group is not None and self._group.failure is None and not self._group.is_whole:
            self._group.failure = context.sqlalchemy_exception


async def _settle(group: CommitGroup) -> None:
    """Commit a group and wake its members; a failed one is rolled back by closing its connection."""
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
