"""Several processes share one embedded tenant."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from uuid import UUID, uuid4

from samples.indexes import SPACE, axis, chunk, new_tenant

from storage.index.base import SearchFilter
from storage.index.embedded.index import EmbeddedIndex

OTHER = """
import asyncio, sys
from pathlib import Path
from uuid import UUID
from storage.index.base import IndexedChunk
from storage.index.embedded.index import EmbeddedIndex
from storage.models import TenantName

async def main(folder, tenant, publication, work):
    index, tenant, publication = EmbeddedIndex(Path(folder), 10), TenantName(tenant), UUID(publication)
    if work == "remove":
        await index.remove(tenant, publication, 0)
    else:
        for place in range(50):
            vector, space = [0.0, 1.0] + [0.0] * 6, "onnx_0123456789abcdef"
            one = IndexedChunk(publication, place, "tape", "t", 1, 1, (), (), vector, space)
            await index.write(tenant, [one])
    await index.aclose()

asyncio.run(main(*sys.argv[1:]))
"""


async def in_another_process(folder: Path, tenant: str, publication: UUID, work: str) -> None:
    """Write or remove a publication of 50 chunks in a child process."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", OTHER, str(folder), tenant, str(publication), work
    )
    assert await process.wait() == 0


async def test_two_processes_write_at_once_without_loss(tmp_path: Path) -> None:
    """Shows that writers wait for each other, and that the other process's vectors are found."""
    index, tenant, ours, theirs = EmbeddedIndex(tmp_path, 10), new_tenant(), uuid4(), uuid4()
    await index.ensure_tenant(tenant)
    other = asyncio.create_task(in_another_process(tmp_path, tenant, theirs, "write"))
    for place in range(200):
        await index.write(tenant, [chunk(ours, place, "disk", vector=axis(0))])
        await index.search_vectors(tenant, SPACE, axis(1), SearchFilter(), 500)
    await other
    assert await index.publications(tenant) == {ours: 200, theirs: 50}
    hits = await index.search_vectors(tenant, SPACE, axis(1), SearchFilter(), 500)
    assert [hit.publication for hit in hits[:50]] == [theirs] * 50
    assert len(hits) == 250
    assert len(await index.search_keywords(tenant, ["tape"], SearchFilter(), 500)) == 50
    await index.aclose()


async def test_a_removal_by_another_process_updates_our_matrix(tmp_path: Path) -> None:
    """Shows that the vector matrix in memory is reloaded when the file has changed."""
    index, tenant, kept, gone = EmbeddedIndex(tmp_path, 10), new_tenant(), uuid4(), uuid4()
    await index.ensure_tenant(tenant)
    await index.write(tenant, [chunk(one, 0, "disk", vector=axis(0)) for one in (kept, gone)])
    assert len(await index.search_vectors(tenant, SPACE, axis(0), SearchFilter(), 5)) == 2
    await in_another_process(tmp_path, tenant, gone, "remove")
    hits = await index.search_vectors(tenant, SPACE, axis(0), SearchFilter(), 5)
    assert [hit.publication for hit in hits] == [kept]
    await index.aclose()
