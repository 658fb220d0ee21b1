"""Counts the vectors of a publication by searching: the object count does not notice one that was lost."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from weaviate.collections import CollectionAsync

from storage.index.weaviate_collection import of_publication

COUNT_BATCH_SIZE = 2000
"""Chunks counted by one query: a server returns 10,000 hits at most."""
PROBE_BATCH_SIZE = 100
SPARE = 5
"""Hits asked for beyond the number expected, so that too many show as well."""

Shard = CollectionAsync[Any, Any]


def windows_of(chunks: int) -> list[range]:
    """The ordinals of a publication in pieces that can be counted; one piece at least."""
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
    """A vector to search with: any of them finds all of them."""
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
