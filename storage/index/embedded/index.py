"""Embedded index: one SQLite file per tenant, FTS5 for keywords and exact numpy search for vectors.

All work runs in threads and has a deadline; several processes may share the folder. Good for up to about
``COMFORTABLE_CHUNKS`` per tenant.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from functools import partial
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar
from uuid import UUID

from storage.errors import IndexUnavailable, UnknownTenant
from storage.index.base import Hit, IndexedChunk, IndexUpkeep, SearchFilter, Vector, require_complete
from storage.index.embedded import bm25, tenant_rows
from storage.index.embedded.tenant_file import TenantFiles, translated
from storage.index.embedded.term_frequencies import DocumentFrequencyCache
from storage.index.embedded.vector_matrix import VectorMatrixCache
from storage.models import TenantName

# Chunks per tenant up to which a search takes a fraction of a second; use a server for more.
COMFORTABLE_CHUNKS = 50_000
WRITE_BATCH_SIZE = 500
# Timeout in seconds of a full scan, for the file of a large tenant on a slow disk.
VERIFY_TIMEOUT_SECONDS = 120.0

P = ParamSpec("P")
T = TypeVar("T")


class EmbeddedIndex:
    """Index engine in the service's own process."""

    # Unlike a server, it is part of the home and cannot be replaced, so a constant identifies it.
    identity = "embedded"
    # The files are in the home.
    is_exclusive = True
    # Writes are durable when they return, so only a lost file counts as an outage.
    outages = 0

    def __init__(self, folder: Path, timeout: float) -> None:
        """Store tenant files in ``folder``; every call ends within ``timeout`` seconds."""
        self.upkeep: IndexUpkeep | None = self
        self._files = TenantFiles(folder.absolute(), timeout)
        self._patient_files = TenantFiles(folder.absolute(), VERIFY_TIMEOUT_SECONDS)
        self._timeout = timeout
        self._matrices = VectorMatrixCache()
        self._frequencies = DocumentFrequencyCache()
        self._threads = ThreadPoolExecutor(max_workers=4, thread_name_prefix="index")

    def note_outage(self) -> None:
        """Count a lost file as an outage: the reconciler then verifies the content at once."""
        self.outages += 1

    async def tenants(self) -> set[TenantName]:
        """Return all tenants."""
        return await self._in_thread(self._files.tenants)

    async def ensure_tenant(self, tenant: TenantName) -> None:
        """Create the tenant unless it exists."""
        await self._in_thread(self._files.create, tenant)

    async def has_tenant(self, tenant: TenantName) -> bool:
        """True if the tenant exists."""
        return await self._in_thread(self._files.exists, tenant)

    async def write(self, tenant: TenantName, chunks: Sequence[IndexedChunk]) -> None:
        """Store chunks, replacing existing ones."""
        for start in range(0, len(chunks), WRITE_BATCH_SIZE):
            batch = chunks[start : start + WRITE_BATCH_SIZE]
            await self._run(self._files.transaction, tenant, tenant_rows.write, batch)

    async def commit_publication(
        self, tenant: TenantName, publication: UUID, *, chunks: int, vectors: int, space: str | None = None
    ) -> None:
        """Verify the number of written chunks; writes were durable when they returned.

        Raises:
            IncompletePublication: chunks or vectors are missing.
        """
        found = await self._run(self._files.snapshot, tenant, tenant_rows.count, publication, space)
        require_complete(publication, chunks=(found[0], chunks), vectors=(found[1], vectors))

    async def search_keywords(
        self, tenant: TenantName, terms: Sequence[str], filters: SearchFilter, limit: int
    ) -> list[Hit]:
        """Return the best chunks by BM25, best first."""

        def find(connection: sqlite3.Connection) -> list[Hit]:
            counted = self._frequencies.document_frequencies(tenant, connection, set(terms))
            return tenant_rows.hits(connection, bm25.best(connection, terms, counted, filters, limit))

        return await self._run(self._files.open_for_search, tenant, find)

    async def search_vectors(
        self, tenant: TenantName, space: str, vector: Vector, filters: SearchFilter, limit: int
    ) -> list[Hit]:
        """Return the nearest chunks by cosine, nearest first."""

        def find(connection: sqlite3.Connection) -> list[Hit]:
            matrix = self._matrices.get(tenant, space, connection, tenant_rows.read_state(connection))
            allowed = tenant_rows.allowed_ids(connection, filters)
            return tenant_rows.hits(connection, matrix.nearest(tenant_rows.unit(vector), allowed, limit))

        return await self._run(self._files.open_for_search, tenant, find)

    async def document_frequencies(
        self, tenant: TenantName, terms: Collection[str]
    ) -> tuple[int, dict[str, int]]:
        """Return (number of chunks in the tenant, chunks per term)."""
        counted = partial(self._frequencies.document_frequencies, tenant)
        return await self._run(self._files.open_for_search, tenant, counted, terms)

    async def remove(self, tenant: TenantName, publication: UUID, chunks: int) -> None:
        """Remove a publication, in batches."""
        while await self._run(self._files.transaction, tenant, tenant_rows.remove_some, publication):
            pass

    async def publications(self, tenant: TenantName) -> dict[UUID, int]:
        """Return the tenant's publications with their number of chunks."""
        return await self._run(self._files.snapshot, tenant, tenant_rows.publications)

    async def drop_tenant(self, tenant: TenantName) -> None:
        """Remove a tenant and its data."""
        await self._in_thread(self._files.drop, tenant)

    async def purge_deleted(self, tenant: TenantName) -> None:
        """Rewrite the tenant's file without removed data; 50,000 chunks take some seconds."""
        with suppress(UnknownTenant):
            await asyncio.to_thread(self._scrub, tenant)

    def _scrub(self, tenant: TenantName) -> None:
        with translated():
            with self._patient_files.transaction(tenant) as connection:
                tenant_rows.merge_words(connection)
            self._patient_files.vacuum(tenant)

    async def verify(self, tenant: TenantName) -> None:
        """Verify the checksums of chunks and the full-text index against them; 50,000 take some seconds."""
        with suppress(UnknownTenant):
            await asyncio.to_thread(self._examine, tenant)

    def _examine(self, tenant: TenantName) -> None:
        with translated():
            with self._patient_files.snapshot(tenant) as connection:
                tenant_rows.verify_chunks(connection)
            with self._patient_files.transaction(tenant) as connection:
                tenant_rows.verify_full_text_index(connection)

    async def corrupt_tenants(self) -> set[TenantName]:
        """Return the tenants whose corrupt file was moved aside."""
        return await self._in_thread(self._files.corrupt_tenants)

    async def mark_rebuilt(self, tenant: TenantName) -> None:
        """Delete the corrupt file that was moved aside."""
        await self._in_thread(self._files.delete_quarantined, tenant)

    async def ping(self) -> None:
        """Return if the folder is writable."""
        await self._in_thread(self._files.ping)

    async def aclose(self) -> None:
        """Shut down the thread pool; no thread runs past its deadline."""
        await asyncio.to_thread(self._threads.shutdown)

    async def _run(
        self,
        opened: Callable[[TenantName], AbstractContextManager[sqlite3.Connection]],
        tenant: TenantName,
        work: Callable[Concatenate[sqlite3.Connection, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Run ``work`` on a tenant's connection, ``opened`` for reading, answering or writing."""

        def run() -> T:
            with opened(tenant) as connection:
                return work(connection, *args, **kwargs)

        return await self._in_thread(run)

    async def _in_thread(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        def translating() -> T:
            with translated():
                return work(*args, **kwargs)

        try:
            async with asyncio.timeout(self._timeout):
                return await asyncio.get_running_loop().run_in_executor(self._threads, translating)
        except TimeoutError as error:
            raise IndexUnavailable(f"the embedded index took over {self._timeout:g} s") from error
