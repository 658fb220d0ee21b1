"""What every index engine does, whichever it is.

An engine keeps chunks per tenant and finds them by words and by vectors, which lie in spaces, one per
embedder: those of two spaces are never compared. It does not decide what may be shown: ``live_index.py``
checks every hit against the live set in SQL. Every call takes the tenant first and ends in time.
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
# Perhaps still in the making.
PendingVector = asyncio.Future[Vector]

# The mark of a figure: it follows its publication's chunks, as one more of them.
FIGURE_FACET = "kind=figure"


def document_facet(document: UUID) -> str:
    """Return the mark of all that belongs to a document."""
    return f"document={document}"


@dataclass(frozen=True, slots=True)
class IndexedChunk:
    """One chunk of one publication as an engine keeps it."""

    publication: UUID
    ordinal: int
    # The analyzer's terms of title, headings and body, separated by single spaces.
    terms: str
    text: str
    first_page: int
    last_page: int
    heading_path: tuple[str, ...]
    # ``key=value`` marks that filters compare whole, such as ``document=<uuid>``.
    facets: tuple[str, ...]
    vector: Vector | None = None
    # The space of ``vector``: letters, digits and underscores, no digit first.
    space: str | None = None

    def object_id(self, tenant: TenantName) -> UUID:
        """Object id: no two chunks of two tenants or publications can share one."""
        return object_id(tenant, self.publication, self.ordinal)


def object_id(tenant: TenantName, publication: UUID, ordinal: int) -> UUID:
    """UUID over length-prefixed (tenant, publication, ordinal)."""
    hasher = hashlib.blake2b(digest_size=16)
    for part in (tenant.encode(), publication.bytes, str(ordinal).encode()):
        hasher.update(len(part).to_bytes(4, "big") + part)
    return UUID(bytes=hasher.digest(), version=5)


@dataclass(frozen=True, slots=True)
class Filters:
    """Which chunks may be hits: for each group, at least one of its facets."""

    groups: tuple[frozenset[str], ...] = ()
    # Publications to leave out (pending and retired ones).
    hidden: frozenset[UUID] = field(default_factory=frozenset)


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk as an engine found it, with the raw score of the leg that found it."""

    publication: UUID
    ordinal: int
    text: str
    first_page: int
    last_page: int
    heading_path: tuple[str, ...]
    # Words: BM25 (k1 1.2, b 0.75), higher is better. Vectors: the cosine.
    score: float
    # As they were indexed: of title, headings and body.
    terms: str


def require_complete(publication: UUID, *, chunks: tuple[int, int], vectors: tuple[int, int]) -> None:
    """Compare what an engine holds with what was written, each as (held, written).

    Raises:
        IncompletePublication: it holds less.
    """
    if chunks[0] < chunks[1] or vectors[0] < vectors[1]:
        raise IncompletePublication(
            f"publication {publication}: "
            f"{chunks[0]} of {chunks[1]} chunks, {vectors[0]} of {vectors[1]} vectors"
        )


class Index(Protocol):
    """One engine.

    Every method raises IndexUnavailable when the engine is down or late, and, but for
    ``ensure_tenant``, UnknownTenant when the tenant does not exist.
    """

    @property
    def outages(self) -> int:
        """How often the engine has been away so far: each time it may have lost what it wrote last."""

    @property
    def is_ours_alone(self) -> bool:
        """True if no other home can have a tenant here."""

    @property
    def can_scrub(self) -> bool:
        """True if ``scrub`` leaves nothing; else only a tenant that is dropped leaves nothing."""

    async def tenants(self) -> set[TenantName]:
        """Return every tenant there is."""

    async def ensure_tenant(self, tenant: TenantName) -> None:
        """Create the tenant unless it exists."""

    async def has_tenant(self, tenant: TenantName) -> bool:
        """True if the tenant exists."""

    async def write(self, tenant: TenantName, chunks: Sequence[IndexedChunk]) -> None:
        """Store chunks of publications that are not live yet; repeating a call changes nothing."""

    async def seal(
        self, tenant: TenantName, publication: UUID, *, chunks: int, vectors: int, space: str | None = None
    ) -> None:
        """Make what was written durable and count it, the vectors in their space.

        Raises:
            IncompletePublication: fewer chunks or vectors than given: use a new publication id.
        """

    async def find_by_words(
        self, tenant: TenantName, terms: Sequence[str], filters: Filters, limit: int
    ) -> list[Hit]:
        """Return the best chunks by BM25, best first; a repeated term counts as often as it is repeated."""

    async def find_by_vector(
        self, tenant: TenantName, space: str, vector: Vector, filters: Filters, limit: int
    ) -> list[Hit]:
        """The nearest chunks by cosine, nearest first; those without a vector in this space are no hits."""

    async def document_frequencies(
        self, tenant: TenantName, terms: Collection[str]
    ) -> tuple[int, dict[str, int]]:
        """(number of chunks in the tenant, chunks per term): what idf weights are made of."""

    async def remove(self, tenant: TenantName, publication: UUID, chunks: int) -> None:
        """Remove a publication whole, ghosts and any number of chunks included; idempotent."""

    async def publications(self, tenant: TenantName) -> dict[UUID, int]:
        """Return all publications the tenant holds, with their number of chunks."""

    async def drop_tenant(self, tenant: TenantName) -> None:
        """Remove a tenant and all it holds; idempotent."""

    async def scrub(self, tenant: TenantName) -> None:
        """Leave no byte on the disk of what was removed, as far as the engine can be told to."""

    async def examine(self, tenant: TenantName) -> None:
        """Read a tenant through, for as long as it takes; what is broken is ``damaged`` afterwards."""

    async def damaged(self) -> set[TenantName]:
        """Tenants that lost what they held; until ``restore``, every question there is refused."""

    async def restore(self, tenant: TenantName) -> None:
        """All that is live in a damaged tenant was written anew: it answers again."""

    async def ping(self) -> None:
        """Return when the engine answers."""

    async def aclose(self) -> None:
        """Let go of files, connections and children."""
