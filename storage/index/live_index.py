"""Live-only search: shows only publications that SQL calls live after the index was searched.

The index excludes hidden publications. Its hits are compared with the live set, read after the search, and
if a hit is not live, the search is repeated. Measured under constant publication changes and kills, every
weaker rule showed half documents.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Protocol
from uuid import UUID

from storage.errors import IndexUnavailable, UnknownTenant
from storage.index.base import Hit, Index, PendingVector, SearchFilter
from storage.models import Channel, LivePublication
from storage.task_group import gather_or_cancel

# With more hidden publications, no filter is sent and more hits are requested instead.
MAX_HIDDEN = 1000
# A publication that is rejected this often without ever being hidden is an orphan, not a change: a
# publication goes from live to hidden at most once, and is removed only after a grace period longer than any
# search.
ORPHAN_AFTER = 3
MAX_LIMIT = 10_000
MAX_ROUNDS = 30
# Backoff between attempts while publications change: none at first, then doubling.
FIRST_BACKOFF_SECONDS, MAX_BACKOFF_SECONDS = 0.005, 0.1


class LivePublicationLookup(Protocol):
    """Publication states in SQL, as provided by the catalog."""

    async def has_live(self, channel_id: int) -> bool:
        """True if the channel has a live publication."""

    async def hidden(self, channel_id: int) -> frozenset[UUID]:
        """Return the publications that are pending or retired."""

    async def live(self, channel_id: int, ids: Collection[UUID]) -> dict[UUID, LivePublication]:
        """Return those of ``ids`` that are live now."""

    async def rebuild_count(self, channel_id: int) -> int:
        """Return how often a rebuild of the channel's index began or ended; odd while one is running."""


@dataclass(frozen=True, slots=True)
class SearchHits:
    """Hits of live publications only, each leg best first."""

    words: list[Hit] = field(default_factory=list)
    vectors: list[Hit] = field(default_factory=list)
    publications: dict[UUID, LivePublication] = field(default_factory=dict)
    # Publications without vectors in the query's space, found by keywords only.
    words_only: frozenset[UUID] = frozenset()
    # Rejected hits of publications that are not live.
    not_live: int = 0


@dataclass(frozen=True, slots=True)
class _IndexQuery:
    """A search, repeated as often as needed."""

    channel: Channel
    terms: Sequence[str]
    vector: PendingVector | None
    groups: tuple[frozenset[str], ...]
    limit: int


@dataclass(frozen=True, slots=True)
class _Round:
    """Result of one attempt: the hits of both legs, and which of their publications are live."""

    hidden: frozenset[UUID]
    legs: tuple[list[Hit], list[Hit]]
    live: dict[UUID, LivePublication]

    def no_longer_live(self) -> set[UUID]:
        """Return publications of hits that were neither hidden before the search nor live after it."""
        return {hit.publication for leg in self.legs for hit in leg} - self.live.keys() - self.hidden

    def is_short(self, asked: int, limit: int) -> bool:
        """True if rejected hits may have displaced live ones from the result."""
        return any(len(leg) >= asked and len(self._shown(leg)) < limit for leg in self.legs)

    def found(self, limit: int, space: str) -> SearchHits:
        """Return the live hits of a search in this space."""
        words, vectors = (self._shown(leg)[:limit] for leg in self.legs)
        shown = {hit.publication for hit in (*words, *vectors)}
        words_only = frozenset(one for one in shown if self.live[one].space != space)
        not_live = sum(hit.publication not in self.live for leg in self.legs for hit in leg)
        return SearchHits(words, vectors, {one: self.live[one] for one in shown}, words_only, not_live)

    def _shown(self, leg: list[Hit]) -> list[Hit]:
        return [hit for hit in leg if hit.publication in self.live]


class LiveIndex:
    """An index restricted to the live set, for queries of one embedder."""

    def __init__(
        self,
        index: Index,
        live_set: LivePublicationLookup,
        space: str,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Search in ``space``, the vector space of all queries; ``sleep`` is a seam for tests."""
        self._index = index
        self._live_set = live_set
        self._space = space
        self._sleep = sleep

    async def search(
        self,
        channel: Channel,
        terms: Sequence[str],
        vector: PendingVector | None,
        groups: tuple[frozenset[str], ...] = (),
        limit: int = 50,
    ) -> SearchHits:
        """Return the best ``limit`` live chunks by keywords and, given a vector, by vector.

        Keywords are searched while the vector is being computed; an error of its computation is raised here.
        A channel without a tenant finds nothing, and neither does an empty facet group.

        Raises:
            IndexUnavailable: the index is down or late, publications change faster than it answers, the
                tenant of a channel with documents is lost, or the channel's index is being rebuilt.
        """
        if not all(groups):
            return SearchHits()
        asked = _IndexQuery(channel, terms, vector, groups, limit)
        try:
            return await self._find(asked)
        except UnknownTenant as error:
            if await self._live_set.has_live(channel.id):
                raise IndexUnavailable("the index lost the channel's tenant") from error
            return SearchHits()

    async def document_frequencies(
        self, channel: Channel, terms: Collection[str]
    ) -> tuple[int, dict[str, int]]:
        """Return (number of chunks in the channel, chunks per term)."""
        try:
            return await self._index.document_frequencies(channel.tenant, terms)
        except UnknownTenant:
            return 0, dict.fromkeys(terms, 0)

    async def _find(self, asked: _IndexQuery) -> SearchHits:
        falls: Counter[UUID] = Counter()
        wanted, pause = asked.limit, 0.0
        for _ in range(MAX_ROUNDS):
            result = await self._ask(asked, wanted)
            no_longer_live = result.no_longer_live()
            falls.update(no_longer_live)
            if any(falls[one] < ORPHAN_AFTER for one in no_longer_live):
                if pause:
                    await self._sleep(pause)
                pause = min(2 * pause or FIRST_BACKOFF_SECONDS, MAX_BACKOFF_SECONDS)
                continue
            if not result.is_short(wanted, asked.limit) or wanted >= MAX_LIMIT:
                return result.found(asked.limit, self._space)
            wanted = min(2 * wanted, MAX_LIMIT)
        raise IndexUnavailable("the channel's documents change faster than the index answers")

    async def _ask(self, asked: _IndexQuery, limit: int) -> _Round:
        """Search both legs between two SQL queries: hidden publications before, live ones after."""
        hidden = await self._live_set.hidden(asked.channel.id)
        rebuilds = await self._live_set.rebuild_count(asked.channel.id)
        filters = SearchFilter(asked.groups, hidden if len(hidden) <= MAX_HIDDEN else frozenset())
        tenant = asked.channel.tenant
        words, vectors = await gather_or_cancel(
            self._index.search_keywords(tenant, asked.terms, filters, limit),
            self._by_vector(asked, filters, limit),
        )
        # The count is odd during a rebuild and differs after one: the hits may be incomplete.
        if rebuilds % 2 or rebuilds != await self._live_set.rebuild_count(asked.channel.id):
            raise IndexUnavailable("the channel's index is being rebuilt")
        ids = {hit.publication for hit in (*words, *vectors)}
        return _Round(hidden, (words, vectors), await self._live_set.live(asked.channel.id, ids))

    async def _by_vector(self, asked: _IndexQuery, filters: SearchFilter, limit: int) -> list[Hit]:
        if asked.vector is None:
            return []
        vector = await asked.vector
        return await self._index.search_vectors(asked.channel.tenant, self._space, vector, filters, limit)
