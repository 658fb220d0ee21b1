"""Live index: queries see only live publications while these are published, replaced and removed."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator
from itertools import repeat
from uuid import UUID, uuid4

import pytest
from fakes.faulty_index import FaultyIndex
from harness.waiting import PATIENCE, ready
from samples.indexes import SPACE, axis, chunk, new_tenant

from storage.errors import IndexUnavailable
from storage.index import live_index as live_module
from storage.index.base import Hit, Index
from storage.index.live_index import LiveIndex, SearchHits
from storage.models import Channel, LivePublication, Platform, Rung, TenantName

# Concurrent clients, and queries of each.
ASKERS, QUESTIONS = 4, 50


class Publications:
    """An in-memory set of live publications, as the catalog reads from SQL."""

    def __init__(self) -> None:
        self.states: dict[UUID, str] = {}
        self.rebuilds: Iterator[int] = repeat(0)

    async def has_live(self, channel_id: int) -> bool:
        """True if any publication is live."""
        return "live" in self.states.values()

    async def hidden(self, channel_id: int) -> frozenset[UUID]:
        """Return the pending and retired publications."""
        await asyncio.sleep(0)
        return frozenset(one for one, state in self.states.items() if state in ("pending", "retired"))

    async def live(self, channel_id: int, ids: Collection[UUID]) -> dict[UUID, LivePublication]:
        """Return the live ones among ``ids``."""
        await asyncio.sleep(0)
        return {one: published(one) for one in ids if self.states.get(one) == "live"}

    async def rebuild_count(self, channel_id: int) -> int:
        """Return the next count that the test has set."""
        await asyncio.sleep(0)
        return next(self.rebuilds)

    def flip(self, new: UUID, old: UUID) -> None:
        """Make the new publication live and the old one retired in one step."""
        self.states.update({new: "live", old: "retired"})


def published(publication: UUID) -> LivePublication:
    """Return a live publication of some document."""
    return LivePublication(
        id=publication,
        channel_id=1,
        document_id=UUID(int=1),
        version_id=1,
        reading_id=UUID(int=2),
        sha256="0" * 64,
        rung=Rung.FULL,
        file="a.pdf",
        title="A",
        pages=1,
        chunks=4,
    )


@pytest.fixture
def channel(tenant: TenantName) -> Channel:
    """The tenant's channel."""
    return Channel(1, tenant, Platform.LOCAL, "it", 1)


async def write(index: Index, tenant: TenantName, publication: UUID, chunks: int = 4) -> None:
    """Write and seal a publication, as the publisher does before the flip."""
    written = [
        chunk(publication, place, f"backup {place}", vector=axis(place % 8)) for place in range(chunks)
    ]
    await index.write(tenant, written)
    await index.commit_publication(tenant, publication, chunks=chunks, vectors=chunks, space=SPACE)


def shown(found: SearchHits) -> set[tuple[UUID, int]]:
    """Return the publications with their number of hits by words."""
    ids = [hit.publication for hit in found.words]
    return {(one, ids.count(one)) for one in ids}


async def test_only_live_publications_are_found(index: Index, channel: Channel) -> None:
    """Pending, retired, removed and unregistered publications are hidden in both legs."""
    states = Publications()
    for state in ("pending", "retired", "removed", "live", None):
        publication = uuid4()
        await write(index, channel.tenant, publication)
        states.states |= {publication: state} if state else {}
    found = await LiveIndex(index, states, SPACE).search(channel, ["backup"], ready(axis(0)), limit=50)
    (live,) = (one for one, state in states.states.items() if state == "live")
    assert shown(found) == {(live, 4)}
    assert {hit.publication for hit in found.vectors} == {live} == set(found.publications)
    assert found.not_live == 16  # of the two that are not listed as hidden, in both legs


async def test_a_channel_without_a_tenant_has_no_hits(index: Index) -> None:
    """A channel without publications is empty, not an error."""
    channel = Channel(1, new_tenant(), Platform.LOCAL, "new", 1)
    live = LiveIndex(index, Publications(), SPACE)
    assert await live.search(channel, ["backup"], ready(axis(0)), limit=5) == SearchHits()
    assert await live.document_frequencies(channel, ["backup"]) == (0, {"backup": 0})


@pytest.mark.parametrize(
    ("counts", "is_answered"),
    [((2, 2), True), ((1, 1), False), ((0, 1), False), ((1, 2), False), ((0, 2), False)],
    ids=["over before", "goes on", "began", "ended", "began and ended"],
)
async def test_no_query_is_answered_during_a_rebuild(
    index: Index, channel: Channel, counts: tuple[int, int], is_answered: bool
) -> None:
    """Shows that a rebuild overlapping the query is detected, however complete the index was."""
    states, live = Publications(), uuid4()
    await write(index, channel.tenant, live)
    states.states[live], states.rebuilds = "live", iter(counts)
    asked = LiveIndex(index, states, SPACE).search(channel, ["backup"], None, limit=5)
    if is_answered:
        assert shown(await asked) == {(live, 4)}
    else:
        with pytest.raises(IndexUnavailable, match="being rebuilt"):
            await asked


async def test_hits_that_are_not_live_do_not_use_up_the_limit(index: Index, channel: Channel) -> None:
    """Shows that the query is repeated with a larger limit until enough live hits are found."""
    states, live, ghost = Publications(), uuid4(), uuid4()
    await index.write(channel.tenant, [chunk(ghost, place, "backup") for place in range(40)])
    await index.write(channel.tenant, [chunk(live, place, f"backup {place} of more") for place in range(5)])
    states.states[live] = "live"
    found = await LiveIndex(index, states, SPACE).search(channel, ["backup"], None, limit=5)
    assert shown(found) == {(live, 5)}


async def test_too_many_hidden_publications_are_filtered_afterwards(index: Index, channel: Channel) -> None:
    """Above MAX_HIDDEN the limit is doubled until the live chunks are found."""
    states, live = Publications(), uuid4()
    states.states = {uuid4(): "retired" for _ in range(live_module.MAX_HIDDEN)}
    retired = [uuid4() for _ in range(30)]
    states.states |= dict.fromkeys(retired, "retired") | {live: "live"}
    await index.write(channel.tenant, [chunk(one, 0, "backup") for one in retired])
    await index.write(channel.tenant, [chunk(live, 0, "backup of other things")])
    found = await LiveIndex(index, states, SPACE).search(channel, ["backup"], None, limit=3)
    assert shown(found) == {(live, 1)}


async def test_queries_see_exactly_one_version_under_constant_flips(index: Index, channel: Channel) -> None:
    """Shows that each of some hundred queries sees exactly one complete publication."""
    states, live_now = Publications(), uuid4()
    await write(index, channel.tenant, live_now)
    states.states[live_now] = "live"
    live, ended = LiveIndex(index, states, SPACE), asyncio.Event()
    answered = 0

    async def replace_again_and_again() -> int:
        current, flips = live_now, 0
        async with asyncio.timeout(PATIENCE):
            while not ended.is_set() or flips < 20:
                new = uuid4()
                states.states[new] = "pending"
                await write(index, channel.tenant, new)
                while answered < ASKERS * flips and not ended.is_set():
                    await asyncio.sleep(0.001)  # flipping faster than anyone queries would leave no answer
                states.flip(new, current)
                current, flips = new, flips + 1
        return flips

    async def ask_again_and_again() -> list[set[tuple[UUID, int]]]:
        nonlocal answered
        found = []
        for _ in range(QUESTIONS):
            found.append(shown(await live.search(channel, ["backup"], ready(axis(0)), limit=50)))
            answered += 1
        return found

    flipping = asyncio.create_task(replace_again_and_again())
    seen = [
        one
        for batch in await asyncio.gather(*(ask_again_and_again() for _ in range(ASKERS)))
        for one in batch
    ]
    ended.set()
    assert await flipping >= 20
    assert [len(one) for one in seen] == [1] * QUESTIONS * ASKERS
    assert {count for one in seen for _, count in one} == {4}


class Restless(Publications):
    """Publications that are retired whenever they are checked."""

    async def live(self, channel_id: int, ids: Collection[UUID]) -> dict[UUID, LivePublication]:
        """Retire them and return none."""
        self.states.update(dict.fromkeys(ids, "retired"))
        return {}


async def test_a_channel_that_always_changes_ends_in_an_error(index: Index, channel: Channel) -> None:
    """Shows that retries are bounded and back off."""
    for _ in range(live_module.MAX_ROUNDS):
        await index.write(channel.tenant, [chunk(uuid4(), 0, "backup")])
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    with pytest.raises(IndexUnavailable):
        await LiveIndex(index, Restless(), SPACE, sleep).search(channel, ["backup"], None, limit=1)
    assert len(pauses) == live_module.MAX_ROUNDS - 1
    assert pauses == sorted(pauses)
    assert pauses[-1] == live_module.MAX_BACKOFF_SECONDS


class HalfFailing(FaultyIndex):
    """A real index whose word search fails while its vector search hangs."""

    is_cancelled = False

    async def search_keywords(self, *_: object) -> list[Hit]:
        await asyncio.sleep(0)
        raise IndexUnavailable("the index does not answer")

    async def search_vectors(self, *_: object) -> list[Hit]:
        """Hang until cancelled."""
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.is_cancelled = True
            raise
        return []


async def test_a_failed_word_search_cancels_the_vector_search(index: Index, channel: Channel) -> None:
    """Shows that the original error is raised, and that no task of the query stays behind."""
    failing = HalfFailing(index)
    with pytest.raises(IndexUnavailable, match="does not answer"):
        await LiveIndex(failing, Publications(), SPACE).search(channel, ["backup"], ready(axis(0)), limit=1)
    assert failing.is_cancelled
