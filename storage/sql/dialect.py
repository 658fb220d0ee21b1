"""Interface of a database engine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncSession

from storage.errors import DatabaseUnavailable
from storage.sql.migrations.revisions import is_current, require_current

# Time that a task waits for its turn in this process.
QUEUE_SECONDS = 30
# Snapshots that a process reads concurrently.
READERS = 8


@dataclass(frozen=True, slots=True)
class SqlStatus:
    """Version, replication and clock of an engine."""

    # Name and version.
    engine: str
    # A read-only replica of another server.
    is_replica: bool = False
    # Number of replicas; None if the engine has no replication or does not tell.
    followers: int | None = None
    # The server's time, if it may run on another machine.
    clock: datetime | None = None


class Dialect(Protocol):
    """SQL engine; raises SQLAlchemy's errors and explains their causes."""

    async def migrate(self, revision: str | None) -> None:
        """Migrate the schema to a revision (None: the latest) while no other process does."""

    async def require_current(self) -> None:
        """Verify that the schema is up to date and change nothing; raise as ``require_current``."""

    async def status(self) -> SqlStatus:
        """Return the engine's version, replication and clock."""

    def transaction(self, *, exclusive: bool, brief: bool) -> AbstractAsyncContextManager[AsyncSession]:
        """Return a context of a session whose writes are durable when it has ended without an error."""

    def snapshot(self) -> AbstractAsyncContextManager[AsyncSession]:
        """Return a context of a read-only session that sees one snapshot."""

    def content_lock(self, exclusive: bool) -> AbstractAsyncContextManager[None]:
        """Hold the content lock, as ``Database.content_lock``."""

    async def purge_deleted(self) -> None:
        """Overwrite deleted rows, so that no byte of them stays in the database's files."""

    def reader(self, *, brief: bool) -> AbstractAsyncContextManager[AsyncConnection]:
        """Return a context of a read-only connection for one statement."""

    def cause(self, error: DBAPIError) -> str | None:
        """Return what an admin should check, without secrets; None for a programming error."""

    async def aclose(self) -> None:
        """Finish pending commits and close every connection."""


class WriterQueue:
    """FIFO lock for writers: one task at a time."""

    def __init__(self, timeout_seconds: float = QUEUE_SECONDS) -> None:
        """Wait for a turn for at most ``timeout_seconds`` seconds."""
        self._lock = asyncio.Lock()
        self._timeout_seconds = timeout_seconds

    @asynccontextmanager
    async def turn(self, *, no_timeout: bool = False) -> AsyncIterator[None]:
        """Wait for the turn and hold it; without a timeout if ``no_timeout``.

        Raises:
            DatabaseUnavailable: timed out.
        """
        try:
            async with asyncio.timeout(None if no_timeout else self._timeout_seconds):
                await self._lock.acquire()
        except TimeoutError:
            raise DatabaseUnavailable(
                "timed out waiting for the database: too many pending transactions"
            ) from None
        try:
            yield
        finally:
            self._lock.release()


async def migrate(engine: AsyncEngine, revision: str | None) -> None:
    """Migrate the schema to a revision (None: the latest) in one exclusive transaction."""
    try:
        async with engine.begin() as connection:
            if revision or not await connection.run_sync(is_current):
                from storage.sql.migrations.upgrade import upgrade  # noqa: PLC0415 - Alembic is slow to import

                await connection.run_sync(upgrade, revision or "head")
    finally:
        await engine.dispose()


async def require_current_schema(engine: AsyncEngine) -> None:
    """Verify that the schema is this release's; raise as ``require_current``."""
    async with engine.connect() as connection:
        await connection.run_sync(require_current)
