"""Named vectors that several processes add to one collection."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, aclosing, suppress
from functools import partial
from uuid import UUID, uuid4

import pytest
from engines.weaviate import RealWeaviate
from harness.waiting import until
from samples.indexes import axis, chunk, new_tenant

from storage.errors import IncompletePublication, IndexUnavailable
from storage.index.base import SearchFilter
from storage.index.weaviate.index import WeaviateIndex

ALL = SearchFilter()


@pytest.mark.engine("weaviate")
async def test_spaces_created_concurrently_all_exist(weaviate: RealWeaviate) -> None:
    """Shows that adding a named vector never loses a concurrently added one."""
    tenant = new_tenant()
    spaces = [f"made_at_once_{number}" for number in range(4)]

    async def publish(index: WeaviateIndex, space: str) -> UUID | None:
        publication = uuid4()
        # While a vector is being added the server rejects writes, or silently drops the vector: incomplete
        # publications are published again, as in the product.
        with suppress(IndexUnavailable, IncompletePublication):
            await index.write(tenant, [chunk(publication, 0, "tape", vector=axis(0), space=space)])
            await index.commit_publication(tenant, publication, chunks=1, vectors=1, space=space)
            return publication
        return None

    async with AsyncExitStack() as stack:
        indexes = [await stack.enter_async_context(aclosing(await weaviate.connect())) for _ in spaces]
        await indexes[0].ensure_tenant(tenant)
        publishing = (until(partial(publish, *one)) for one in zip(indexes, spaces, strict=True))
        published = await asyncio.gather(*publishing)
        for index in indexes:
            for space, publication in zip(spaces, published, strict=True):
                hits = await index.search_vectors(tenant, space, axis(0), ALL, 5)
                assert publication in {hit.publication for hit in hits}
