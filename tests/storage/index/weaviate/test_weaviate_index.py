"""Requests of the index to a Weaviate server, and its handling of a slow one."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from samples.indexes import new_tenant

from storage.errors import IndexUnavailable
from storage.index.weaviate.counts import TermCounts
from storage.index.weaviate.index import COUNT_CONCURRENCY, MAX_COUNTED_TERMS, WeaviateIndex


class Server:
    """A client whose server counts one chunk per term; it answers late or not at all on demand."""

    def __init__(self) -> None:
        self.is_late = False
        self.is_away = False
        # Terms counted.
        self.counts = 0
        self.concurrency = 0
        self.max_concurrency = 0

    @property
    def collections(self) -> Any:
        """Return one collection with the same shard for every tenant."""
        shard = SimpleNamespace(aggregate=SimpleNamespace(over_all=self._count))
        return SimpleNamespace(use=lambda _: SimpleNamespace(with_tenant=lambda _: shard))

    async def get_meta(self) -> None:
        """Answer a ping."""
        if self.is_away:
            await asyncio.Event().wait()

    async def close(self) -> None:
        """Do nothing."""

    async def _count(self, *, total_count: bool, filters: object = None) -> Any:
        if self.is_away or (self.is_late and filters is not None):
            await asyncio.Event().wait()
        if filters is not None:
            self.counts += 1
            self.concurrency += 1
            self.max_concurrency = max(self.max_concurrency, self.concurrency)
            await asyncio.sleep(0)
            self.concurrency -= 1
        return SimpleNamespace(total_count=int(total_count))


def index_on(server: Server) -> WeaviateIndex:
    """Return the index of this server, with a short deadline."""
    client: Any = server
    return WeaviateIndex(client, "it", 0.05)


async def test_only_a_failed_ping_counts_as_an_outage() -> None:
    """Shows that a server that is too slow for one call but answers the ping was not down."""
    server = Server()
    index, tenant = index_on(server), new_tenant()
    server.is_late = True
    for _ in range(3):
        with pytest.raises(IndexUnavailable):
            await index.document_frequencies(tenant, ["marzipan"])
    await index.ping()
    await asyncio.sleep(0)
    assert index.outages == 0
    server.is_away = True
    with pytest.raises(IndexUnavailable):
        await index.ping()
    assert index.outages == 1
    await index.aclose()


async def test_a_failed_call_pings_the_server_at_once() -> None:
    """Shows that an outage that ends before the next regular ping is noticed."""
    server = Server()
    index = index_on(server)
    server.is_away = True
    with pytest.raises(IndexUnavailable):
        await index.document_frequencies(new_tenant(), ["marzipan"])
    async with asyncio.timeout(30):
        while not index.outages:
            await asyncio.sleep(0.01)
    await index.aclose()


async def test_counting_terms_is_bounded_for_long_questions() -> None:
    """Shows that neither the number nor the concurrency of counts grows with the question."""
    server = Server()
    index, tenant = index_on(server), new_tenant()
    terms = [f"term{number}" for number in range(1000)]
    chunks, counted = await index.document_frequencies(tenant, terms)
    assert chunks == 1
    assert list(counted) == terms[:MAX_COUNTED_TERMS]
    assert server.counts == MAX_COUNTED_TERMS
    assert server.max_concurrency == COUNT_CONCURRENCY
    _, counted = await index.document_frequencies(tenant, terms)
    assert len(counted) == 2 * MAX_COUNTED_TERMS
    await index.aclose()


def test_term_counts_are_evicted_least_recently_used_first() -> None:
    counts, tenant = TermCounts(size=3), new_tenant()
    counts.put(tenant, 100, {"one": 1, "two": 2, "three": 3})
    assert counts.get_valid(tenant, ["one"], 100) == {"one": 1}
    counts.put(tenant, 100, {"four": 4})
    assert counts.get_valid(tenant, ["one", "two", "three", "four"], 100) == {"one": 1, "three": 3, "four": 4}
