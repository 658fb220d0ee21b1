"""Verification after index outages: live publications are recounted, and none is ever partly live."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from engines.weaviate import RealWeaviate
from fakes.faulty_index import FaultyIndex
from harness.clocks import advance_clocks
from harness.ingestion_home import Home, open_home
from harness.waiting import PATIENCE
from samples.paper import pdf

from ingestion.publish.reconciler import MIN_INTERVAL_SECONDS, Verifier
from storage.embeddings.onnx_embedder import BundledEmbedder
from storage.errors import IndexUnavailable
from storage.index.base import IndexedChunk, SearchFilter, object_id
from storage.index.weaviate.collection import COLLECTION, make_client
from storage.index.weaviate.index import WeaviateIndex
from storage.models import LivePublication, Rung, TenantName
from storage.queues.publication_queue import PublicationQueue
from storage.sql.leased_queue import LeasedQueue
from storage.sql.tables import PublicationRow

needs_weaviate = pytest.mark.engine("weaviate")

LEAVE = pdf("Leave\nEmployees get twenty five days of marzipan leave a year.")
LONG = pdf(*(f"Chapter {page}\nThe marzipan of chapter {page} is kept in room {page}." for page in range(40)))


class KilledIndex(FaultyIndex):
    """A real index whose server is killed between writes and seal, once per rung."""

    def __init__(self, real: WeaviateIndex, server: RealWeaviate) -> None:
        super().__init__(real)
        self._server = server
        self._spared = set(Rung)
        self.is_killed = asyncio.Event()

    async def commit_publication(
        self, tenant: TenantName, publication: UUID, *, chunks: int, vectors: int, space: str | None = None
    ) -> None:
        """Kill the server before sealing."""
        rung = Rung.FULL if vectors else Rung.QUICK
        if rung in self._spared and not self.is_killed.is_set():
            self._spared.remove(rung)
            await asyncio.to_thread(self._server.kill)
            self.is_killed.set()
        await super().commit_publication(tenant, publication, chunks=chunks, vectors=vectors, space=space)


@pytest.fixture
async def killed_index(weaviate: RealWeaviate) -> AsyncIterator[KilledIndex]:
    """The index of a server that ``commit_publication`` kills; restarted at the end."""
    real = await weaviate.connect(3)
    index = KilledIndex(real, weaviate)
    yield index
    if index.is_killed.is_set():
        weaviate.start()
    await real.aclose()


@pytest.fixture
async def weaviate_home(
    weaviate: RealWeaviate, tmp_path: Path, embedder: BundledEmbedder
) -> AsyncIterator[Home]:
    """A new home on a real Weaviate server; the test names its channels."""
    async with open_home(tmp_path / "home", embedder, await weaviate.connect()) as made:
        yield made


def verifier(home: Home) -> Verifier:
    """Return a separate verifier of this home."""
    return Verifier(PublicationQueue(LeasedQueue(home.database, PublicationRow, "verifier", 5)), home.index)


async def held(home: Home, channel: str, live: LivePublication) -> tuple[int, int]:
    """Return the chunks of a publication that are found by words and by vectors."""
    tenant = (await home.channel(channel)).tenant
    vector = (await home.embedder.aembed(["marzipan"]))[0].tolist()
    words = await home.index.search_keywords(tenant, ["marzipan"], SearchFilter(), 500)
    vectors = await home.index.search_vectors(tenant, home.embedder.space, vector, SearchFilter(), 500)
    return sum(hit.publication == live.id for hit in words), sum(
        hit.publication == live.id for hit in vectors
    )


async def until_answering(home: Home) -> None:
    """Wait until the client has reconnected."""

    async def is_answering() -> bool:
        with suppress(IndexUnavailable):
            await home.index.ping()
            return True
        return False

    await home.until(is_answering)


async def damage(server: RealWeaviate, tenant: TenantName, publication: UUID, what: str) -> None:
    """Delete one object, or its vector alone, behind the service's back."""
    client = make_client(server.url, server.api_key, server.grpc_port, 10)
    await client.connect()
    data: Any = client.collections.use(COLLECTION).with_tenant(tenant).data
    await data.delete_by_id(object_id(tenant, publication, 3))
    if what == "vector":
        bare = IndexedChunk(publication, 3, "marzipan", "Bare.", 4, 4, (), ())
        index = await server.connect()
        await index.write(tenant, [bare])
        await index.aclose()
    await client.close()


@needs_weaviate
@pytest.mark.parametrize("what", [pytest.param("object", marks=pytest.mark.long), "vector"])
async def test_a_damaged_publication_is_replaced_without_a_gap(
    weaviate: RealWeaviate, weaviate_home: Home, what: str
) -> None:
    """Shows that damage is detected at startup, and that the complete successor has a new id."""
    home, channel = weaviate_home, f"hr {uuid4().hex}"
    serving = await home.serve()
    home.drop(f"{channel}/leave.pdf", LONG)
    before = await home.until_found(channel, "marzipan", "leave.pdf", Rung.FULL)
    assert await held(home, channel, before) == (before.chunks, before.chunks)
    await serving.stop()
    await damage(weaviate, (await home.channel(channel)).tenant, before.id, what)
    assert min(await held(home, channel, before)) == before.chunks - 1
    await home.serve()

    async def is_replaced() -> bool:
        found = (await home.find(channel, "marzipan")).get("leave.pdf", before)
        return found.id != before.id  # none when the flip falls between index and SQL: try again

    await home.until(is_replaced)
    after = (await home.find(channel, "marzipan"))["leave.pdf"]
    assert await held(home, channel, after) == (before.chunks, before.chunks)
    assert after.version_id == before.version_id


@pytest.mark.long
@needs_weaviate
async def test_a_killed_server_never_makes_half_a_document_live(
    weaviate: RealWeaviate, weaviate_home: Home, killed_index: KilledIndex
) -> None:
    """Covers a kill while publishing each rung."""
    home, channel = weaviate_home, f"hr {uuid4().hex}"
    home.index = killed_index
    await home.serve(retire_grace_seconds=60)
    home.drop(f"{channel}/leave.pdf", LONG)
    for possible in ({None}, {None, Rung.QUICK}):
        await asyncio.wait_for(killed_index.is_killed.wait(), PATIENCE)
        assert {one.rung for one in (await home.documents(channel)).values()} <= possible
        await asyncio.to_thread(weaviate.start)
        killed_index.is_killed.clear()
    await until_answering(home)

    async def is_full_and_never_half() -> bool:
        live = (await home.find(channel, "marzipan")).get("leave.pdf")
        if live is None:
            return False
        is_full = live.rung is Rung.FULL
        assert await held(home, channel, live) == (live.chunks, live.chunks if is_full else 0)
        return is_full

    await home.until(is_full_and_never_half)
    states = [row.state for row in await home.rows(PublicationRow)]
    assert states.count("live") == 1
    assert states.count("retired") >= 2


async def test_publications_are_recounted_at_start_and_after_outages(home: Home) -> None:
    """A tick in between costs a ping only."""
    serving = await home.serve(stop_at="quick")
    home.drop("hr/leave.pdf", LEAVE)
    live = await home.until_found("hr", "marzipan", "leave.pdf")
    await serving.stop()
    home.index.sealed.clear()
    verifying = verifier(home)
    for passed, (outages, counted) in enumerate(((0, 1), (0, 1), (1, 2), (1, 2)), start=1):
        home.index.outages = outages
        with advance_clocks(timedelta(seconds=MIN_INTERVAL_SECONDS * passed)):
            await verifying.tick()
        assert home.index.sealed == [live.id] * counted


async def test_recounting_pauses_even_after_a_failure(home: Home) -> None:
    """Shows that an index too slow to be counted is not counted again at the next tick."""
    serving = await home.serve(stop_at="quick")
    home.drop("hr/leave.pdf", LEAVE)
    live = await home.until_found("hr", "marzipan", "leave.pdf")
    await serving.stop()
    home.index.sealed.clear()
    home.index.is_late = True
    verifying = verifier(home)
    with pytest.raises(IndexUnavailable):
        await verifying.tick()
    home.index.is_late = False
    await verifying.tick()
    assert home.index.sealed == []
    with advance_clocks(timedelta(seconds=MIN_INTERVAL_SECONDS)):
        await verifying.tick()
    assert home.index.sealed == [live.id]


async def test_a_loss_is_republished_once_however_often_detected(home: Home) -> None:
    """Shows that two processes create one successor, and that the old publication stays live."""
    serving = await home.serve(stop_at="quick")
    home.drop("hr/leave.pdf", LEAVE)
    live = await home.until_found("hr", "marzipan", "leave.pdf")
    await serving.stop()
    home.index.loses = 2
    await verifier(home).tick()
    await verifier(home).tick()
    states = [row.state for row in await home.rows(PublicationRow)]
    assert sorted(states) == ["live", "pending"]
    assert (await home.find("hr", "marzipan"))["leave.pdf"].id == live.id


async def test_publications_of_a_missing_tenant_are_republished(home: Home) -> None:
    """Covers a tenant lost as after restoring an old backup."""
    serving = await home.serve(stop_at="quick")
    home.drop("hr/leave.pdf", LEAVE)
    before = await home.until_found("hr", "marzipan", "leave.pdf")
    await serving.stop()
    await home.index.drop_tenant((await home.channel("hr")).tenant)
    await home.serve(stop_at="quick")
    assert (await home.until_found("hr", "marzipan", "leave.pdf")).id != before.id
