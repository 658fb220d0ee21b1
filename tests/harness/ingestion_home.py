"""A home with real engines, ingestions on it, and queries about both."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from fakes.faulty_index import FaultyIndex
from sqlalchemy import select

from harness.empty_homes import make_sqlite
from harness.lasting_pool import LastingPdf, lasting_side
from harness.waiting import PATIENCE, until
from ingestion.app import Ingestion, IngestResult
from ingestion.jobs.scheduler import Scheduler
from ingestion.reading.captioning import VisionEndpoint
from ingestion.reading.full import FillMetadata
from ingestion.settings import IngestionSettings
from ingestion.sources import open_source
from storage.chat.channels import Channels
from storage.documents.arrivals import Arrivals
from storage.documents.catalog import Catalog
from storage.documents.identity import Arrival
from storage.documents.progress import Progress
from storage.embeddings.base import Embedder
from storage.files.blobs import Blobs
from storage.files.reading_files import ReadingFiles
from storage.folders.folder_passwords import FolderPasswords
from storage.folders.folders import Folders
from storage.index.base import Index
from storage.index.live_index import LiveIndex
from storage.models import Channel, ChannelKey, DocumentStatus, LivePublication, Platform, Rung
from storage.pdf.pdf_process import PdfProcess
from storage.settings import StorageSettings
from storage.sql.database import Database
from storage.text.analyzer import analyze
from storage.web_pages.page_store import WebPageStore
from storage.web_pages.web_sources import WebSourcesFile

QUICK_SETTINGS = {
    "scan_seconds": 0.2,
    "rest_seconds": 30,
    "lease_seconds": 5,
    "layout": False,
}
# Shorter than settings allow, because tests mostly wait for these.
SHORT_WAITS = {"settle_seconds": 0.2, "retire_grace_seconds": 0.2}
# Polls of the database are a third of a test's CPU time; what happens wakes the lanes anyway.
TICK_SECONDS = {"work": 1.0, "plan": 1.0, "unlock": 2.0, "verify": 1.0, "renew": 1.0}


class QuickScheduler(Scheduler):
    """Ticks more often, so that no test waits 15 seconds for the next plan."""

    def every(self, seconds: float, name: str, tick: Callable[[], Awaitable[object]]) -> None:
        """Register ``tick``, at the interval of tests if there is one for this name."""
        super().every(TICK_SECONDS.get(name, seconds), name, tick)


@dataclass
class Home:
    """A home with open engines, an inbox and queries about them."""

    path: Path
    database: Database
    blobs: Blobs
    files: ReadingFiles
    pdf: PdfProcess
    embedder: Embedder
    index: FaultyIndex
    channels: Channels
    catalog: Catalog
    passwords: FolderPasswords
    ingestions: list[Ingestion] = field(default_factory=list)
    # Arguments of every ingestion besides its settings.
    given: dict[str, Any] = field(default_factory=dict)

    @property
    def inbox(self) -> Path:
        """Watched folder."""
        return self.path / "inbox"

    def ingestion(
        self,
        *,
        max_file_mb: int = 200,
        pdf: PdfProcess | None = None,
        vision: VisionEndpoint | None = None,
        fill_metadata: FillMetadata | None = None,
        **settings: Any,
    ) -> Ingestion:
        """Create another ingestion on this home, which is stopped at the end of the test."""
        checked = IngestionSettings(**{**QUICK_SETTINGS, **settings})
        short = {name: seconds for name, seconds in SHORT_WAITS.items() if name not in settings}
        made = Ingestion(
            checked.model_copy(update=short),
            max_file_mb=max_file_mb,
            database=self.database,
            blobs=self.blobs,
            files=self.files,
            pdf=pdf or self.pdf,
            embedder=self.embedder,
            index=self.index,
            channels=self.channels,
            passwords=self.passwords,
            web_sources=WebSourcesFile(self.path),
            web_pages=WebPageStore(self.database, self.files),
            vision=vision,
            fill_metadata=fill_metadata,
            compute_pool=lasting_side(),
            **{"make_schedule": QuickScheduler, "max_backoff_seconds": 0.2, **self.given},
        )
        self.ingestions.append(made)
        return made

    async def serve(self, **settings: Any) -> Ingestion:
        """Start an ingestion that watches the inbox."""
        started = self.ingestion(**settings)
        await started.start(self.inbox)
        return started

    def drop(self, name: str, data: bytes) -> Path:
        """Write a file ``channel/file.pdf`` into the inbox."""
        path = self.inbox / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    async def store(self, channel: str, file: str, data: bytes) -> None:
        """Store a file of the inbox as a scan would, without reading it."""
        path = self.drop(f"{channel}/{file}", data)
        arrivals = Arrivals(self.database, self.ingestion(stop_at="quick").generations, self.blobs)
        where = await self.channel(channel)
        folder = await Folders(self.database).ensure(where.id, str(path.parent), watched=True, origin="inbox")
        temporary, sha256 = self.blobs.new_temporary(), hashlib.sha256(data).hexdigest()
        temporary.write_bytes(data)
        look = open_source(str(path.parent)).scan().files[file].stat._asdict()
        keep = partial(self.blobs.adopt, temporary, sha256)
        await arrivals.store(folder, [Arrival(file, look, sha256, len(data), keep)], None)

    async def channel(self, name: str) -> Channel:
        """Return a local channel."""
        return await self.channels.ensure(ChannelKey(Platform.LOCAL, "", name))

    async def ingest(
        self, path: Path, channel: str, wait: Rung = Rung.QUICK, **settings: Any
    ) -> IngestResult:
        """Ingest once into a local channel."""
        seen: list[Progress] = []
        return await self.ingestion(**settings).ingest(path, await self.channel(channel), wait, seen.append)

    async def find(self, channel: str, words: str) -> dict[str, LivePublication]:
        """Search a channel by words; return live publications by file."""
        where = await self.channel(channel)
        if not await self.index.has_tenant(where.tenant):
            return {}
        live = LiveIndex(self.index, self.catalog, self.embedder.space)
        found = await live.search(where, analyze(words), None, limit=20)
        return {one.file: one for one in found.publications.values()}

    async def documents(self, channel: str) -> dict[str, DocumentStatus]:
        """Return the documents of a channel by file, as ``footnote documents`` does."""
        where = await self.channel(channel)
        return {one.file: one for one in await self.catalog.documents(where.id)}

    async def rows(self, table: Any) -> list[Any]:
        """Return all rows of a table."""
        async with self.database.snapshot() as session:
            return list(await session.scalars(select(table)))

    async def until(self, is_so: Callable[[], Awaitable[object]], seconds: float = PATIENCE) -> None:
        """Poll until a condition holds, or fail."""
        await until(is_so, seconds=seconds)

    async def until_found(
        self, channel: str, words: str, file: str, rung: Rung = Rung.QUICK
    ) -> LivePublication:
        """Wait until a file is found by these words at this rung or better."""

        async def found() -> LivePublication | None:
            one = (await self.find(channel, words)).get(file)
            return one if one is not None and one.rung in (rung, Rung.FULL) else None

        return await until(found, every=0.3)

    async def until_files(self, channel: str, words: str, files: set[str]) -> None:
        """Wait until these words find exactly these files."""

        async def are_found() -> bool:
            return set(await self.find(channel, words)) == files

        await until(are_found)

    async def until_row(self, table: Any, is_so: Callable[[Any], object]) -> None:
        """Wait until a row of a table satisfies a condition."""

        async def is_there() -> bool:
            return any(map(is_so, await self.rows(table)))

        await until(is_there)


@asynccontextmanager
async def open_home(path: Path, embedder: Embedder, index: Index) -> AsyncIterator[Home]:
    """Yield a new home on SQLite with an open index, which is closed with it."""
    faulty = FaultyIndex(index)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(aclosing(faulty))
        database = await stack.enter_async_context(aclosing(await Database.open(make_sqlite(path))))
        passwords = FolderPasswords(database)
        pdf = LastingPdf(StorageSettings(), passwords)
        home = Home(
            path=path,
            database=database,
            blobs=Blobs(path / "blobs"),
            files=ReadingFiles(path / "readings"),
            pdf=pdf,
            embedder=embedder,
            index=faulty,
            channels=Channels(database),
            catalog=Catalog(database),
            passwords=passwords,
        )
        yield home
        for one in home.ingestions:
            await one.stop()
        await home.database.aclose()  # a test may have replaced the first one
