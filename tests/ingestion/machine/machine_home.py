"""Homes of the state machine: engines shared by all examples, and a new home for each."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Awaitable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeVar

from engines.postgres import RealPostgres, memory
from harness.empty_homes import make_sqlite
from harness.lasting_pool import LastingPdf
from machine_faults import FailingBlobs, FailingIndex, Faults

from storage.chat.channels import Channels
from storage.documents.catalog import Catalog
from storage.files.reading_files import ReadingFiles
from storage.folders.folders import Folders
from storage.index.base import Index
from storage.index.embedded.index import EmbeddedIndex
from storage.settings import StorageSettings
from storage.sql.database import Database

T = TypeVar("T")


class Databases(Protocol):
    """Factory of databases with current tables."""

    def make(self, home: Path) -> str:
        """Create a database, which may be inside the home; return its URL."""

    def drop(self, url: str) -> None:
        """Drop a database."""


class SqliteFiles:
    """An SQLite file in each home."""

    def make(self, home: Path) -> str:
        """Copy a prepared database into the home."""
        return make_sqlite(home)

    def drop(self, url: str) -> None:
        """Do nothing: the file is deleted with its home."""


class PostgresCopies:
    """A PostgreSQL database for each home."""

    def __init__(self, server: RealPostgres) -> None:
        self._server = server

    def make(self, home: Path) -> str:
        """Copy a prepared database on the server."""
        return self._server.make_home()

    def drop(self, url: str) -> None:
        """Drop the database; its connections are closed already."""
        self._server.drop(url)


@dataclass
class Bench:
    """Slow-starting parts shared by all examples: an event loop and the confined reader."""

    databases: Databases
    # Connects to an index shared by all examples; None: each home has an embedded one.
    connect: Awaitable[Index] | None = None
    runner: asyncio.Runner = field(default_factory=asyncio.Runner)
    examples: int = 0
    steps: int = 0

    def __post_init__(self) -> None:
        self.pdf = LastingPdf(StorageSettings())
        self.shared = self.run(self.connect) if self.connect else None
        self._homes = Path(tempfile.mkdtemp(dir=memory()))  # in memory: no example tests power loss

    def run(self, work: Awaitable[T]) -> T:
        """Run an awaitable to its end."""

        async def wait() -> T:
            return await work

        return self.runner.run(wait())

    def make_home(self) -> MachineHome:
        """Return a new home, which the caller closes."""
        self.examples += 1
        path = self._homes / str(self.examples)
        path.mkdir()
        url = self.databases.make(path)
        index = self.shared or EmbeddedIndex(path / "index", 10)
        return MachineHome(self, path, url, self.run(Database.open(url)), index)

    def close(self) -> None:
        """Close all shared parts."""
        self.run(self.pdf.aclose())
        if self.shared:
            self.run(self.shared.aclose())
        self.runner.close()
        shutil.rmtree(self._homes)


@dataclass
class MachineHome:
    """Home of an example, with fault injection around its engines."""

    bench: Bench
    path: Path
    url: str
    database: Database
    real_index: Index
    faults: Faults = field(default_factory=Faults)

    def __post_init__(self) -> None:
        self.map_file = self.path / "folders.toml"
        self.blobs = FailingBlobs(self.path / "blobs", self.faults)
        self.files = ReadingFiles(self.path / "readings")
        self.index = FailingIndex(self.real_index, self.faults)
        self.channels = Channels(self.database)
        self.catalog = Catalog(self.database)
        self.folders = Folders(self.database)

    async def aclose(self) -> None:
        """Close the engines and delete all data."""
        for tenant in {tenant for tenant, _ in self.index.written}:
            await self.real_index.drop_tenant(tenant)
        if self.real_index is not self.bench.shared:
            await self.real_index.aclose()
        await self.database.aclose()
        self.bench.databases.drop(self.url)
        shutil.rmtree(self.path)
