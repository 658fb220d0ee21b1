"""The collection's named vectors, one for each space; the first of a space's chunks makes its own."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from weaviate.classes.config import Configure, VectorDistances
from weaviate.collections import CollectionAsync
from weaviate.exceptions import WeaviateBaseError

FIRST_VECTOR = "text"
"""The vector that every collection begins with, from when spaces had no names yet."""

MAX_TRIES = 5


def vector_config(name: str) -> Any:
    """A named vector that we bring ourselves; flat, because a tenant is one channel."""
    return Configure.Vectors.self_provided(
        name=name, vector_index_config=Configure.VectorIndex.flat(distance_metric=VectorDistances.COSINE)
    )


class VectorSpaces:
    """Which named vector a space has."""

    def __init__(self, collection: CollectionAsync[Any, Any], first_space: str | None) -> None:
        """``first_space`` is the space of what ``FIRST_VECTOR`` holds; None when it holds nothing."""
        self._collection = collection
        self._first_space = first_space
        self._known = {FIRST_VECTOR}

    def vector_of(self, space: str) -> str:
        """The name of a space's vector."""
        return FIRST_VECTOR if space == self._first_space else space

    async def has(self, space: str) -> bool:
        """Whether anything was ever written in this space."""
        name = self.vector_of(space)
        if name not in self._known:
            config = await self._collection.config.get()
            self._known.update(config.vector_config or ())
        return name in self._known

    async def ensure(self, space: str) -> None:
        """Add the space's vector unless it is there.

        Adding reads the collection's settings and writes them back, so another process that adds a
        vector at the same time may win: look, and add again.
        """
        for _ in range(MAX_TRIES):
            if await self.has(space):
                return
            with suppress(WeaviateBaseError):
                await self._collection.config.add_vector(vector_config=vector_config(self.vector_of(space)))
        if not await self.has(space):
            await self._collection.config.add_vector(vector_config=vector_config(self.vector_of(space)))
