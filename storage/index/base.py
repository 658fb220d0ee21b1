"""Interface of an index engine.

An engine stores chunks per tenant and searches them by keyword (BM25) and by vector. Vectors lie in spaces,
one per embedder, and vectors of two spaces are never compared. An engine does not decide what may be shown:
``live_index.py`` checks every hit against the live set in SQL. Every call takes the tenant first and has a
deadline.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar
from uuid import UUID

from storage.errors import IncompletePublication
from storage.models import TenantName

T = TypeVar("T")
Vector = Sequence[float]
# A vector that may still be computed.
PendingVector = asyncio.Future[Vector]

# Facet of figures, which are indexed behind the chunks of their publication.
FIGURE_FACET = "kind=figure"


def document_facet(document: UUID) -> str:
    """Return the facet of a document's chunks."""
    return f"document={document}"


@dataclass(frozen=True, slots=True)
class IndexedChunk:
    """A chunk of a publication, as an engine stores it."""

    publication: UUID
    ordinal: int
    # Analyzer terms of title, headings and body, separated by single spaces.
    terms: str
    text: str
    first_page: int
    last_page: int
    heading_path: tuple[str, ...]
    # ``key=value`` strings for exact-match filters, such as ``document=<uuid>``.
    facets: tuple[str, ...]
    vector: Vector | None = None
    # Space of ``vector``: letters, digits and underscores, not beginning with a digit.
    space: str | None = None

    def object_id(self, tenant: TenantName) -> UUID:
        """Return the object id, unique across tenants and publications."""
        return object_id(tenant, self.publication, self.ordinal)


def object_id(tenant: TenantName, publication: UUID, ordinal: int) -> UUID:
    """Return a UUID from a hash over the length-prefixed (tenant, publication, ordinal)."""
    hasher = hashlib.blake2b(digest_size=16)
    for part in (tenant.encode(), publication.bytes, str(ordinal).encode()):
        hasher.update(len(part).to_bytes(4, "big") + part)
    return UUID(bytes=hasher.digest(), version=5)


@dataclass(frozen=True, slots=True)
class SearchFilter:
    """Search filter: a hit has at least one facet of each group."""

    groups: tuple[frozenset[str], ...] = ()
    # Publications to exclude: pending and retired ones.
    hidden: frozenset[UUID] = field(default_factory=frozenset)


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk found by a search, with the raw score of its search leg."""

    publication: UUID
    ordinal: int
    text: str
    first_page: int
    last_page: int
    heading_path: tuple[str, ...]
    # Keyword search: BM25 (k1 1.2, b 0.75), higher is better. Vector search: cosine similarity.
    score: float
    # Indexed terms of title, headings and body.
    terms: str


def require_complete(publication: UUID, *, chunks: tuple[int, int], vectors: tuple[int, int]) -> None:
    """Compare the counts of an engine with those that were written, each as (held, written).

    Raises:
        IncompletePublication: the engine holds less.
    """
    if chunks[0] < chunks[1] or vectors[0] < vectors[1]:
        raise IncompletePublication(
            f"publication {publication}: "
            f"{chunks[0]} of {chunks[1]} chunks, {vectors[0]} of {vectors[1]} vectors"
        )


class IndexUpkeep(Protocol):
    """Upkeep of files that no server keeps; raises as ``Index``, which it is a part of."""

    async def purge_deleted(self, tenant: TenantName) -> None:
        """Erase all traces of removed data; of a server's, only dropping the tenant does."""

    async def verify(self, tenant: TenantName) -> None:
        """Verify a tenant's data, without a deadline; ``corrupt_tenants`` returns it if it is corrupt."""

    async def corrupt_tenants(self) -> set[TenantName]:
        """Return the corrupt tenants; until ``mark_rebuilt`` every search there is refused."""

    async def mark_rebuilt(self, tenant: TenantName) -> None:
        """Mark a corrupt tenant as rebuilt: all its live publications were written again."""


class Index(Protocol):
    """An index engine.

    Every method raises IndexUnavailable if the engine is down or misses its deadline, and, except for
    ``ensure_tenant``, UnknownTenant if the tenant does not exist.
    """

    @property
    def outages(self) -> int:
        """Number of outages; in each of them the last writes may have been lost."""

    @property
    def is_exclusive(self) -> bool:
        """True if no other home can have tenants here."""

    @property
    def upkeep(self) -> IndexUpkeep | None:
        """Upkeep of the tenants' files; None if they are a server's."""

    async def tenants(self) -> set[TenantName]:
        """Return all tenants."""

    async def ensure_tenant(self, tenant: TenantName) -> None:
        """Create the tenant unless it exists."""

    async def has_tenant(self, tenant: TenantName) -> bool:
        """True if the tenant exists."""

    async def write(self, tenant: TenantName, chunks: Sequence[IndexedChunk]) -> None:
        """Store chunks of publications that are not live yet; idempotent."""

    async def commit_publication(
        self, tenant: TenantName, publication: UUID, *, chunks: int, vectors: int, space: str | None = None
    ) -> None:
        """Make the written chunks durable and verify their number, and that of their vectors in ``space``.

        Raises:
            IncompletePublication: chunks or vectors are missing: retry with a new publication id.
        """

    async def search_keywords(
        self, tenant: TenantName, terms: Sequence[str], filters: SearchFilter, limit: int
    ) -> list[Hit]:
        """Return the best chunks by BM25, best first; a repeated query term counts as often as it occurs."""

    async def search_vectors(
        self, tenant: TenantName, space: str, vector: Vector, filters: SearchFilter, limit: int
    ) -> list[Hit]:
        """Return the nearest chunks by cosine, nearest first; only chunks with a vector in ``space``."""

    async def document_frequencies(
        self, tenant: TenantName, terms: Collection[str]
    ) -> tuple[int, dict[str, int]]:
        """Return (number of chunks in the tenant, chunks per term), the input of idf."""

    async def remove(self, tenant: TenantName, publication: UUID, chunks: int) -> None:
        """Remove a publication, including orphaned chunks that no filter finds; idempotent."""

    async def publications(self, tenant: TenantName) -> dict[UUID, int]:
        """Return the tenant's publications with their number of chunks."""

    async def drop_tenant(self, tenant: TenantName) -> None:
        """Remove a tenant and its data; idempotent."""

    async def ping(self) -> None:
        """Return if the engine answers."""

    async def aclose(self) -> None:
        """Release files, connections and child processes."""
