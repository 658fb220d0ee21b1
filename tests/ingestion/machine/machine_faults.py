"""Fault injection around the real engines: every fault is one that the real engine can have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from fakes.term_embedder import TermEmbedder

from storage.errors import EmbedderUnavailable, EngineStartError, IncompletePublication, IndexUnavailable
from storage.files.blobs import Blobs
from storage.index.base import Index, IndexedChunk
from storage.models import TenantName
from storage.pdf.pdf_process import PdfProcess


@dataclass
class Faults:
    """Active faults; none initially."""

    index_is_down: bool = False
    # Remaining writes with an unknown outcome.
    unknown_writes: int = 0
    # Remaining publications that lack a chunk when sealed.
    incomplete_seals: int = 0
    embedder_is_away: bool = False
    reader_does_not_start: bool = False
    disk_is_full: bool = False

    def heal(self) -> None:
        """Clear all faults."""
        vars(self).update(vars(Faults()))


class FailingIndex:
    """An index with faults; it records what was written in order to resurrect it."""

    def __init__(self, real: Index, faults: Faults) -> None:
        self.real = real
        self.outages = 0
        self.is_exclusive = real.is_exclusive
        self.written: dict[tuple[TenantName, UUID], dict[int, IndexedChunk]] = {}
        self._faults = faults

    async def write(self, tenant: TenantName, chunks: Sequence[IndexedChunk]) -> None:
        """Write, or lose the connection before the last chunk."""
        self._require_up()
        if self._faults.unknown_writes:
            self._faults.unknown_writes -= 1
            self.outages += 1
            await self._keep(tenant, chunks[:-1])
            raise IndexUnavailable("the connection broke")
        await self._keep(tenant, chunks)

    async def _keep(self, tenant: TenantName, chunks: Sequence[IndexedChunk]) -> None:
        await self.real.write(tenant, chunks)
        for chunk in chunks:
            self.written.setdefault((tenant, chunk.publication), {})[chunk.ordinal] = chunk

    async def commit_publication(self, tenant: TenantName, publication: UUID, **counts: Any) -> None:
        """Seal, or fail as incomplete."""
        self._require_up()
        if self._faults.incomplete_seals:
            self._faults.incomplete_seals -= 1
            raise IncompletePublication("0 of 1 chunks")
        await self.real.commit_publication(tenant, publication, **counts)

    async def lose(self, tenant: TenantName, publication: UUID, what: str) -> None:
        """Lose a whole publication, its last chunk or its vectors, as a killed server may."""
        kept = self.written[tenant, publication]
        await self.real.remove(tenant, publication, len(kept))
        rest = [kept[number] for number in sorted(kept)]
        if what == "chunk":
            await self.real.write(tenant, rest[:-1])
        elif what == "vectors":
            await self.real.write(tenant, [_without_vector(one) for one in rest])

    async def resurrect(self, tenant: TenantName, publication: UUID) -> None:
        """Restore what was removed earlier."""
        await self.real.ensure_tenant(tenant)
        await self.real.write(tenant, list(self.written[tenant, publication].values()))

    def _require_up(self) -> None:
        if self._faults.index_is_down:
            self.outages += 1
            raise IndexUnavailable("the index does not answer")

    def __getattr__(self, name: str) -> Any:
        self._require_up()
        return getattr(self.real, name)


def _without_vector(chunk: IndexedChunk) -> IndexedChunk:
    return IndexedChunk(
        chunk.publication, chunk.ordinal, chunk.terms, chunk.text, chunk.first_page, chunk.last_page,
        chunk.heading_path, chunk.facets,
    )  # fmt: skip


class FailingBlobs(Blobs):
    """Blobs on a disk that may be full: the kernel itself refuses every byte then."""

    def __init__(self, root: Path, faults: Faults) -> None:
        super().__init__(root)
        self._faults = faults

    def new_temporary(self) -> Path:
        """Return a temporary path, on a full disk if that fault is active."""
        path = super().new_temporary()
        if self._faults.disk_is_full:
            path.symlink_to("/dev/full")
        return path


class FailingReader:
    """A confined reader whose parent program may fail to start."""

    def __init__(self, real: PdfProcess, faults: Faults) -> None:
        self._real = real
        self._faults = faults

    async def fetch(self, path: Path) -> bytes:
        """Read, or fail to start."""
        if self._faults.reader_does_not_start:
            raise EngineStartError("no memory")
        return await self._real.fetch(path)


class FailingEmbedder(TermEmbedder):
    """An embedder whose provider may be down."""

    def __init__(self, name: str, faults: Faults) -> None:
        super().__init__(name)
        self._faults = faults

    async def aembed(self, texts: Sequence[str]) -> Any:
        """Embed by terms, or fail."""
        if self._faults.embedder_is_away:
            raise EmbedderUnavailable("the embeddings endpoint does not answer")
        return await super().aembed(texts)
