"""Vector cache: keyed by space and text, with a TTL."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from harness.clocks import shift_wall_clock
from sqlalchemy import func, select

from storage.embeddings.base import Vectors
from storage.embeddings.vector_cache import VectorCache
from storage.errors import EmbedderUnavailable
from storage.sql.database import Database
from storage.sql.tables import CachedVectorRow


class Counting:
    """A counting embedder; its vectors encode its space and the text's length."""

    def __init__(self, space: str = "counting_1", dimensions: int = 3) -> None:
        self.id = self.space = space
        self.dimensions = dimensions
        self.window, self.batch = 256, 16
        self.tokenizer: Path | None = None
        self.asked: list[str] = []
        self.fails = False

    def count(self, text: str) -> int:
        return len(text.split())

    async def aembed(self, texts: Sequence[str]) -> Vectors:
        if self.fails:
            raise EmbedderUnavailable("down")
        self.asked += texts
        made = [[len(text), len(self.space), *[1.0] * (self.dimensions - 2)] for text in texts]
        return np.array(made, dtype=np.float32)

    async def aclose(self) -> None:
        pass


async def count_rows(database: Database) -> int:
    """Return the number of cached vectors."""
    async with database.snapshot() as session:
        return (await session.execute(select(func.count()).select_from(CachedVectorRow))).scalar_one()


async def test_a_text_is_embedded_once(database: Database) -> None:
    """Shows that repeated texts are cached within a call, across calls and across processes."""
    embedder = Counting()
    first = await VectorCache(database).embed(embedder, ["a", "bb", "a"])
    np.testing.assert_array_equal(first, [[1, 10, 1], [2, 10, 1], [1, 10, 1]])
    again = await VectorCache(database).embed(embedder, ["bb", "ccc", "a"])
    np.testing.assert_array_equal(again, [[2, 10, 1], [3, 10, 1], [1, 10, 1]])
    assert embedder.asked == ["a", "bb", "ccc"]
    assert again.dtype == np.float32


async def test_a_text_has_a_separate_vector_in_every_space(database: Database) -> None:
    """Shows that two embedders never get each other's vectors."""
    cache, one, other = VectorCache(database), Counting("one"), Counting("another", 4)
    await cache.embed(one, ["a"])
    np.testing.assert_array_equal(await cache.embed(other, ["a"]), [[1, 7, 1, 1]])
    assert (one.asked, other.asked) == (["a"], ["a"])


async def test_a_cached_vector_of_another_length_is_recomputed(database: Database) -> None:
    """Shows that a model replaced under the same name does no harm."""
    cache = VectorCache(database)
    await cache.embed(Counting("same", 3), ["a"])
    longer = Counting("same", 5)
    assert (await cache.embed(longer, ["a"])).shape == (1, 5)
    assert (await cache.embed(longer, ["a"])).shape == (1, 5)
    assert longer.asked == ["a"]


async def test_cached_vectors_need_no_embedder(database: Database) -> None:
    """Shows that a full reading continues from the cache during an outage, up to the first new text."""
    cache, embedder = VectorCache(database), Counting()
    await cache.embed(embedder, ["a", "bb"])
    embedder.fails = True
    assert (await cache.embed(embedder, ["bb", "a"])).shape == (2, 3)
    with pytest.raises(EmbedderUnavailable):
        await cache.embed(embedder, ["a", "new"])


async def test_vectors_unused_for_a_month_expire(database: Database) -> None:
    """Shows that each use extends the TTL of 30 days."""
    cache, embedder = VectorCache(database), Counting()
    await cache.embed(embedder, ["used", "unused"])
    with shift_wall_clock(timedelta(days=20)):
        await cache.embed(embedder, ["used"])
        assert await cache.prune() == 0
    with shift_wall_clock(timedelta(days=31)):
        assert await cache.prune() == 1
        await cache.embed(embedder, ["used"])
    assert embedder.asked == ["used", "unused"]
    assert await count_rows(database) == 1


async def test_sentence_vectors_are_quantized_and_expire_after_a_day(database: Database) -> None:
    """Shows that they are cached apart from chunks, and no longer than a reading may take."""
    cache, chunks, embedder = VectorCache(database, of_sentences=True), VectorCache(database), Counting()
    made = await cache.embed(embedder, ["a", "a", "bb"])
    again = await VectorCache(database, of_sentences=True).embed(embedder, ["bb", "a"])
    assert embedder.asked == ["a", "bb"]
    np.testing.assert_allclose(again[1], made[0] / np.linalg.norm(made[0]), atol=0.01)
    await chunks.embed(embedder, ["a"])
    assert embedder.asked == ["a", "bb", "a"]
    async with database.snapshot() as session:
        sizes = {row.space: len(row.vector) for row in await session.scalars(select(CachedVectorRow))}
    assert sizes == {"counting_1/sentences": 3, "counting_1": 12}
    with shift_wall_clock(timedelta(hours=20)):
        await cache.embed(embedder, ["a"])
        assert await cache.prune() == 0
    with shift_wall_clock(timedelta(hours=30)):
        assert await cache.prune() == 2
    assert await count_rows(database) == 1
