"""The full rung: pages and chunks by the layout of the pages, with vectors; those of sentences too."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from ingestion.read.describing import Describe
from ingestion.read.looking import LayoutChunker, ReadingPacer
from ingestion.read.sentence_embedding import SentenceEmbedder
from storage.clock import steady_seconds
from storage.crash_points import reach
from storage.embedding import Embedder, Vectors
from storage.errors import (
    BlobsUnavailable,
    DocumentError,
    EmbedderUnavailable,
    LostReading,
    PasswordProtected,
)
from storage.figure_models import Figure
from storage.leases import pause
from storage.models import Reading, Rung
from storage.reading_work import ReadingClaim, ReadingQueue, ReadingResult
from storage.readings import ReadingFiles
from storage.vector_cache import VectorCache

_log = logging.getLogger(__name__)


class FullReader:
    """Carries out claimed full readings; one that is killed keeps the vectors that it had made."""

    def __init__(
        self,
        work: ReadingQueue,
        files: ReadingFiles,
        embedder: Embedder,
        vectors: VectorCache,
        layout_chunker: LayoutChunker,
        *,
        describe: Describe | None = None,
        sentences: SentenceEmbedder | None = None,
    ) -> None:
        """``describe``: asks a vision model what figures show; None: nobody is asked.

        ``sentences``: gives vectors to what can be quoted; None: it gets them when it is asked for.
        """
        self._work = work
        self._layout_chunker = layout_chunker
        self._describe = describe
        self._sentences = sentences
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

    async def read(self, claim: ReadingClaim, wait_until_idle: Callable[[], Awaitable[object]]) -> None:
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
        started, base = time.monotonic(), quick
        try:
            base = await self._cut(claim, quick, wait_until_idle)
            figures = await self._figures(base, wait_until_idle)
            texts = await self._files.texts(base.id)
            vectors = await self._embed([*texts, *(figure.said for figure in figures)], wait_until_idle)
            sentences = await self._sentences.embed(texts, wait_until_idle) if self._sentences else []
            await self._files.write_vectors(claim.id, base.id, vectors, figures, sentences)
        except LostReading as error:
            return await self._work.wait_for(claim, quick.id if base.id == claim.id else base.id, str(error))
        except EmbedderUnavailable as error:
            self._rest(error)
            raise
        self._failures = 0
        undescribed = sum(not figure.description for figure in figures) if self._describe else 0
        details = {
            **base.details,
            "undescribed_figures": undescribed,
            "sentences": sum(len(one.spans) for one in sentences),
            "milliseconds": round((time.monotonic() - started) * 1000),
        }
        space = self._embedder.space
        await self._work.finish(
            claim, ReadingResult(base.title, base.pages, base.chunks, details, base.figures, space)
        )

    async def _cut(
        self, claim: ReadingClaim, quick: Reading, wait_until_idle: Callable[[], Awaitable[object]]
    ) -> Reading:
        """The reading that holds the chunks: its own, one alike, or the quick one when it cannot be bettered.

        Raises:
            DocumentError: no text was found, neither in the file nor in its pictures; or it is locked.
        """
        if claim.alike:
            return claim.alike
        try:
            pace = ReadingPacer(wait_until_idle, partial(self._work.note_pages, claim))
            made = await self._layout_chunker.cut(claim, quick, pace)
        except DocumentError as error:
            if isinstance(error, PasswordProtected) or not quick.chunks:
                raise
            _log.warning("reading=%s rung=full layout=none cause=%s", claim.id, type(error).__name__)
            made = None
        if made is None:
            return quick
        reach("after-layout")
        return replace(quick, id=claim.id, **made)

    async def _figures(
        self, base: Reading, wait_until_idle: Callable[[], Awaitable[object]]
    ) -> Sequence[Figure]:
        """The figures, described where a vision model is asked."""
        figures = await self._files.figures(base.id) if base.figures else []
        return await self._describe(base.sha256, figures, wait_until_idle) if self._describe else figures

    def _rest(self, error: EmbedderUnavailable) -> None:
        """What an embedder told one document holds for all: ten thousand would else ask it one by one."""
        self._failures += 1
        seconds = max(pause(self._failures).total_seconds(), error.retry_after)
        self._rests_until = max(self._rests_until, steady_seconds() + seconds)

    async def _embed(self, texts: Sequence[str], wait_until_idle: Callable[[], Awaitable[object]]) -> Vectors:
        """Batch by batch, so that documents take turns and quick work can come between."""
        batches = []
        for start in range(0, len(texts), self._embedder.batch):
            await wait_until_idle()
            batch = texts[start : start + self._embedder.batch]
            batches.append(await self._vectors.embed(self._embedder, batch))
            reach("after-vectors")
        return np.concatenate(batches)
