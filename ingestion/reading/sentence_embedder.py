"""Sentence embedder: precomputes the vectors of quotable sentences, so that no question waits for them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from storage.crash_points import reach
from storage.embeddings.base import Embedder
from storage.embeddings.quantized_vectors import ChunkSentenceVectors, Int8Vectors, TextRange, quantize
from storage.embeddings.vector_cache import VectorCache
from storage.text.sentences import quotables

# A sentence costs about a quarter of a chunk, so this many embedder batches go into one call.
BATCH_CONCURRENCY = 4


@dataclass(frozen=True, slots=True)
class _Split:
    """A chunk's text and the ranges of its quotable parts."""

    text: str
    spans: tuple[TextRange, ...]


class SentenceEmbedder:
    """Embeds quotable sentences with one embedder; cached vectors survive a crash."""

    def __init__(self, embedder: Embedder, cache: VectorCache) -> None:
        self._embedder = embedder
        self._cache = cache
        self._batch_size = BATCH_CONCURRENCY * embedder.batch

    async def embed(
        self, texts: Sequence[str], wait_until_idle: Callable[[], Awaitable[object]]
    ) -> list[ChunkSentenceVectors]:
        """Return the vectors of every chunk's quotable parts, in chunk order.

        Raises:
            EmbedderUnavailable: the embedder fails.
            DatabaseUnavailable: the database fails.
        """
        found: list[ChunkSentenceVectors] = []
        portions = _portions(texts, self._batch_size)
        while portion := await asyncio.to_thread(next, portions, None):
            parts = [one.text[start:end] for one in portion for start, end in one.spans]
            vectors = await self._vectors(parts, wait_until_idle)
            start = 0
            for one in portion:
                some = vectors[start : start + len(one.spans)]
                found.append(ChunkSentenceVectors.create(self._embedder.space, one.text, one.spans, some))
                start += len(one.spans)
        return found

    async def _vectors(
        self, parts: Sequence[str], wait_until_idle: Callable[[], Awaitable[object]]
    ) -> Int8Vectors:
        """Return the quantised vectors, made in batches so that urgent work comes first."""
        made = [np.zeros((0, self._embedder.dimensions), np.float32)]
        for start in range(0, len(parts), self._batch_size):
            await wait_until_idle()
            made.append(await self._cache.embed(self._embedder, parts[start : start + self._batch_size]))
            reach("after-vectors")
        return quantize(np.concatenate(made))


def _portions(texts: Sequence[str], most: int) -> Iterator[list[_Split]]:
    """Yield runs of chunks with at least ``most`` quotable parts in total; the last may have fewer."""
    portion: list[_Split] = []
    for text in texts:
        portion.append(_Split(text, tuple(dict.fromkeys((one.start, one.end) for one in quotables(text)))))
        if sum(len(one.spans) for one in portion) >= most:
            yield portion
            portion = []
    if portion:
        yield portion
