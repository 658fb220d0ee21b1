"""The engines of one home, opened as its settings choose: SQL and files, embedder, index, PDF process.

The first part of the composition root; ``service.py`` goes on from here. Each ``open_...`` is an async
context manager: what it opens it closes, in reverse order. SDKs that take long to import are imported
where they are chosen.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bot.settings import BotSettings
from ingestion.settings import IngestionSettings
from ingestion.sources.settings import ShareSettings
from storage.blobs import Blobs
from storage.catalog import Catalog
from storage.channels import Channels
from storage.citations import Citations
from storage.database import Database
from storage.embedding import Embedder
from storage.errors import IndexUnavailable, SettingsError
from storage.folder_passwords import FolderPasswords
from storage.folders import Folders
from storage.glossary import GLOSSARY_NAME, GlossaryFile
from storage.home_facts import first_space, require_same_index
from storage.index.contract import Index
from storage.index.embedded import EmbeddedIndex
from storage.memory import ThreadMemory
from storage.mended_readings import RepairingReadings
from storage.models import Rung
from storage.pdf.process import PdfProcess
from storage.question_records import QuestionRecords
from storage.readings import ReadingFiles
from storage.settings import StorageSettings, load, refuse_unknown

MAX_REST_SECONDS = 30.0

if TYPE_CHECKING:
    from storage.index.weaviate_index import WeaviateIndex

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of all three rooms."""

    storage: StorageSettings
    bot: BotSettings
    ingestion: IngestionSettings

    @property
    def home(self) -> Path:
        """The folder that everything the program keeps lies under."""
        return self.storage.home_path

    @property
    def inbox(self) -> Path:
        """The watched folder; each folder in it is a channel."""
        return (self.ingestion.inbox or self.home / "inbox").expanduser().absolute()


def load_settings(*, host: str | None = None, port: int | None = None, inbox: Path | None = None) -> Settings:
    """Read and check every setting; arguments of the command line win.

    Raises:
        SettingsError: a setting is missing, unknown or out of bounds.
    """
    rooms = (StorageSettings, BotSettings, IngestionSettings, ShareSettings)
    refuse_unknown(rooms)
    storage = load(StorageSettings)
    return Settings(storage, load(BotSettings, host=host, port=port), load(IngestionSettings, inbox=inbox))


@dataclass(frozen=True, slots=True)
class Stores:
    """What is kept: SQL and files."""

    settings: Settings
    database: Database
    channels: Channels
    catalog: Catalog
    citations: Citations
    memory: ThreadMemory
    records: QuestionRecords
    blobs: Blobs
    files: ReadingFiles
    readings: RepairingReadings
    folders: Folders
    passwords: FolderPasswords
    glossary: GlossaryFile


@asynccontextmanager
async def open_stores(settings: Settings) -> AsyncIterator[Stores]:
    """Open SQL and files, and nothing that takes long.

    Raises:
        StorageError: they cannot be opened; the message says what to do.
    """
    home = settings.home
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    url = settings.storage.database_url
    database = await Database.open(url.get_secret_value() if url else f"sqlite:///{home / 'footnote.db'}")
    files = ReadingFiles(home / "readings")
    async with contextlib.aclosing(database):
        yield Stores(
            settings,
            database,
            Channels(database),
            Catalog(database, Rung(settings.ingestion.stop_at)),
            Citations(database),
            ThreadMemory(database, settings.bot.memory_days),
            QuestionRecords(database, settings.bot.record_days),
            Blobs(home / "blobs"),
            files,
            RepairingReadings(files, database),
            Folders(database),
            FolderPasswords(database, settings.storage.password_references),
            GlossaryFile(home / GLOSSARY_NAME),
        )


@asynccontextmanager
async def open_embedder(storage: Stores) -> AsyncIterator[Embedder]:
    """The embedder that the settings choose: an endpoint's, or one of our own.

    Raises:
        EngineStartError: the files of our own are missing.
        SettingsError: the settings do not say enough of the endpoint.
    """
    embedder = await asyncio.to_thread(_load_embedder, storage.settings)
    async with contextlib.aclosing(embedder):
        yield embedder


def _load_embedder(settings: Settings) -> Embedder:
    chosen = settings.storage
    if chosen.embed_model is None and chosen.embed_base_url is None:
        from storage.embedder import BundledEmbedder

        return BundledEmbedder.load(chosen.embedder, chosen.embed_threads)
    if chosen.embedder is not None:
        raise SettingsError("FOOTNOTE_EMBEDDER and FOOTNOTE_EMBED_MODEL: choose one of them")
    from storage.embedding_endpoint import EndpointEmbedder

    return EndpointEmbedder.connect(chosen, _embedding_key(settings))


def _embedding_key(settings: Settings) -> str | None:
    """The key of the embeddings endpoint; the model's own is sent to no other host than the model's."""
    from storage.embedding_endpoint import OPENAI

    chosen, bot = settings.storage, settings.bot
    models = bot.openai_base_url or OPENAI
    is_trusted = (chosen.embed_base_url or OPENAI).rstrip("/") in (OPENAI, models.rstrip("/"))
    key = chosen.embed_api_key or (bot.openai_api_key if is_trusted else None)
    return key.get_secret_value() if key else None


@asynccontextmanager
async def open_index(storage: Stores, *, patiently: bool = False) -> AsyncIterator[Index]:
    """Open the index that WEAVIATE_URL chooses, and hold the home to it; never another one instead.

    Args:
        patiently: wait for a server that does not answer yet, and say so, instead of failing.

    Raises:
        IndexUnavailable: the server does not answer.
        EngineStartError: our own Weaviate cannot be started.
        ChangedIndex: the home's documents are in another index.
    """
    async with AsyncExitStack() as stack:
        first = await first_space(storage.database)
        index = await _connect(storage.settings.storage, first, stack, patiently)
        await stack.enter_async_context(contextlib.aclosing(index))
        address = storage.settings.storage.weaviate_url or "in the home"
        await require_same_index(storage.database, index, address)
        yield index


async def _connect(
    settings: StorageSettings, first: str | None, stack: AsyncExitStack, patiently: bool
) -> EmbeddedIndex | WeaviateIndex:
    if settings.weaviate_url is None:
        return EmbeddedIndex(settings.home_path / "index", settings.index_timeout, first)
    from storage.index.weaviate_index import WeaviateIndex
    from storage.index.weaviate_server import WeaviateServer

    url, key, port = settings.weaviate_url, settings.weaviate_api_key, settings.weaviate_grpc_port
    timeout = settings.index_timeout
    if url == "embedded":
        server = await WeaviateServer.start_or_attach(settings.home_path, settings.weaviate_binary)
        stack.push_async_callback(server.stop)
        index = await WeaviateIndex.connect(server.url, server.api_key, server.grpc_port, timeout, first)
        server.on_return, index.is_ours_alone = index.note_outage, True
        return index
    secret = key.get_secret_value() if key else None
    rest = 1.0
    while True:
        try:
            return await WeaviateIndex.connect(url, secret, port, timeout, first)
        except IndexUnavailable as error:
            if not patiently:
                raise
            _log.warning("%s; trying again in %g s", error, rest)
        await asyncio.sleep(rest)
        rest = min(2 * rest, MAX_REST_SECONDS)


@asynccontextmanager
async def open_pdf_process(storage: Stores) -> AsyncIterator[PdfProcess]:
    """The limited children that open PDFs."""
    settings = storage.settings
    pdf = PdfProcess(settings.storage, storage.passwords, readers=settings.ingestion.read_workers)
    async with contextlib.aclosing(pdf):
        await pdf.start()
        yield pdf
