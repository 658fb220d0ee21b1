"""The embedded index: one SQLite file per tenant, FTS5 for words and exact numpy for vectors.

All work is done in threads and ends within the deadline; several processes may share the folder.
Good to about ``COMFORTABLE_CHUNKS`` a tenant.
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
from storage.index.base import Filters, Hit, IndexedChunk, Vector, require_complete
from storage.index.embedded import bm25, tenant_rows
from storage.index.embedded.tenant_file import TenantFiles, translated
from storage.index.embedded.term_frequencies import TermFrequencies
from storage.index.embedded.vector_matrix import VectorMatrices
from storage.models import TenantName

# Chunks of a tenant up to which a question is answered in a fraction of a second; a server bears more.
COMFORTABLE_CHUNKS = 50_000
WRITE_BATCH_SIZE = 500
# Seconds for the file of a large tenant on a slow disk.
EXAMINED_WITHIN = 120.0

P = ParamSpec("P")
T = TypeVar("T")


class EmbeddedIndex:
    """The index without a server."""

    # Never equal to a server's: it lies in the home, where no other one can take its place.
    identity = "embedded"
    # It lies in the home.
    can_scrub = is_ours_alone = True
    # It is never away without us: what a write has returned from is on the disk. But a file may be lost.
    outages = 0

    def __init__(self, folder: Path, timeout: float = 10.0) -> None:
        """Keep the tenants' files in ``folder``; every call ends within ``timeout`` seconds."""
        self._files = TenantFiles(folder.absolute(), timeout)
        self._patient_files = TenantFiles(folder.absolute(), EXAMINED_WITHIN)
        self._timeout = timeout
        self._matrices = VectorMatrices()
        self._frequencies = TermFrequencies()
        self._threads = ThreadPoolExecutor(max_workers=4, thread_name_prefix="index")

    def note_outage(self) -> None:
        """A file is not there any more: what the index should hold is compared with what it holds, now."""
        self.outages += 1

    async def tenants(self) -> set[TenantName]:
        """Return every tenant there is."""
        return await self._in_thread(self._files.tenants)

    async def ensure_tenant(self, tenant: TenantName) -> None:
        """Create the tenant unless it exists."""
        await self._in_thread(self._files.create, tenant)

    async def has_tenant(self, tenant: TenantName) -> bool:
        """True if the tenant exists."""
        return await self._in_thread(self._files.exists, tenant)

    async def write(self, tenant: TenantName, chunks: Sequence[IndexedChunk]) -> None:
        """Store chunks; one that is there already is replaced."""
        for start in range(0, len(chunks), WRITE_BATCH_SIZE):
            batch = chunks[start : start + WRITE_BATCH_SIZE]
            await self._run(self._files.writing, tenant, tenant_rows.write, batch)

    async def seal(
        self, tenant: TenantName, publication: UUID, *, chunks: int, vectors: int, space: str | None = None
    ) -> None:
        """Count what was written; each write was on the disk when it returned.

        Raises:
            IncompletePublication: fewer chunks or vectors than given.
        """
        found = await self._run(self._files.reading, tenant, tenant_rows.count, publication, space)
        require_complete(publication, chunks=(found[0], chunks), vectors=(found[1], vectors))

    async def find_by_words(
        self, tenant: TenantName, terms: Sequence[str], filters: Filters, limit: int
    ) -> list[Hit]:
        """Return the best chunks by BM25, best first."""

        def find(connection: sqlite3.Connection) -> list[Hit]:
            counted = self._frequencies.of(tenant, connection, set(terms))
            return tenant_rows.hits(connection, bm25.best(connection, terms, counted, filters, limit))

        return await self._run(self._files.answering, tenant, find)

    async def find_by_vector(
        self, tenant: TenantName, space: str, vector: Vector, filters: Filters, limit: int
    ) -> list[Hit]:
        """Return the nearest chunks by cosine, nearest first."""

        def find(connection: sqlite3.Connection) -> list[Hit]:
            matrix = self._matrices.of(tenant, space, connection, tenant_rows.read_state(connection))
            allowed = tenant_rows.allowed_ids(connection, filters)
            return tenant_rows.hits(connection, matrix.nearest(tenant_rows.unit(vector), allowed, limit))

        return await self._run(self._files.answering, tenant, find)

    async def document_frequencies(
        self, tenant: TenantName, terms: Collection[str]
    ) -> tuple[int, dict[str, int]]:
        """(number of chunks in the tenant, chunks per term)."""
        counted = partial(self._frequencies.of, tenant)
        return await self._run(self._files.answering, tenant, counted, terms)

    async def remove(self, tenant: TenantName, publication: UUID, chunks: int) -> None:
        """Remove a publication whole, however many chunks it has."""
        while await self._run(self._files.writing, tenant, tenant_rows.remove_some, publication):
            pass

    async def publications(self, tenant: TenantName) -> dict[UUID, int]:
        """Return all publications the tenant holds, with their number of chunks."""
        return await self._run(self._files.reading, tenant, tenant_rows.publications)

    async def drop_tenant(self, tenant: TenantName) -> None:
        """Remove a tenant and all it holds."""
        await self._in_thread(self._files.drop, tenant)

    async def scrub(self, tenant: TenantName) -> None:
        """Write the tenant's file anew; 50,000 chunks take some seconds."""
        with suppress(UnknownTenant):
            await asyncio.to_thread(self._scrub, tenant)

    def _scrub(self, tenant: TenantName) -> None:
        with translated():
            with self._patient_files.writing(tenant) as connection:
                tenant_rows.merge_words(connection)
            self._patient_files.vacuum(tenant)

    async def examine(self, tenant: TenantName) -> None:
        """Compare every chunk with its checksum and the words with the chunks; 50,000 take some seconds."""
        with suppress(UnknownTenant):
            await asyncio.to_thread(self._examine, tenant)

    def _examine(self, tenant: TenantName) -> None:
        with translated():
            with self._patient_files.reading(tenant) as connection:
                tenant_rows.examine_chunks(connection)
            with self._patient_files.writing(tenant) as connection:
                tenant_rows.examine_words(connection)

    async def damaged(self) -> set[TenantName]:
        """Tenants whose file was set aside."""
        return await self._in_thread(self._files.damaged)

    async def restore(self, tenant: TenantName) -> None:
        """Forget the file that was set aside."""
        await self._in_thread(self._files.forget_damaged, tenant)

    async def ping(self) -> None:
        """Return when the folder can be written to."""
        await self._in_thread(self._files.ping)

    async def aclose(self) -> None:
        """End the threads; none of them works past its deadline."""
        await asyncio.to_thread(self._threads.shutdown)

    async def _run(
        self,
        opened: Callable[[TenantName], AbstractContextManager[sqlite3.Connection]],
        tenant: TenantName,
        work: Callable[Concatenate[sqlite3.Connection, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Do some work on a tenant's file, ``opened`` for reading, answering or writing."""

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
