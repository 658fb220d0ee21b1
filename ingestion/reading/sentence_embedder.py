"""Sentence embedder: precomputes the vectors of quotable sentences, so that no question waits for them.

A row of a table is embedded below its heading: "Hotel  180" says nothing of "Trips abroad".
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from storage.crash_points import reach
from storage.embeddings.base import Embedder
from storage.embeddings.quantized_vectors import ChunkSentenceVectors, Int8Vectors, TextRange, quantize
from storage.embeddings.vector_cache import VectorCache
from storage.models import Chunk
from storage.text.sentences import Quotable, quotables

# A sentence costs about a quarter of a chunk, so this many embedder batches go into one call.
BATCH_CONCURRENCY = 4


@dataclass(frozen=True, slots=True)
class _Split:
    """A chunk's text, the ranges of its quotable parts, and what is embedded for each of them."""

    text: str
    parts: Mapping[TextRange, str]


class SentenceEmbedder:
    """Embeds quotable sentences with one embedder; cached vectors survive a crash."""

    def __init__(self, embedder: Embedder, cache: VectorCache) -> None:
        self._embedder = embedder
        self._cache = cache
        self._batch_size = BATCH_CONCURRENCY * embedder.batch

    async def embed(
        self,
        chunks: Sequence[Chunk],
        wait_until_idle: Callable[[], Awaitable[object]],
        report: Callable[[int], Awaitable[object]],
    ) -> list[ChunkSentenceVectors]:
        """Return the vectors of every chunk's quotable parts, in chunk order.

        Args:
            chunks: with or without their words.
            report: called with the number of chunks done.

        Raises:
            EmbedderUnavailable: the embedder fails.
            DatabaseUnavailable: the database fails.
        """
        found: list[ChunkSentenceVectors] = []
        portions = _portions(chunks, self._batch_size)
        while portion := await asyncio.to_thread(next, portions, None):
            vectors = await self._vectors(
                [part for one in portion for part in one.parts.values()], wait_until_idle
            )
            start = 0
            for one in portion:
                some = vectors[start : start + len(one.parts)]
                found.append(
                    ChunkSentenceVectors.create(self._embedder.space, one.text, tuple(one.parts), some)
                )
                start += len(one.parts)
            await report(len(found))
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


def _portions(chunks: Sequence[Chunk], most: int) -> Iterator[list[_Split]]:
    """Yield runs of chunks with at least ``most`` quotable parts in total; the last may have fewer."""
    portion: list[_Split] = []
    for chunk in chunks:
        parts = {(one.start, one.end): _embedded(chunk, one) for one in quotables(chunk.text)}
        portion.append(_Split(chunk.text, parts))
        if sum(len(one.parts) for one in portion) >= most:
            yield portion
            portion = []
    if portion:
        yield portion


def _embedded(chunk: Chunk, part: Quotable) -> str:
    """Return the text of a part as it is embedded: a row below its innermost heading."""
    headings = chunk.section_at(part.start) if part.is_row else ()
    return f"{headings[-1]}\n{part.text}" if headings else part.text
