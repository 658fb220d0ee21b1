"""What was written before spaces had names: it belongs to the embedder that the home was held to."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import AsyncExitStack, aclosing, closing, suppress
from functools import partial
from pathlib import Path
from uuid import uuid4

import pytest
from engines.weaviate import RealWeaviate
from harness.waiting import until
from samples.indexes import SPACE, axis, chunk, new_tenant

from storage.errors import IndexUnavailable
from storage.index.base import Filters, IndexedChunk
from storage.index.embedded.index import EmbeddedIndex
from storage.index.weaviate.index import WeaviateIndex
from storage.models import TenantName

ALL = Filters()


async def older_file(folder: Path) -> TenantName:
    """A tenant's file as the first release made it: one chunk with a vector, one without."""
    tenant, index = new_tenant(), EmbeddedIndex(folder)
    await index.ensure_tenant(tenant)
    chunks = [chunk(uuid4(), 0, "backup", vector=axis(0)), chunk(uuid4(), 1, "backup")]
    await index.write(tenant, chunks)
    await index.aclose()
    with closing(sqlite3.connect(folder / f"{tenant}.sqlite3")) as file:
        file.executescript(
            "ALTER TABLE chunk DROP COLUMN space; ALTER TABLE chunk DROP COLUMN checksum;"
            "PRAGMA user_version = 0;"
        )
    return tenant


async def test_an_older_file_gets_its_space_by_name(tmp_path: Path) -> None:
    """Shows that old vectors are found in the first embedder's space, and in no other."""
    tenant = await older_file(tmp_path)
    index = EmbeddedIndex(tmp_path, first_space=SPACE)
    assert [hit.ordinal for hit in await index.find_by_vector(tenant, SPACE, axis(0), ALL, 5)] == [0]
    assert await index.find_by_vector(tenant, "another", axis(0), ALL, 5) == []
    await index.write(tenant, [chunk(uuid4(), 7, "tape", vector=axis(0), space="another")])
    assert [hit.ordinal for hit in await index.find_by_vector(tenant, "another", axis(0), ALL, 5)] == [7]
    assert [hit.ordinal for hit in await index.find_by_vector(tenant, SPACE, axis(0), ALL, 5)] == [0]
    await index.aclose()


async def test_an_older_file_opened_by_many_at_once_is_brought_up_to_date_once(tmp_path: Path) -> None:
    """Shows that questions that meet at an older file all find its vectors."""
    tenant = await older_file(tmp_path)
    indexes = [EmbeddedIndex(tmp_path, first_space=SPACE) for _ in range(4)]
    asked = [index.find_by_vector(tenant, SPACE, axis(0), ALL, 5) for index in indexes for _ in range(4)]
    assert [len(hits) for hits in await asyncio.gather(*asked)] == [1] * 16
    for index in indexes:
        await index.aclose()


async def test_vectors_of_no_known_embedder_are_never_hits(tmp_path: Path) -> None:
    """Shows that old vectors are not compared with anything when nobody knows who made them."""
    tenant = await older_file(tmp_path)
    index = EmbeddedIndex(tmp_path)
    assert await index.find_by_vector(tenant, SPACE, axis(0), ALL, 5) == []
    assert len(await index.find_by_words(tenant, ["backup"], ALL, 5)) == 2
    await index.aclose()


@pytest.mark.engine("weaviate")
async def test_an_older_collection_keeps_its_vectors_beside_new_ones(weaviate: RealWeaviate) -> None:
    """Shows that what lies under the first vector's name is the first embedder's, and nobody else's."""
    tenant, url, key, port = new_tenant(), weaviate.url, weaviate.api_key, weaviate.grpc_port
    first = await WeaviateIndex.connect(url, key, port, first_space="older_embedder")
    newer = await WeaviateIndex.connect(url, key, port, first_space="older_embedder")
    await first.ensure_tenant(tenant)
    old, new = uuid4(), uuid4()
    await first.write(tenant, [chunk(old, 0, "backup", vector=axis(0), space="older_embedder")])
    await newer.write(tenant, [chunk(new, 1, "backup", vector=axis(0, 4), space="newer_embedder")])
    await newer.seal(tenant, old, chunks=1, vectors=1, space="older_embedder")
    for index in (first, newer):
        for publication, space, vector in [
            (old, "older_embedder", axis(0)),
            (new, "newer_embedder", axis(0, 4)),
        ]:
            (hit,) = await index.find_by_vector(tenant, space, vector, ALL, 5)
            assert hit.publication == publication
        await index.aclose()


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
