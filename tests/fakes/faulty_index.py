"""A real index with faults on demand: down, late, or incomplete."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from storage.errors import IncompletePublication, IndexUnavailable
from storage.index.base import Index, IndexedChunk
from storage.models import TenantName


class FaultyIndex:
    """An index with faults on demand; without any it is the real index."""

    def __init__(self, real: Index) -> None:
        self._real = real
        self.is_down = False
        # Sealing times out, but a ping succeeds.
        self.is_late = False
        # Remaining writes with an unknown outcome.
        self.fails_while_writing = 0
        # Remaining publications that are incomplete when sealed.
        self.loses = 0
        self.sealed: list[UUID] = []

    async def ping(self) -> None:
        """Ping, or raise while it is down."""
        if self.is_down:
            raise IndexUnavailable("the index does not answer")
        await self._real.ping()

    async def write(self, tenant: TenantName, chunks: Sequence[IndexedChunk]) -> None:
        """Write, and then perhaps lose the connection."""
        await self._real.write(tenant, chunks)
        if self.fails_while_writing:
            self.fails_while_writing -= 1
            raise IndexUnavailable("the connection broke")

    async def commit_publication(
        self, tenant: TenantName, publication: UUID, *, chunks: int, vectors: int, space: str | None = None
    ) -> None:
        """Seal, or fail as incomplete or late."""
        if self.is_late:
            raise IndexUnavailable("the index did not answer in time")
        if self.loses:
            self.loses -= 1
            raise IncompletePublication("3 of 4 chunks")
        await self._real.commit_publication(tenant, publication, chunks=chunks, vectors=vectors, space=space)
        self.sealed.append(publication)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)
