"""Installation under check: its settings, and SQL and index, opened once and never changed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from bot.server_socket import read_server_url
from bot.settings import Settings
from storage.errors import StorageError
from storage.index.base import Index
from storage.sql.database import Database
from storage.stores import open_database_read_only, open_index_read_only
from storage.task_group import cancel_and_wait


class NoDatabase(StorageError):
    """The home's database does not exist yet."""


class DependencyFailed(StorageError):
    """A dependency of a check does not work; the dependency's check says why."""


class Installation:
    """Installation as described by its settings; made by ``open_installation``."""

    def __init__(self, settings: Settings, stack: AsyncExitStack) -> None:
        self.settings = settings
        self._stack = stack
        self._database: asyncio.Task[Database] | None = None
        self._index: asyncio.Task[Index | None] | None = None

    @property
    def server_url(self) -> str | None:
        """URL of the home's running ``serve``, None if none runs on this machine."""
        return read_server_url(self.settings.home)

    @property
    def public_url(self) -> str | None:
        """Base URL of links, None if it is not set and nothing listens."""
        url = self.settings.bot.public_url or self.server_url
        return url.rstrip("/") if url else None

    async def database(self) -> Database:
        """Return the database, opened at the first call.

        Raises:
            NoDatabase: there is none yet.
            StorageError: it cannot be opened, or its tables are another release's.
        """
        settings = self.settings.storage
        if settings.is_empty_home:
            raise NoDatabase(f"nothing in {settings.home_path} yet")
        if self._database is None:
            opening = self._stack.enter_async_context(open_database_read_only(settings))
            self._database = asyncio.create_task(opening, name="doctor-database")
        return await asyncio.shield(self._database)

    async def database_for(self, what: str) -> Database | None:
        """Return the database for a check that depends on it, None if there is none yet.

        Raises:
            DependencyFailed: SQL does not work, which the sql check reports.
        """
        try:
            return await self.database()
        except NoDatabase:
            return None
        except StorageError:
            raise DependencyFailed(f"not checked: {what}; the database does not work") from None

    async def index(self, database: Database) -> Index | None:
        """Return the configured index, None if it is our own Weaviate and is not running.

        Raises:
            StorageError: it is unreachable, or is not the index the documents are in.
        """
        if self._index is None:
            opening = self._stack.enter_async_context(open_index_read_only(self.settings.storage, database))
            self._index = asyncio.create_task(opening, name="doctor-index")
        return await asyncio.shield(self._index)

    async def close(self) -> None:
        """Cancel what is still being opened."""
        await cancel_and_wait(*[task for task in (self._database, self._index) if task and not task.done()])


@asynccontextmanager
async def open_installation(settings: Settings) -> AsyncIterator[Installation]:
    """Yield an installation to check; what was opened is closed at exit."""
    async with AsyncExitStack() as stack:
        installation = Installation(settings, stack)
        try:
            yield installation
        finally:
            await installation.close()
