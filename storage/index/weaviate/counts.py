"""Counts in Weaviate: how many chunks hold a term, and how many have their vector.

A count of a term is remembered while its tenant hardly grows: Weaviate counts chunks one by one. Vectors
are counted by searching: the object count does not notice one that was lost.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any
from uuid import UUID

from weaviate.collections import CollectionAsync

from storage.index.weaviate.collection import of_publication
from storage.models import TenantName
from storage.recent_items import RecentItems

CACHE_SIZE = 50_000
# Share by which a tenant may grow or shrink before its counts are taken again; idf hardly moves.
DRIFT = 0.02
# Chunks counted by one query: a server returns 10,000 hits at most.
COUNT_BATCH_SIZE = 2000
PROBE_BATCH_SIZE = 100
# Hits asked for beyond the number expected, so that too many show as well.
SPARE = 5

Shard = CollectionAsync[Any, Any]


class TermCounts:
    """Chunks per term and tenant, each with the size of the tenant when it was counted."""

    def __init__(self, size: int = CACHE_SIZE) -> None:
        """Keep the ``size`` counts that were asked for last."""
        self._counts: RecentItems[tuple[TenantName, str], tuple[int, int]] = RecentItems(size)

    def fresh(self, tenant: TenantName, terms: Collection[str], chunks: int) -> dict[str, int]:
        """Return the counts that still hold for a tenant that now has ``chunks`` chunks."""
        kept = {term: self._counts[tenant, term] for term in terms if (tenant, term) in self._counts}
        self._counts.update({(tenant, term): counted for term, counted in kept.items()})
        return {term: count for term, (size, count) in kept.items() if abs(size - chunks) <= DRIFT * chunks}

    def keep(self, tenant: TenantName, chunks: int, counted: Mapping[str, int]) -> None:
        """Remember what was counted when the tenant held ``chunks`` chunks."""
        self._counts.update({(tenant, term): (chunks, count) for term, count in counted.items()})


def windows_of(chunks: int) -> list[range]:
    """Return the ordinals of a publication in pieces that can be counted; one piece at least."""
    return [range(start, start + COUNT_BATCH_SIZE) for start in range(0, max(chunks, 1), COUNT_BATCH_SIZE)]


async def count_vectors(shard: Shard, publication: UUID, window: range, name: str) -> int:
    """How many of these chunks are found by their named vector."""
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
    """Return a vector to search with: any of them finds all of them."""
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
