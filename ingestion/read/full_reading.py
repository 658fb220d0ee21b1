"""The full rung: a quick reading's pages and chunks, with vectors."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence

import numpy as np

from storage.clock import steady_seconds
from storage.crash_points import reach
from storage.embedding import Embedder, Vectors
from storage.errors import BlobsUnavailable, EmbedderUnavailable, LostReading
from storage.leases import pause
from storage.models import Rung
from storage.reading_work import Made, ReadingClaim, ReadingWork
from storage.readings import ReadingFiles
from storage.vector_cache import VectorCache


class FullReader:
    """Carries out claimed full readings; one that is killed goes on where its last batch was kept."""

    def __init__(
        self, work: ReadingWork, files: ReadingFiles, embedder: Embedder, vectors: VectorCache
    ) -> None:
        self._work = work
        self._files = files
        self._embedder = embedder
        self._vectors = vectors
        self._failures = 0
        self._rests_until = steady_seconds()

    async def claim(self) -> ReadingClaim | None:
        """Take the next full reading, if one waits and the embedder is not to be left alone for a while."""
        if steady_seconds() < self._rests_until:
            return None
        return await self._work.claim(Rung.FULL)

    async def read(self, claim: ReadingClaim, wait_for_quiet: Callable[[], Awaitable[object]]) -> None:
        """Make the vectors of a content.

        Args:
            claim: the reading to make.
            wait_for_quiet: returns when nothing more urgent runs; awaited before every batch.

        Raises:
            InfrastructureError: an engine or a disk is at fault.
        """
        quick = claim.quick
        if quick is None:
            raise BlobsUnavailable("the quick reading it starts from is gone")
        started = time.monotonic()
        try:
            texts = await self._files.texts(quick.id)
            vectors = await self._embed(texts, wait_for_quiet)
            await self._files.write_vectors(claim.id, quick.id, vectors)
        except LostReading as error:
            return await self._work.wait_for_quick(claim, str(error))
        except EmbedderUnavailable as error:
            self._rest(error)
            raise
        self._failures = 0
        details = {"milliseconds": round((time.monotonic() - started) * 1000)}
        space = self._embedder.space
        await self._work.finish(claim, Made(quick.title, quick.pages, len(texts), details, space))

    def _rest(self, error: EmbedderUnavailable) -> None:
        """What an embedder told one document holds for all: ten thousand would else ask it one by one."""
        self._failures += 1
        seconds = max(pause(self._failures).total_seconds(), error.retry_after)
        self._rests_until = max(self._rests_until, steady_seconds() + seconds)

    async def _embed(self, texts: Sequence[str], wait_for_quiet: Callable[[], Awaitable[object]]) -> Vectors:
        """Batch by batch, so that documents take turns and quick work can come between."""
        batches = []
        for start in range(0, len(texts), self._embedder.batch):
            await wait_for_quiet()
            batch = texts[start : start + self._embedder.batch]
            batches.append(await self._vectors.embed(self._embedder, batch))
            reach("after-vectors")
        return np.concatenate(batches)
