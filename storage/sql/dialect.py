"""What ``storage.sql.database`` needs from an SQL engine, whichever it is."""

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

# How long a task waits for its turn in this process.
QUEUE_SECONDS = 30
# Snapshots that one process reads at the same time.
READERS = 8


@dataclass(frozen=True, slots=True)
class SqlStatus:
    """What an engine says of itself."""

    # Its name and version.
    engine: str
    # It only follows another server, and nothing can be written.
    is_replica: bool = False
    # Servers that follow it; None: it has none by its nature, or does not say.
    followers: int | None = None
    # Its time, where its machine may be another one.
    clock: datetime | None = None


class Dialect(Protocol):
    """One SQL engine, opened; it raises SQLAlchemy's errors, and says what they mean."""

    async def migrate(self, revision: str | None) -> None:
        """Bring the schema up to date, or to a revision, while no other process does."""

    async def require_current(self) -> None:
        """Make sure that the schema is up to date, and change nothing; raises as ``require_current``."""

    async def status(self) -> SqlStatus:
        """What the engine says of itself."""

    def transaction(self, *, exclusive: bool, brief: bool) -> AbstractAsyncContextManager[AsyncSession]:
        """Return a session whose work is durable when the context has ended without an error."""

    def snapshot(self) -> AbstractAsyncContextManager[AsyncSession]:
        """Return a session that cannot write and sees one moment."""

    def content_lock(self, alone: bool) -> AbstractAsyncContextManager[None]:
        """As ``Database.content_lock``."""

    async def scrub(self) -> None:
        """Overwrite what was deleted: no byte of it stays in the database's own files."""

    def reader(self, *, brief: bool) -> AbstractAsyncContextManager[AsyncConnection]:
        """Return a connection for one statement that cannot write."""

    def cause(self, error: DBAPIError) -> str | None:
        """What an admin should check, as a sentence without secrets; None for a mistake of ours."""

    async def aclose(self) -> None:
        """Finish what is being committed and let go of every connection."""


class WriterQueue:
    """One task at a time, in the order they came."""

    def __init__(self, timeout_seconds: float = QUEUE_SECONDS) -> None:
        """Wait for a turn for at most ``timeout_seconds`` seconds."""
        self._lock = asyncio.Lock()
        self._timeout_seconds = timeout_seconds

    @asynccontextmanager
    async def turn(self, *, must_come: bool = False) -> AsyncIterator[None]:
        """Wait for the turn and keep it; for as long as it takes when it ``must_come``.

        Raises:
            DatabaseUnavailable: others took too long.
        """
        try:
            async with asyncio.timeout(None if must_come else self._timeout_seconds):
                await self._lock.acquire()
        except TimeoutError:
            raise DatabaseUnavailable("too much work is waiting for the database") from None
        try:
            yield
        finally:
            self._lock.release()


async def migrate(engine: AsyncEngine, revision: str | None) -> None:
    """Bring the schema to a revision, None: the newest, in a transaction alone from its first line."""
    try:
        async with engine.begin() as connection:
            if revision or not await connection.run_sync(is_current):
                from storage.sql.migrations.upgrade import upgrade  # noqa: PLC0415 - Alembic is slow to import

                await connection.run_sync(upgrade, revision or "head")
    finally:
        await engine.dispose()


async def refuse_other_schema(engine: AsyncEngine) -> None:
    """Raise as ``require_current`` unless the schema is this release's."""
    async with engine.connect() as connection:
        await connection.run_sync(require_current)
