"""Weaviate schema: collection, objects, filters, and translation of its errors.

The collection has one named vector per space, added with the first chunk of the space.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID, uuid4

import httpx
from weaviate import WeaviateAsyncClient, use_async_with_custom
from weaviate.classes.config import (
    Configure,
    DataType,
    Property,
    StopwordsPreset,
    Tokenization,
    VectorDistances,
)
from weaviate.classes.data import DataObject
from weaviate.classes.init import AdditionalConfig, Auth, Timeout
from weaviate.classes.query import Filter
from weaviate.collections import CollectionAsync
from weaviate.collections.classes.filters import FilterReturn
from weaviate.config import GrpcConfig
from weaviate.exceptions import WeaviateBaseError

from storage.errors import IndexUnavailable, SettingsError, UnknownTenant
from storage.index.base import Hit, IndexedChunk, SearchFilter
from storage.models import TenantName

# A collection created without a named vector would get an unnamed one in addition to those of the spaces.
UNUSED_VECTOR = "unused"

MAX_TRIES = 5

COLLECTION = "FootnoteChunk"
# Properties that a hit is built from.
SHOWN = ["publication", "ordinal", "terms", "text", "first_page", "last_page", "heading_path"]

_CHANNEL_OPTIONS: list[tuple[str, Any]] = [
    ("grpc.enable_http_proxy", 0),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),  # the default of two minutes is longer than a restart takes
]


def vector_config(name: str) -> Any:
    """Return a self-provided named vector; flat index, because a tenant is one channel."""
    return Configure.Vectors.self_provided(
        name=name, vector_index_config=Configure.VectorIndex.flat(distance_metric=VectorDistances.COSINE)
    )


class VectorSpaces:
    """The named vectors of the collection, one per space."""

    def __init__(self, collection: CollectionAsync[Any, Any]) -> None:
        self._collection = collection
        self._known: set[str] = set()

    async def has(self, space: str) -> bool:
        """True if a chunk was ever written in this space."""
        if space not in self._known:
            config = await self._collection.config.get()
            self._known.update(config.vector_config or ())
        return space in self._known

    async def ensure(self, space: str) -> None:
        """Add the space's named vector unless it exists.

        Adding is a read-modify-write of the collection's settings, so a concurrent process may overwrite it:
        check, and add again.
        """
        for _ in range(MAX_TRIES):
            if await self.has(space):
                return
            with suppress(WeaviateBaseError):
                await self._collection.config.add_vector(vector_config=vector_config(space))
        if not await self.has(space):
            await self._collection.config.add_vector(vector_config=vector_config(space))


def _address(url: str) -> tuple[str, str, int | None]:
    """Return (scheme, host, port) of a server's URL."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:  # a port above 65535, or half an IPv6 address
        parts, port = urlsplit(""), None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise SettingsError(f"WEAVIATE_URL: {url!r} is not of the form http://host:port")
    return parts.scheme, parts.hostname, port


def make_client(url: str, api_key: str | None, grpc_port: int, timeout: float) -> WeaviateAsyncClient:
    """Return a client that is not connected yet.

    Raises:
        SettingsError: ``url`` is not of the form http(s)://host:port.
    """
    scheme, host, port = _address(url)
    secure = scheme == "https"
    return use_async_with_custom(
        http_host=host,
        http_port=port or (443 if secure else 8080),
        http_secure=secure,
        grpc_host=host,
        grpc_port=grpc_port,
        grpc_secure=secure,
        auth_credentials=Auth.api_key(api_key) if api_key else None,
        additional_config=AdditionalConfig(
            timeout=Timeout(init=timeout, query=timeout, insert=timeout),
            grpc_config=GrpcConfig(channel_options=_CHANNEL_OPTIONS),
        ),
        skip_init_checks=True,  # they look for newer clients on a package index
    )


async def ensure_collection(client: WeaviateAsyncClient, replicas: int | None = None) -> str:
    """Create the collection unless it exists, with this replication factor, and return its identity.

    Returns:
        Its description, a random text: an emptied server gets another one.
    """
    if not await client.collections.exists(COLLECTION):
        await _create_collection(client, replicas)
    config = await client.collections.use(COLLECTION).config.get(simple=True)
    return config.description or ""


async def _create_collection(client: WeaviateAsyncClient, replicas: int | None) -> None:
    """Create the collection; safe to call concurrently."""
    try:
        await client.collections.create(
            COLLECTION,
            description=f"The chunks of a Footnote, {uuid4()}",
            multi_tenancy_config=Configure.multi_tenancy(
                enabled=True, auto_tenant_creation=False, auto_tenant_activation=True
            ),
            replication_config=Configure.replication(factor=replicas) if replicas else None,
            vector_config=vector_config(UNUSED_VECTOR),
            inverted_index_config=Configure.inverted_index(
                bm25_k1=1.2, bm25_b=0.75, stopwords_preset=StopwordsPreset.NONE
            ),
            properties=_properties(),
        )
    except WeaviateBaseError:
        if not await client.collections.exists(COLLECTION):
            raise


def _properties() -> list[Property]:
    return [
        Property(name="publication", data_type=DataType.UUID, index_filterable=True),
        Property(name="ordinal", data_type=DataType.INT, index_filterable=False, index_range_filters=True),
        Property(
            name="terms",
            data_type=DataType.TEXT,
            tokenization=Tokenization.WHITESPACE,
            index_searchable=True,
            index_filterable=False,
        ),
        Property(
            name="facets",
            data_type=DataType.TEXT_ARRAY,
            tokenization=Tokenization.FIELD,
            index_searchable=False,
            index_filterable=True,
        ),
        _only_stored("text", DataType.TEXT),
        _only_stored("heading_path", DataType.TEXT_ARRAY),
        Property(name="first_page", data_type=DataType.INT, index_filterable=False),
        Property(name="last_page", data_type=DataType.INT, index_filterable=False),
    ]


def _only_stored(name: str, kind: DataType) -> Property:
    return Property(name=name, data_type=kind, index_searchable=False, index_filterable=False)


def as_object(tenant: TenantName, chunk: IndexedChunk) -> DataObject[Any, Any]:
    """Return a chunk as a Weaviate object, with its vector named after the space."""
    vector = None
    if chunk.vector is not None and chunk.space is not None:
        vector = {chunk.space: [float(value) for value in chunk.vector]}
    return DataObject(
        uuid=chunk.object_id(tenant),
        properties={
            "publication": chunk.publication,
            "ordinal": chunk.ordinal,
            "terms": chunk.terms,
            "text": chunk.text,
            "first_page": chunk.first_page,
            "last_page": chunk.last_page,
            "heading_path": list(chunk.heading_path),
            "facets": list(chunk.facets),
        },
        vector=vector,
    )


def as_hit(properties: Mapping[str, Any], score: float) -> Hit:
    """Convert an object's properties to a hit."""
    return Hit(
        publication=_as_uuid(properties["publication"]),
        ordinal=int(properties["ordinal"]),
        text=properties["text"],
        first_page=int(properties["first_page"]),
        last_page=int(properties["last_page"]),
        heading_path=tuple(properties["heading_path"] or ()),
        score=score,
        terms=properties["terms"],
    )


@lru_cache(maxsize=10_000)
def _as_uuid(value: object) -> UUID:
    """Convert the client's id type to a plain UUID; cached, because many hits belong to few publications."""
    return UUID(str(value))


def as_filter(filters: SearchFilter) -> FilterReturn | None:
    """Convert filters to Weaviate's; None if everything passes."""
    conditions: list[FilterReturn] = [
        Filter.by_property("facets").contains_any(sorted(group)) for group in filters.groups
    ]
    if filters.hidden:
        conditions.append(Filter.by_property("publication").contains_none(sorted(filters.hidden)))
    return Filter.all_of(conditions) if conditions else None


def of_publication(publication: UUID, ordinals: range | None = None) -> FilterReturn:
    """Return a filter for the chunks of a publication, or a range of them."""
    whole: FilterReturn = Filter.by_property("publication").equal(publication)
    if ordinals is None:
        return whole
    ordinal = Filter.by_property("ordinal")
    return whole & ordinal.greater_or_equal(ordinals.start) & ordinal.less_than(ordinals.stop)


def has_term(term: str) -> FilterReturn:
    """Return a filter for the chunks that contain a term."""
    return Filter.by_property("terms").equal(term)


@asynccontextmanager
async def deadline(seconds: float) -> AsyncIterator[None]:
    """Limit calls to Weaviate to ``seconds`` and translate the client's errors.

    The client's own retries against a dead server last a minute.

    Raises:
        UnknownTenant: the tenant does not exist.
        IndexUnavailable: the server is down, late or refuses.
    """
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as error:
        raise IndexUnavailable(f"Weaviate did not answer within {seconds:g} s") from error
    except WeaviateBaseError as error:
        raise translated(str(error)) from error
    except httpx.TransportError as error:  # the client does not translate broken connections
        raise IndexUnavailable(f"connection to Weaviate lost: {type(error).__name__}") from error


def translated(message: str) -> UnknownTenant | IndexUnavailable:
    """Translate one of Weaviate's messages; the client has no exception class for an unknown tenant."""
    if "tenant not found" in message:
        return UnknownTenant("the index has no such tenant")
    return IndexUnavailable(f"Weaviate failed: {' '.join(message.split())[:200]}")
