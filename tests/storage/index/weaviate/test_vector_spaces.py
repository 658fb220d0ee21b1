"""Named vectors that several processes add to one collection."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, aclosing, suppress
from functools import partial
from uuid import uuid4

import pytest
from engines.weaviate import RealWeaviate
from harness.waiting import until
from samples.indexes import axis, chunk, new_tenant

from storage.errors import IndexUnavailable
from storage.index.base import Filters, IndexedChunk
from storage.index.weaviate.index import WeaviateIndex

ALL = Filters()


@pytest.mark.engine("weaviate")
async def test_spaces_made_by_several_processes_at_once_are_all_there(weaviate: RealWeaviate) -> None:
    """Shows that adding a named vector never loses the one that somebody else adds meanwhile."""
    tenant = new_tenant()
    spaces = [f"made_at_once_{number}" for number in range(4)]

    async def write(index: WeaviateIndex, chunks: list[IndexedChunk]) -> bool:
        with suppress(IndexUnavailable):  # it takes nothing while a vector is being added: later it does
            await index.write(tenant, chunks)
            return True
        return False

    async with AsyncExitStack() as stack:
        indexes = [await stack.enter_async_context(aclosing(await weaviate.connect())) for _ in spaces]
        await indexes[0].ensure_tenant(tenant)
        chunks = [[chunk(uuid4(), 0, "tape", vector=axis(0), space=space)] for space in spaces]
        writing = (until(partial(write, *one)) for one in zip(indexes, chunks, strict=True))
        await asyncio.gather(*writing)
        for index in indexes:
            found = [await index.find_by_vector(tenant, space, axis(0), ALL, 5) for space in spaces]
            assert [len(hits) for hits in found] == [1, 1, 1, 1]
