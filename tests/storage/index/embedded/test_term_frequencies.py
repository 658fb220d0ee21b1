"""Term frequencies: cached per state of the tenant file; BM25 counts repeated terms."""

from __future__ import annotations

from contextlib import aclosing
from pathlib import Path
from uuid import uuid4

import pytest
from samples.indexes import chunk, new_tenant

from storage.index.base import SearchFilter
from storage.index.embedded.index import EmbeddedIndex


async def test_changes_by_another_process_are_counted_at_once(tmp_path: Path) -> None:
    """Shows that cached counts hold only for the state of the file they were taken from."""
    tenant, first, second = new_tenant(), uuid4(), uuid4()
    async with aclosing(EmbeddedIndex(tmp_path, 10)) as one, aclosing(EmbeddedIndex(tmp_path, 10)) as another:
        await one.ensure_tenant(tenant)
        await one.write(tenant, [chunk(first, 0, "backup"), chunk(first, 1, "lunch")])
        assert await one.document_frequencies(tenant, ["backup"]) == (2, {"backup": 1})
        await another.write(tenant, [chunk(second, 0, "backup tape")])
        assert await one.document_frequencies(tenant, ["tape", "backup"]) == (3, {"tape": 1, "backup": 2})
        await another.remove(tenant, first, 2)
        assert await one.document_frequencies(tenant, ["backup", "lunch"]) == (1, {"backup": 1, "lunch": 0})
        await another.drop_tenant(tenant)
        await another.ensure_tenant(tenant)
        assert await one.document_frequencies(tenant, ["backup"]) == (0, {"backup": 0})


async def test_term_frequency_counts_every_occurrence(tmp_path: Path) -> None:
    """Shows that adjacent repetitions count, and words within words do not."""
    tenant, publication = new_tenant(), uuid4()
    texts = ["tape tape tape rest", "tape rest lamp other", "tapered lamp rest other"]
    async with aclosing(EmbeddedIndex(tmp_path, 10)) as index:
        await index.ensure_tenant(tenant)
        await index.write(tenant, [chunk(publication, place, text) for place, text in enumerate(texts)])
        hits = await index.search_keywords(tenant, ["tape"], SearchFilter(), 5)
    assert [hit.ordinal for hit in hits] == [0, 1]
    scores = [hit.score for hit in hits]
    assert scores[0] / scores[1] == pytest.approx((3 / (3 + 1.2)) / (1 / (1 + 1.2)), rel=1e-6)
