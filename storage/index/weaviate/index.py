"""Weaviate engine: one multi-tenant collection with a tenant per channel.

Terms and vectors are supplied by us. An acknowledged write may lose its vectors if the server is killed, so a
publication is flushed and counted before it becomes visible.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Collection, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, TypeVar
from uuid import UUID, uuid4

from weaviate import WeaviateAsyncClient
from weaviate.classes.data import DataObject
from weaviate.classes.query import MetadataQuery
from weaviate.classes.tenants import Tenant
from weaviate.collections.classes.filters import FilterReturn

from storage.errors import IndexUnavailable, UnknownTenant
from storage.index.base import (
    Hit,
    IndexedChunk,
    SearchFilter,
    Vector,
    object_id,
    require_complete,
)
from storage.index.weaviate.collection import (
    COLLECTION,
    SHOWN,
    VectorSpaces,
    as_filter,
    as_hit,
    as_object,
    deadline,
    ensure_collection,
    has_term,
    make_client,
    of_publication,
    translated,
)
from storage.index.weaviate.counts import Shard, TermCounts, count_vectors, windows_of
from storage.models import TenantName
from storage.task_group import gather_or_cancel

# Terms counted per search; a question of ordinary length has a tenth of them.
MAX_COUNTED_TERMS = 128
# Concurrent counts per search.
COUNT_CONCURRENCY = 8
WRITE_BATCH_SIZE = 500
READ_BATCH_SIZE = 1000
DELETE_CONCURRENCY = 16
SHARD_CACHE_SIZE = 1000
FIRST = UUID(int=0)

# A tenant that never exists, for the ping.
_NOBODY = TenantName("lo_" + 52 * "a")

T = TypeVar("T")


class WeaviateIndex:
    """Index engine on a Weaviate server, created by ``connect``.

    The collection without a tenant is private: every call goes through the shard of its tenant.
    """

    def __init__(self, client: WeaviateAsyncClient, identity: str, timeout: float) -> None:
        # Differs from that of every other collection, and of this one before it was emptied.
        self.identity = identity
        # Removed data stays on disk until the server merges segments, which cannot be requested.
        self.upkeep = None
        # Set for a child server, which no other home writes to.
        self.is_exclusive = False
        # Failed pings and restarts of the server; a slow query does not count.
        self.outages = 0
        self._client = client
        self._timeout = timeout
        self._collection: Shard = client.collections.use(COLLECTION)
        self._spaces = VectorSpaces(self._collection)
        self._counts = TermCounts()
        # Ping that was started by a failed call.
        self._doubt: asyncio.Task[None] | None = None
        self._with_tenant = lru_cache(SHARD_CACHE_SIZE)(self._collection.with_tenant)

    @classmethod
    async def connect(
        cls,
        url: str,
        api_key: str | None,
        grpc_port: int,
        timeout: float,  # noqa: ASYNC109 - also the deadline of all later calls
        *,
        replicas: int | None = None,
    ) -> WeaviateIndex:
        """Connect to the server at ``url`` and create the collection unless it exists.

        ``replicas`` is the replication factor of a new collection; None: the server's default.

        Raises:
            IndexUnavailable: the server does not answer, refuses the key, or is too old.
            SettingsError: ``url`` is not of the form http(s)://host:port.
        """
        client = make_client(url, api_key, grpc_port, timeout)
        try:
            async with deadline(timeout):
                await client.connect()
                identity = await ensure_collection(client, replicas)
        except BaseException as error:
            await client.close()
            if isinstance(error, IndexUnavailable):
                raise IndexUnavailable(
                    f"cannot use Weaviate at {url}: {error}; is it running, and are WEAVIATE_URL, "
                    "WEAVIATE_API_KEY and FOOTNOTE_WEAVIATE_GRPC_PORT right?"
                ) from error
            raise
        return cls(client, identity, timeout)

    async def tenants(self) -> set[TenantName]:
        """Return all tenants of the collection, including those of other homes."""
        return {TenantName(name) for name in await self._call(self._collection.tenants.get())}

    async def ensure_tenant(self, tenant: TenantName) -> None:
        """Create the tenant unless it exists."""
        if not await self.has_tenant(tenant):
            await self._call(self._collection.tenants.create(Tenant(name=_checked(tenant))))

    async def has_tenant(self, tenant: TenantName) -> bool:
        """True if the tenant exists."""
        return await self._call(self._collection.tenants.exists(_checked(tenant)))

    async def write(self, tenant: TenantName, chunks: Sequence[IndexedChunk]) -> None:
        """Store chunks, replacing existing ones."""
        name = _checked(tenant)
        for space in {chunk.space for chunk in chunks if chunk.space is not None}:
            await self._call(self._spaces.ensure(space))
        for start in range(0, len(chunks), WRITE_BATCH_SIZE):
            batch = chunks[start : start + WRITE_BATCH_SIZE]
            await self._insert(name, [as_object(name, chunk) for chunk in batch])

    async def _insert(self, tenant: TenantName, objects: Sequence[DataObject[Any, Any]]) -> None:
        result = await self._call(self._shard(tenant).data.insert_many(objects))
        for error in result.errors.values():
            raise translated(error.message)

    async def commit_publication(
        self, tenant: TenantName, publication: UUID, *, chunks: int, vectors: int, space: str | None = None
    ) -> None:
        """Flush what was written, then count objects and vectors.

        Raises:
            IncompletePublication: chunks or vectors are missing.
        """
        await self._flush(tenant)
        windows = windows_of(chunks)
        found = [await self._count(tenant, of_publication(publication, window)) for window in windows]
        placed = [await self._count_vectors(tenant, publication, space, one) for one in windows if vectors]
        require_complete(publication, chunks=(sum(found), chunks), vectors=(sum(placed), vectors))

    async def _flush(self, tenant: TenantName) -> None:
        """Flush the server's logs by writing and deleting an object without a vector.

        Weaviate flushes its logs before its vector workers are done; one more write makes it flush theirs,
        too. The object differs each time, because an equal one is skipped.
        """
        sentinel = object_id(tenant, FIRST, 0)
        await self._insert(tenant, [DataObject(uuid=sentinel, properties={"text": uuid4().hex})])
        await self._call(self._shard(tenant).data.delete_by_id(sentinel))

    async def _count(self, tenant: TenantName, chosen: FilterReturn | None = None) -> int:
        counted = await self._call(self._shard(tenant).aggregate.over_all(total_count=True, filters=chosen))
        return counted.total_count or 0

    async def _count_vectors(
        self, tenant: TenantName, publication: UUID, space: str | None, window: range
    ) -> int:
        if space is None or not await self._call(self._spaces.has(space)):
            return 0
        return await self._call(count_vectors(self._shard(tenant), publication, window, space))

    async def search_keywords(
        self, tenant: TenantName, terms: Sequence[str], filters: SearchFilter, limit: int
    ) -> list[Hit]:
        """Return the best chunks by BM25, best first."""
        if not terms or not all(filters.groups):
            return await self._nothing(tenant)
        found = await self._call(
            self._shard(tenant).query.bm25(
                " ".join(terms),
                query_properties=["terms"],
                filters=as_filter(filters),
                limit=limit,
                return_metadata=MetadataQuery(score=True),
                return_properties=SHOWN,
            )
        )
        return [as_hit(one.properties, one.metadata.score or 0.0) for one in found.objects]

    async def search_vectors(
        self, tenant: TenantName, space: str, vector: Vector, filters: SearchFilter, limit: int
    ) -> list[Hit]:
        """Return the nearest chunks by cosine, nearest first."""
        if not all(filters.groups) or not await self._call(self._spaces.has(space)):
            return await self._nothing(tenant)
        found = await self._call(
            self._shard(tenant).query.near_vector(
                [float(value) for value in vector],
                target_vector=space,
                filters=as_filter(filters),
                limit=limit,
                return_metadata=MetadataQuery(distance=True),
                return_properties=SHOWN,
            )
        )
        return [as_hit(one.properties, 1.0 - (one.metadata.distance or 0.0)) for one in found.objects]

    async def _nothing(self, tenant: TenantName) -> list[Hit]:
        """Return no hits, or raise UnknownTenant."""
        await self._count(tenant)
        return []

    async def document_frequencies(
        self, tenant: TenantName, terms: Collection[str]
    ) -> tuple[int, dict[str, int]]:
        """Return (number of chunks in the tenant, chunks per term); counts may be up to 2 % off.

        At most ``MAX_COUNTED_TERMS`` unknown terms are counted; the rest is left out, and counted by later
        searches.
        """
        chunks = await self._count(tenant)
        known = self._counts.get_valid(tenant, terms, chunks)
        missing = [term for term in dict.fromkeys(terms) if term not in known][:MAX_COUNTED_TERMS]
        slots = asyncio.Semaphore(COUNT_CONCURRENCY)

        async def count(term: str) -> int:
            async with slots:
                return await self._count(tenant, has_term(term))

        found = await gather_or_cancel(*map(count, missing))
        counted = dict(zip(missing, found, strict=True))
        self._counts.put(tenant, chunks, counted)
        return chunks, known | counted

    async def remove(self, tenant: TenantName, publication: UUID, chunks: int) -> None:
        """Remove a publication."""
        shard = self._shard(tenant)

        async def delete(ordinal: int) -> None:
            await self._call(shard.data.delete_by_id(object_id(tenant, publication, ordinal)))

        # A filter deletes at most 10,000 objects per call.
        while (await self._call(shard.data.delete_many(where=of_publication(publication)))).successful:
            pass
        # Delete by id, too: a crash leaves orphans that no filter finds.
        for start in range(0, chunks, DELETE_CONCURRENCY):
            await gather_or_cancel(*map(delete, range(start, min(start + DELETE_CONCURRENCY, chunks))))

    async def publications(self, tenant: TenantName) -> dict[UUID, int]:
        """Return the tenant's publications with their number of chunks."""
        # Scans all objects, because grouping stops at 100 groups.
        found: dict[UUID, int] = {}
        after: UUID | None = FIRST
        while after is not None:
            page = await self._call(
                self._shard(tenant).query.fetch_objects(
                    limit=READ_BATCH_SIZE, after=after, return_properties=["publication"]
                )
            )
            for one in page.objects:
                if one.properties["publication"] is not None:
                    publication = UUID(str(one.properties["publication"]))
                    found[publication] = found.get(publication, 0) + 1
            after = page.objects[-1].uuid if page.objects else None
        return found

    async def drop_tenant(self, tenant: TenantName) -> None:
        """Remove a tenant and its data."""
        await self._call(self._collection.tenants.remove(_checked(tenant)))

    async def ping(self) -> None:
        """Return if the server answers on both ports; count an outage otherwise."""
        try:
            await self._once(self._client.get_meta())
            with suppress(UnknownTenant):
                await self._once(self._shard(_NOBODY).aggregate.over_all(total_count=True))
        except IndexUnavailable:
            self.note_outage()
            raise

    async def aclose(self) -> None:
        """Close the connections."""
        if self._doubt:
            self._doubt.cancel()
            await asyncio.wait([self._doubt])
        await self._client.close()

    def _shard(self, tenant: TenantName) -> Shard:
        return self._with_tenant(_checked(tenant))

    def note_outage(self) -> None:
        """Count an outage: the server was or is unreachable."""
        self.outages += 1

    async def _call(self, call: Awaitable[T]) -> T:
        """Make a call; if it fails, start a ping that tells an outage from a slow query."""
        try:
            return await self._once(call)
        except IndexUnavailable:
            if self._doubt is None or self._doubt.done():
                self._doubt = asyncio.create_task(self._ping_quietly(), name="ping after a failed call")
            raise

    async def _ping_quietly(self) -> None:
        with suppress(IndexUnavailable):
            await self.ping()

    async def _once(self, call: Awaitable[T]) -> T:
        async with deadline(self._timeout):
            return await call


def _checked(tenant: TenantName) -> TenantName:
    """Return the validated name: it becomes part of a URL, and None would mean no tenant at all."""
    return TenantName(str(tenant))
