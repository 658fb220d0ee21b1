"""Engines that are down, slow, locked, corrupt or killed: bounded time, our errors, no partial results."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from uuid import UUID, uuid4

import httpx
import numpy as np
import pytest
from engines.weaviate import RealWeaviate
from harness.waiting import PATIENCE, until
from samples.indexes import SPACE, axis, chunk, new_tenant

from storage.errors import IncompletePublication, IndexUnavailable, SettingsError
from storage.index.base import Index, IndexedChunk, SearchFilter
from storage.index.embedded.index import EmbeddedIndex
from storage.index.weaviate.collection import deadline
from storage.index.weaviate.index import WeaviateIndex
from storage.models import TenantName

SECONDS = 1.0
Call = Callable[[Index, TenantName], Awaitable[object]]

CALLS: dict[str, Call] = {
    "ping": lambda index, tenant: index.ping(),
    "has_tenant": lambda index, tenant: index.has_tenant(tenant),
    "ensure_tenant": lambda index, tenant: index.ensure_tenant(tenant),
    "write": lambda index, tenant: index.write(tenant, [chunk(uuid4(), 0, "backup", vector=axis(0))]),
    "seal": lambda index, tenant: index.commit_publication(tenant, uuid4(), chunks=1, vectors=1, space=SPACE),
    "search_keywords": lambda index, tenant: index.search_keywords(tenant, ["backup"], SearchFilter(), 5),
    "search_vectors": lambda index, tenant: index.search_vectors(tenant, SPACE, axis(0), SearchFilter(), 5),
    "document_frequencies": lambda index, tenant: index.document_frequencies(tenant, ["backup"]),
    "remove": lambda index, tenant: index.remove(tenant, uuid4(), 3),
    "publications": lambda index, tenant: index.publications(tenant),
    "drop_tenant": lambda index, tenant: index.drop_tenant(tenant),
}


async def all_calls_are_refused_in_time(index: Index, tenant: TenantName) -> None:
    """Run all calls concurrently; each must raise IndexUnavailable well before the client's own timeout."""

    async def refused(call: Call) -> None:
        with pytest.raises(IndexUnavailable):
            await call(index, tenant)

    async with asyncio.timeout(SECONDS + 20):
        await asyncio.gather(*map(refused, CALLS.values()))


async def until_up(index: Index) -> None:
    """Wait until the engine answers a ping."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                return await index.ping()
            except IndexUnavailable:
                await asyncio.sleep(0.1)


async def connect_hastily(weaviate: RealWeaviate) -> WeaviateIndex:
    """Return an index with a short deadline, retrying because a busy machine may miss it."""

    async def connect() -> WeaviateIndex | None:
        with suppress(IndexUnavailable):
            return await weaviate.connect(SECONDS)
        return None

    return await until(connect)


@pytest.mark.engine("weaviate")
async def test_a_hung_weaviate_is_unavailable_within_the_deadline(weaviate: RealWeaviate) -> None:
    """Shows that no call exceeds its deadline, and that the index recovers when the server resumes."""
    index, tenant = await connect_hastily(weaviate), new_tenant()
    weaviate.pause()
    try:
        await all_calls_are_refused_in_time(index, tenant)
    finally:
        weaviate.resume()
    await until_up(index)
    await index.aclose()


def readings(publication: UUID, chunks: int = 100) -> list[IndexedChunk]:
    """Return a publication with vectors of realistic size."""
    vectors = np.random.default_rng(publication.int % 2**32).normal(size=(chunks, 384))
    return [
        chunk(publication, place, f"backup {place}", vector=vector.tolist())
        for place, vector in enumerate(vectors)
    ]


async def whole(index: Index, tenant: TenantName, publication: UUID) -> bool:
    """True if all 100 chunks of a publication are found by words and by vector."""
    others = SearchFilter()
    by_words = await index.search_keywords(tenant, ["backup"], others, 500)
    by_vector = await index.search_vectors(tenant, SPACE, [1.0] * 384, others, 500)
    return all(sum(hit.publication == publication for hit in leg) == 100 for leg in (by_words, by_vector))


async def write_three(index: Index, *, seal: bool) -> dict[TenantName, UUID]:
    """Write a publication to each of three new tenants."""
    written = {new_tenant(): uuid4() for _ in range(3)}
    for tenant, publication in written.items():
        await index.ensure_tenant(tenant)
        await index.write(tenant, readings(publication))
        if seal:
            await index.commit_publication(tenant, publication, chunks=100, vectors=100, space=SPACE)
    return written


@pytest.mark.engine("weaviate")
async def test_a_killed_weaviate_recovers_with_what_was_sealed(
    weaviate: RealWeaviate,
) -> None:
    """Shows that the client's minute of retries is cut short, and that it reconnects.

    Sealed publications survive ``kill -9``, because sealing flushes what a write alone leaves in memory. An
    acknowledged write whose vectors were lost is never sealed; a new id repairs it.
    """
    index, hasty = await weaviate.connect(PATIENCE), await connect_hastily(weaviate)
    sealed, unsealed = await write_three(index, seal=True), await write_three(index, seal=False)
    weaviate.kill()
    try:
        await all_calls_are_refused_in_time(hasty, new_tenant())
    finally:
        weaviate.start()
    assert hasty.outages > 0
    await until_up(hasty)
    await until_up(index)
    for tenant, publication in sealed.items():
        await index.commit_publication(tenant, publication, chunks=100, vectors=100, space=SPACE)
        assert await whole(index, tenant, publication)
    for tenant, publication in unsealed.items():
        try:
            await index.commit_publication(tenant, publication, chunks=100, vectors=100, space=SPACE)
        except IncompletePublication:
            again = uuid4()
            await index.write(tenant, readings(again))
            await index.commit_publication(tenant, again, chunks=100, vectors=100, space=SPACE)
            await index.remove(tenant, publication, 100)
            unsealed[tenant] = again
        assert await whole(index, tenant, unsealed[tenant])
        assert await index.publications(tenant) == {unsealed[tenant]: 100}
    await index.aclose()
    await hasty.aclose()


@pytest.mark.engine("weaviate")
async def test_a_wrong_key_or_address_is_unavailable_at_once(weaviate: RealWeaviate) -> None:
    """Shows that connecting raises our error quickly, not the client's."""
    for url, key in [(weaviate.url, "wrong"), (weaviate.url, None), ("http://127.0.0.1:1", "any")]:
        with pytest.raises(IndexUnavailable):
            await WeaviateIndex.connect(url, key, weaviate.grpc_port, SECONDS)


async def test_an_invalid_url_names_the_setting() -> None:
    with pytest.raises(SettingsError, match="WEAVIATE_URL"):
        await WeaviateIndex.connect("localhost:8080", None, 50051, SECONDS)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Folder of the embedded index."""
    return tmp_path / "index"


@pytest.fixture
def locked(folder: Path) -> Iterator[Callable[[TenantName], None]]:
    """A function that holds the write lock of a tenant's file, as a hung process would."""
    held: list[sqlite3.Connection] = []

    def lock(tenant: TenantName) -> None:
        held.append(sqlite3.connect(folder / f"{tenant}.sqlite3", isolation_level=None))
        held[-1].execute("BEGIN IMMEDIATE")

    yield lock
    for connection in held:
        connection.close()


async def test_a_locked_file_refuses_writes_and_allows_reads(
    folder: Path, locked: Callable[[TenantName], None]
) -> None:
    """Shows that a hung writer fails other writers within the deadline, and no reader."""
    index, tenant = EmbeddedIndex(folder, SECONDS), new_tenant()
    await index.ensure_tenant(tenant)
    await index.write(tenant, [chunk(uuid4(), 0, "backup")])
    locked(tenant)
    started = time.monotonic()
    with pytest.raises(IndexUnavailable):
        await index.write(tenant, [chunk(uuid4(), 0, "backup")])
    assert time.monotonic() - started < SECONDS + 20
    assert len(await index.search_keywords(tenant, ["backup"], SearchFilter(), 5)) == 1
    await index.aclose()


async def test_a_folder_that_cannot_be_created_is_unavailable(tmp_path: Path) -> None:
    """Shows that a ping detects a disk that is not writable."""
    (tmp_path / "file").write_text("in the way")
    index = EmbeddedIndex(tmp_path / "file" / "index", 10)
    with pytest.raises(IndexUnavailable):
        await index.ping()
    await index.aclose()


async def test_a_broken_connection_is_an_outage() -> None:
    """Shows that exceptions the client does not wrap are translated, too."""
    with pytest.raises(IndexUnavailable, match="ReadError"):
        async with deadline(1):
            raise httpx.ReadError("the peer is gone")
