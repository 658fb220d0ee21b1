"""Factories for the configured engines: SQL and files, embedder, index, PDF process.

Each ``open_...`` is an async context manager that closes what it opened, in reverse order. SDKs that take
long to import are imported where they are chosen. A home is bound to the index that holds its documents.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from secrets import token_bytes
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import select
from sqlmodel import col

from storage.chat.channels import Channels
from storage.chat.citations import Citations
from storage.chat.feedback import FeedbackStore
from storage.chat.glossary import GLOSSARY_NAME, GlossaryFile
from storage.chat.notifications import Notices
from storage.chat.retention import Retention
from storage.chat.thread_memory import ThreadMemory
from storage.chat.traces import QuestionRecords
from storage.documents.catalog import Catalog
from storage.documents.vocabulary import Vocabularies
from storage.embeddings.base import Embedder
from storage.erasure.eraser import SETTLE_SECONDS, Eraser
from storage.errors import BlobsUnavailable, ChangedIndex, IndexUnavailable, SettingsError
from storage.files.blobs import Blobs
from storage.files.object_store import ObjectStore
from storage.files.reading_archive import ReadingArchive
from storage.files.reading_files import ReadingFiles
from storage.files.store_owner import ensure_store_key, require_own_store
from storage.folders.folder_passwords import FolderPasswords
from storage.folders.folders import Folders
from storage.index.base import Index
from storage.index.embedded.index import EmbeddedIndex
from storage.models import Rung
from storage.pdf.pdf_process import PdfProcess
from storage.queues.reading_repair import SelfHealingReadings
from storage.settings import AwsSettings, StorageSettings, load
from storage.sql.database import Database
from storage.sql.tables import FactRow
from storage.task_group import doubled, retry
from storage.text.token_counts import require_bundled_files
from storage.web_pages.page_store import WebPageStore
from storage.web_pages.web_sources import WebSourcesFile

if TYPE_CHECKING:
    from storage.index.weaviate.index import WeaviateIndex

# Longest backoff between attempts to reach an engine.
MAX_BACKOFF_SECONDS = 30.0
_INDEX = "index"
_ADDRESS = "index address"
# Facts that bind a home to its index; no other home may adopt them.
INDEX_FACTS = frozenset({_INDEX, _ADDRESS})
_ANOTHER_INDEX = (
    "this home's documents are in another index than the one WEAVIATE_URL chooses now: set "
    "WEAVIATE_URL back, or start with an empty FOOTNOTE_HOME and the same inbox"
)
_log = logging.getLogger(__name__)


async def require_same_index(database: Database, index: EmbeddedIndex | WeaviateIndex, address: str) -> None:
    """Bind the home to the index its documents are published to, and refuse another one.

    An index that was emptied at the same address is accepted: the reconciler publishes everything again.

    Raises:
        ChangedIndex: it is at another address, or holds another home's documents.
        IndexUnavailable: it does not answer.
    """
    held = await _get_or_insert_facts(database, {_INDEX: index.identity, _ADDRESS: address})
    if held[_INDEX] == index.identity:
        return
    if held[_ADDRESS] != address or await index.tenants():
        raise ChangedIndex(_ANOTHER_INDEX)
    _log.warning("the index was emptied: everything is published to it again")
    async with database.transaction() as session:
        await session.merge(FactRow(name=_INDEX, value=index.identity))


async def _get_or_insert_facts(database: Database, values: dict[str, str]) -> dict[str, str]:
    """Return the stored values of facts; values that are not stored yet are inserted."""
    query = select(FactRow).where(col(FactRow.name).in_(values))
    async with database.snapshot() as session:
        held = {fact.name: fact.value for fact in await session.scalars(query)}
    if held.keys() == values.keys():
        return held
    async with database.transaction() as session:
        held = {fact.name: fact.value for fact in await session.scalars(query)}
        session.add_all(FactRow(name=name, value=value) for name, value in values.items() if name not in held)
    return values | held


def _database_url(settings: StorageSettings) -> str:
    url = settings.database_url
    return url.get_secret_value() if url else f"sqlite:///{settings.home_path / 'footnote.db'}"


@dataclass(frozen=True, slots=True)
class Stores:
    """The open stores of a home: SQL and files."""

    settings: StorageSettings
    database: Database
    channels: Channels
    catalog: Catalog
    vocabularies: Vocabularies
    citations: Citations
    memory: ThreadMemory
    records: QuestionRecords
    feedback: FeedbackStore
    retention: Retention
    # Object store of blobs and readings; None if they are in the home.
    store: ObjectStore | None
    blobs: Blobs
    files: ReadingFiles
    readings: SelfHealingReadings
    folders: Folders
    passwords: FolderPasswords
    glossary: GlossaryFile
    notices: Notices
    web_sources: WebSourcesFile
    web_pages: WebPageStore


def open_blob_store(settings: StorageSettings, key: bytes | None = None) -> ObjectStore | None:
    """Return the object store that FOOTNOTE_BLOBS names, or None if blobs and readings are in the home.

    Args:
        key: seals readings and page images; without it they are neither stored nor fetched.

    Raises:
        SettingsError: no installed package supports the protocol.
    """
    if settings.blobs_url is None:
        return None
    account = load(AwsSettings)
    return ObjectStore(
        settings.blobs_url, BlobsUnavailable, "the blob store", account, is_interactive=True, key=key
    )


@asynccontextmanager
async def open_stores(settings: StorageSettings, last_rung: Rung = Rung.FULL) -> AsyncIterator[Stores]:
    """Open SQL and files; embedder and index are opened separately.

    Args:
        last_rung: the rung at which reading ends and the catalog calls a document finished.

    Raises:
        StorageError: they cannot be opened; the message says what to do.
    """
    home = settings.home_path
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    database = await Database.open(_database_url(settings))
    async with contextlib.aclosing(database):
        key = await ensure_store_key(database, token_bytes()) if settings.blobs_url else None
        store, cache_bytes = open_blob_store(settings, key), settings.blob_cache_mb * 1024 * 1024
        archive = ReadingArchive(store, home / "readings", cache_bytes) if store else None
        files = ReadingFiles(home / "readings", archive)
        catalog = Catalog(database, last_rung)
        yield Stores(
            settings,
            database,
            Channels(database),
            catalog,
            Vocabularies(catalog, files),
            Citations(database),
            ThreadMemory(database, settings.memory_days),
            QuestionRecords(database, settings.record_days),
            FeedbackStore(database),
            Retention(database, settings),
            store,
            Blobs(
                home / "blobs",
                store=store,
                cache_bytes=cache_bytes,
                lock=database.content_lock if store else None,
            ),
            files,
            SelfHealingReadings(files, database),
            Folders(database),
            FolderPasswords(database, settings.password_references),
            GlossaryFile(home / GLOSSARY_NAME),
            Notices(database),
            WebSourcesFile(home),
            WebPageStore(database, files, settings.web_cache_days, settings.web_retry_minutes),
        )


async def verify_blob_store(stores: Stores, *, wait_until_ready: bool = False) -> None:
    """Verify that the blob store belongs to this home.

    Args:
        wait_until_ready: retry with backoff until the store answers, instead of failing.

    Raises:
        BlobsUnavailable: the store does not answer.
        ChangedBlobs: the home's PDFs are elsewhere, or the store is another home's.
    """
    require = partial(require_own_store, stores.database, stores.store)
    await retry(require, _pause_of_start, 0 if wait_until_ready else 1)


def make_eraser(stores: Stores, index: Index, settle_seconds: float = SETTLE_SECONDS) -> Eraser:
    """Create the eraser of documents, channels and personal data."""
    return Eraser(
        stores.database,
        blobs=stores.blobs,
        files=stores.files,
        index=index,
        settle_seconds=settle_seconds,
    )


@asynccontextmanager
async def open_embedder(settings: StorageSettings, key: str | None) -> AsyncIterator[Embedder]:
    """Yield the configured embedder: a remote endpoint, accessed with ``key``, or a local model.

    Raises:
        IncompleteInstallation: a bundled file is missing.
        EngineStartError: the embedder cannot be loaded.
        SettingsError: the settings of the endpoint are incomplete.
    """
    require_bundled_files()  # an endpoint's embedder needs the vocabularies, too
    async with contextlib.aclosing(await asyncio.to_thread(_load_embedder, settings, key)) as embedder:
        yield embedder


def _load_embedder(settings: StorageSettings, key: str | None) -> Embedder:
    if settings.embed_model is None and settings.embed_base_url is None:
        from storage.embeddings.onnx_embedder import BundledEmbedder

        return BundledEmbedder.load(settings.embedder, settings.embed_threads)
    if settings.embedder is not None:
        raise SettingsError("FOOTNOTE_EMBEDDER and FOOTNOTE_EMBED_MODEL: choose one of them")
    from storage.embeddings.openai_embedder import EndpointEmbedder

    return EndpointEmbedder.connect(settings, key)


@asynccontextmanager
async def open_index(stores: Stores, *, wait_until_ready: bool = False) -> AsyncIterator[Index]:
    """Open the index that WEAVIATE_URL selects and bind the home to it; never falls back to another one.

    Args:
        wait_until_ready: retry with backoff until the server answers, instead of failing.

    Raises:
        IndexUnavailable: the server does not answer.
        EngineStartError: the Weaviate child process cannot be started.
        ChangedIndex: the home's documents are in another index.
    """
    async with AsyncExitStack() as stack:
        index = await _connect(stores.settings, stack, wait_until_ready)
        await stack.enter_async_context(contextlib.aclosing(index))
        address = stores.settings.weaviate_url or "in the home"
        await require_same_index(stores.database, index, address)
        yield index


async def _connect(
    settings: StorageSettings, stack: AsyncExitStack, wait_until_ready: bool
) -> EmbeddedIndex | WeaviateIndex:
    if settings.weaviate_url is None:
        return EmbeddedIndex(settings.home_path / "index", settings.index_timeout)
    from storage.index.weaviate.index import WeaviateIndex
    from storage.index.weaviate.server import WeaviateServer

    url, key, port = settings.weaviate_url, settings.weaviate_api_key, settings.weaviate_grpc_port
    timeout = settings.index_timeout
    if url == "embedded":
        server = await WeaviateServer.start_or_attach(settings.home_path, settings.weaviate_binary)
        stack.push_async_callback(server.stop)
        index = await WeaviateIndex.connect(server.url, server.api_key, server.grpc_port, timeout)
        server.on_restart, index.is_exclusive = index.note_outage, True
        return index
    secret, replicas = key.get_secret_value() if key else None, settings.weaviate_replicas
    connect = partial(WeaviateIndex.connect, url, secret, port, timeout, replicas=replicas)
    return await retry(connect, _pause_of_start, 0 if wait_until_ready else 1)


def _pause_of_start(error: Exception, tries: int) -> float | None:
    """Return the backoff after an engine did not answer; None for other errors."""
    if not isinstance(error, BlobsUnavailable | IndexUnavailable):
        return None
    rest = doubled(tries, MAX_BACKOFF_SECONDS)
    _log.warning("%s; trying again in %g s", error, rest)
    return rest


@asynccontextmanager
async def open_database_read_only(settings: StorageSettings) -> AsyncIterator[Database]:
    """Yield the database for a read-only caller: neither home nor tables are created or migrated.

    Raises:
        StorageError: it cannot be opened, or its tables are another release's.
    """
    database = await Database.attach(_database_url(settings))
    async with contextlib.aclosing(database):
        yield database


class WeaviateAddress(NamedTuple):
    """Address and credentials of a Weaviate server."""

    url: str
    api_key: str | None
    grpc_port: int


def weaviate_address(settings: StorageSettings) -> WeaviateAddress | None:
    """Return the server that WEAVIATE_URL selects; None if that is a child process that is not running."""
    from storage.index.weaviate.server import read_identity

    if settings.weaviate_url != "embedded":
        key = settings.weaviate_api_key
        secret = key.get_secret_value() if key else None
        return WeaviateAddress(settings.weaviate_url or "", secret, settings.weaviate_grpc_port)
    identity = read_identity(settings.home_path / "weaviate")
    if identity is None or not identity.is_alive():
        return None
    return WeaviateAddress(identity.url, identity.api_key, identity.ports.grpc)


@asynccontextmanager
async def open_index_read_only(settings: StorageSettings, database: Database) -> AsyncIterator[Index | None]:
    """Yield the index for a read-only caller; None if it is a Weaviate child process that is not running.

    Raises:
        IndexUnavailable: the server does not answer.
        ChangedIndex: the home's documents are in another index.
    """
    index: EmbeddedIndex | WeaviateIndex
    if settings.weaviate_url is None:
        index = EmbeddedIndex(settings.home_path / "index", settings.index_timeout)
    elif address := weaviate_address(settings):
        from storage.index.weaviate.index import WeaviateIndex

        index = await WeaviateIndex.connect(
            *address, settings.index_timeout, replicas=settings.weaviate_replicas
        )
    else:
        yield None
        return
    async with contextlib.aclosing(index):
        async with database.snapshot() as session:
            held = await session.get(FactRow, _INDEX)
        if held and held.value != index.identity:
            raise ChangedIndex(_ANOTHER_INDEX)
        yield index


@asynccontextmanager
async def open_pdf_process(stores: Stores, *, readers: int) -> AsyncIterator[PdfProcess]:
    """Yield the pool of sandboxed children that open PDFs, at most ``readers`` files at a time."""
    pdf = PdfProcess(stores.settings, stores.passwords, readers=readers)
    async with contextlib.aclosing(pdf):
        await pdf.start()
        yield pdf
