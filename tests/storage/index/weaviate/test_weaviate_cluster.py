"""Three real Weaviate nodes: each has a replica of everything, and one of them may be down."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from engines.weaviate import RealWeaviate, cluster
from harness.waiting import until
from samples.indexes import SPACE, axis, chunk, new_tenant

from storage.errors import IndexUnavailable
from storage.index.base import SearchFilter
from storage.index.weaviate.status import read_status

NODES = 3
pytestmark = [pytest.mark.engine("weaviate"), pytest.mark.long]


@pytest.fixture
async def nodes(tmp_path: Path) -> AsyncIterator[list[RealWeaviate]]:
    """A cluster whose nodes are ready."""
    async with cluster(tmp_path, [f"node{number}" for number in range(NODES)]) as servers:
        yield servers


async def test_a_replicated_channel_survives_the_loss_of_a_node(
    nodes: list[RealWeaviate],
) -> None:
    """FOOTNOTE_WEAVIATE_REPLICAS=3: with one node killed, reads and writes still work.

    Until the other nodes notice the failure, calls may be late and are retried, as `serve` does.
    """
    index = await nodes[0].connect(replicas=NODES)
    tenant, kept = new_tenant(), uuid4()
    await index.ensure_tenant(tenant)

    async def write(publication: UUID, direction: int) -> None:
        await index.write(tenant, [chunk(publication, 0, "marzipan", vector=axis(direction))])
        await index.commit_publication(tenant, publication, chunks=1, vectors=1, space=SPACE)

    async def is_kept() -> bool:
        with suppress(IndexUnavailable):
            near = await index.search_vectors(tenant, SPACE, axis(1), SearchFilter(), 1)
            words = await index.search_keywords(tenant, ["marzipan"], SearchFilter(), 9)
            return kept in {hit.publication for hit in words} and near[0].publication == kept
        return False

    async def is_another_written() -> bool:
        with suppress(IndexUnavailable):
            await write(uuid4(), 2)
            return True
        return False

    try:
        status = await read_status(nodes[0].url, nodes[0].api_key, nodes[0].grpc_port, 10)
        assert (len(status.nodes), status.replicas) == (NODES, NODES)
        await write(kept, 1)
        nodes[2].kill()
        await until(is_another_written)
        await until(is_kept)
    finally:
        await index.aclose()
