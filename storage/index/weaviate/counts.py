"""Counts in Weaviate: chunks per term, and chunks with their vector.

Weaviate counts chunks one by one, so a term's count is cached until its tenant grows noticeably. Vectors are
counted by searching, because the object count does not reveal a lost vector.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any
from uuid import UUID

from weaviate.collections import CollectionAsync

from storage.index.weaviate.collection import of_publication
from storage.lru_cache import LRUCache
from storage.models import TenantName

CACHE_SIZE = 50_000
# Relative growth of a tenant after which cached counts expire; idf hardly changes within it.
MAX_RELATIVE_GROWTH = 0.02
# Chunks counted per query: a server returns at most 10,000 hits.
COUNT_BATCH_SIZE = 2000
PROBE_BATCH_SIZE = 100
# Additional hits requested, so that a surplus shows, too.
SPARE = 5

Shard = CollectionAsync[Any, Any]


class TermCounts:
    """LRU cache of chunks per term and tenant, each with the tenant's size when it was counted."""

    def __init__(self, size: int = CACHE_SIZE) -> None:
        """Cache the ``size`` most recently used counts."""
        self._counts: LRUCache[tuple[TenantName, str], tuple[int, int]] = LRUCache(size)

    def get_valid(self, tenant: TenantName, terms: Collection[str], chunks: int) -> dict[str, int]:
        """Return the cached counts that are still valid for a tenant that now has ``chunks`` chunks."""
        kept = {term: self._counts[tenant, term] for term in terms if (tenant, term) in self._counts}
        self._counts.update({(tenant, term): counted for term, counted in kept.items()})
        return {
            term: count
            for term, (size, count) in kept.items()
            if abs(size - chunks) <= MAX_RELATIVE_GROWTH * chunks
        }

    def put(self, tenant: TenantName, chunks: int, counted: Mapping[str, int]) -> None:
        """Store counts that were taken when the tenant had ``chunks`` chunks."""
        self._counts.update({(tenant, term): (chunks, count) for term, count in counted.items()})


def windows_of(chunks: int) -> list[range]:
    """Split the ordinals of a publication into countable ranges, at least one."""
    return [range(start, start + COUNT_BATCH_SIZE) for start in range(0, max(chunks, 1), COUNT_BATCH_SIZE)]


async def count_vectors(shard: Shard, publication: UUID, window: range, name: str) -> int:
    """Return how many chunks of the range are found by their named vector."""
    probe = await _any_vector(shard, publication, window, name)
    if probe is None:
        return 0
    found = await shard.query.near_vector(
        probe,
        target_vector=name,
        filters=of_publication(publication, window),
        limit=len(window) + SPARE,
        return_properties=[],
    )
    return len(found.objects)


async def _any_vector(shard: Shard, publication: UUID, window: range, name: str) -> list[float] | None:
    """Return any vector of the range as a probe: each of them finds all others."""
    for start in range(0, len(window), PROBE_BATCH_SIZE):
        page = await shard.query.fetch_objects(
            filters=of_publication(publication, window),
            limit=PROBE_BATCH_SIZE,
            offset=start,
            include_vector=[name],
            return_properties=[],
        )
        for found in page.objects:
            if name in found.vector:
                return [float(value) for value in found.vector[name]]  # type: ignore[arg-type] # one vector, not many
        if len(page.objects) < PROBE_BATCH_SIZE:
            break
    return None
