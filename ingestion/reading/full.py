"""Full rung: pages and chunks from layout and OCR, with vectors of chunks, figures and sentences.

A page whose layout or OCR fails is kept without it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ingestion.extraction.located_metadata import locate_fields, missing_fields
from ingestion.reading.captioning import Describe
from ingestion.reading.chunk_jobs import ChunkingClient
from ingestion.reading.reading_work import (
    CHUNK_SECONDS,
    LAYOUT_SECONDS,
    OCR_SECONDS,
    SENTENCES_SECONDS,
    ReadingWork,
    usual_seconds,
)
from ingestion.reading.sentence_embedder import SentenceEmbedder
from storage.clock import monotonic_seconds
from storage.crash_points import reach
from storage.embeddings.base import Embedder, Vectors
from storage.embeddings.quantized_vectors import ChunkSentenceVectors
from storage.embeddings.vector_cache import VectorCache
from storage.errors import (
    BlobsUnavailable,
    DocumentError,
    EmbedderUnavailable,
    LostReading,
    PasswordProtected,
)
from storage.files.blobs import Blobs
from storage.files.reading_files import ReadingFiles
from storage.models import METADATA_KEY, Box, Chunk, Figure, Reading, Rung, dump_metadata
from storage.pdf.pdf_process import PdfProcess
from storage.queues.reading_queue import FULL_SECONDS, ReadingClaim, ReadingQueue, ReadingResult
from storage.sql.leased_queue import backoff

_log = logging.getLogger(__name__)

# Pages of layout analysis per call, some seconds of work: more urgent work comes in between.
BATCH = 10

# Single pages that may fail before layout analysis of the document stops.
MAX_FAILURES = 10

# (text of the first page, names of missing fields) -> values by name, as a model read them.
FillMetadata = Callable[[str, Sequence[str]], Awaitable[Mapping[str, str]]]

# Marks a figure in the layout child's output: without it there are no crops to read.
_FIGURE = b'"figure"'


@dataclass(frozen=True, slots=True)
class ReadingPacer:
    """Hooks by which a long reading yields to urgent work and reports progress."""

    # Returns when nothing more urgent runs.
    wait: Callable[[], Awaitable[object]]
    work: ReadingWork


class LayoutChunker:
    """Makes pages and chunks of full readings."""

    def __init__(
        self,
        blobs: Blobs,
        viewer: PdfProcess,
        chunking_client: ChunkingClient,
        *,
        reads_layout: bool,
        ocr_pages: int,
    ) -> None:
        """Run layout analysis if ``reads_layout``, and OCR on at most ``ocr_pages`` pages and figures."""
        self._blobs = blobs
        self._viewer = viewer
        self._chunking_client = chunking_client
        self._reads_layout = reads_layout
        self._ocr_pages = ocr_pages

    async def chunk(self, claim: ReadingClaim, quick: Reading, pace: ReadingPacer) -> dict[str, Any] | None:
        """Write the reading's pages and chunks; return the result of ``ChunkingClient.chunk``.

        None if layout and OCR have nothing to improve.

        Raises:
            DocumentError: the file is at fault.
            EngineStartError, BlobsUnavailable, OSError: an engine or a disk is at fault.
        """
        for_ocr = quick.details.get("pages_for_ocr", [])[: self._ocr_pages]
        if not self._reads_layout and not for_ocr:
            return None
        layout = await self._layout(claim.sha256, quick.pages, pace) if self._reads_layout else b""
        ocr = await self._ocr(claim.sha256, [(page, None) for page in for_ocr], pace)
        await pace.wait()
        pages = await self._viewer.fetch(await self._blobs.fetch(claim.sha256))
        left = self._ocr_pages - len(for_ocr)
        if left > 0 and _FIGURE in layout:
            crops = (await self._chunking_client.find_crops(pages, layout, ocr))[:left]
            pace.work.plan(OCR_SECONDS * len(crops))
            ocr += await self._ocr(claim.sha256, crops, pace)
            await pace.wait()
        return await self._chunking_client.chunk(claim.id, pages, layout, ocr)

    async def _ocr(
        self, sha256: str, pictures: Sequence[tuple[int, Box | None]], pace: ReadingPacer
    ) -> bytes:
        """Return the OCR output of pages, or of boxes on them; failures are skipped."""
        found: list[bytes] = []
        for page, clip in pictures:
            await pace.wait()
            with _page_skipped():
                found.append(await self._viewer.fetch_ocr(await self._blobs.fetch(sha256), page, clip))
            await pace.work.advance(OCR_SECONDS)
        return b"".join(found)

    async def _layout(self, sha256: str, count: int, pace: ReadingPacer) -> bytes:
        """Return the layout of all pages, batch by batch.

        A batch that fails is retried page by page, since about one page in a thousand takes all time or
        memory.
        """
        found: list[bytes] = []
        failures = 0
        for first in range(1, count + 1, BATCH):
            last = min(first + BATCH - 1, count)
            batch = await self._read_layout(sha256, first, last, pace)
            await pace.work.advance(LAYOUT_SECONDS * (last - first + 1))
            if batch is not None:
                found.append(batch)
                continue
            for page in range(first, last + 1):
                if failures == MAX_FAILURES:
                    return b"".join(found)
                alone = await self._read_layout(sha256, page, page, pace)
                failures += alone is None
                found.append(alone or b"")
        return b"".join(found)

    async def _read_layout(self, sha256: str, first: int, last: int, pace: ReadingPacer) -> bytes | None:
        await pace.wait()
        with _page_skipped():
            return await self._viewer.fetch_layout(await self._blobs.fetch(sha256), first, last)
        return None


@contextmanager
def _page_skipped() -> Iterator[None]:
    """Suppress errors of a single page, but not of a password, which concerns all pages."""
    try:
        yield
    except PasswordProtected:
        raise
    except DocumentError:
        pass


class FullReader:
    """Runs claimed full readings; vectors made before a crash stay cached."""

    def __init__(
        self,
        queue: ReadingQueue,
        files: ReadingFiles,
        embedder: Embedder,
        vectors: VectorCache,
        layout_chunker: LayoutChunker,
        *,
        describe: Describe | None = None,
        sentences: SentenceEmbedder | None = None,
        fill_metadata: FillMetadata | None = None,
    ) -> None:
        """Describe figures with ``describe``, a vision model, if given.

        ``fill_metadata`` asks a model for the metadata of a procedure that patterns missed.
        ``sentences`` embeds quotable sentences in advance; None: they are embedded at question time.
        """
        self._queue = queue
        self._layout_chunker = layout_chunker
        self._describe = describe
        self._sentences = sentences
        self._fill_metadata = fill_metadata
        self._files = files
        self._embedder = embedder
        self._vectors = vectors
        self._failures = 0
        self._rests_until = monotonic_seconds()

    async def claim(self) -> ReadingClaim | None:
        """Claim the next full reading, unless the embedder is in backoff."""
        if monotonic_seconds() < self._rests_until:
            return None
        return await self._queue.claim(Rung.FULL)

    async def read(self, claim: ReadingClaim, wait_until_idle: Callable[[], Awaitable[object]]) -> None:
        """Make a full reading: chunks, figures and vectors.

        Args:
            wait_until_idle: returns when nothing more urgent runs; awaited before every batch.

        Raises:
            InfrastructureError: an engine or a disk is at fault.
        """
        quick = claim.quick
        if quick is None:
            raise BlobsUnavailable("the quick reading that it is based on is missing")
        started, base = time.monotonic(), quick
        planned = quick.details.get(FULL_SECONDS, LAYOUT_SECONDS * quick.pages)
        work = ReadingWork(planned, partial(self._queue.note_progress, claim))
        pace = ReadingPacer(wait_until_idle, work)
        try:
            base = await self._chunk(claim, quick, pace)
            figures = await self._figures(base, wait_until_idle)
            chunks = await self._files.wordless_chunks(base.id)
            await work.advance_to(usual_seconds(0, 0, len(chunks)))
            vectors = await self._embed(
                [*(chunk.text for chunk in chunks), *(figure.embedding_text for figure in figures)], pace
            )
            sentences = await self._sentence_vectors(chunks, pace)
            metadata = await self._metadata(base)
            await self._files.write_vectors(claim.id, base.id, vectors, figures, sentences)
        except LostReading as error:
            return await self._queue.requeue_base(
                claim, quick.id if base.id == claim.id else base.id, str(error)
            )
        except EmbedderUnavailable as error:
            self._rest(error)
            raise
        self._failures = 0
        undescribed = sum(not figure.description for figure in figures) if self._describe else 0
        details = {
            **base.details,
            METADATA_KEY: metadata,
            "undescribed_figures": undescribed,
            "sentences": sum(len(one.spans) for one in sentences),
            "milliseconds": round((time.monotonic() - started) * 1000),
            FULL_SECONDS: planned,
        }
        space = self._embedder.space
        await self._queue.finish(
            claim, ReadingResult(base.title, base.pages, base.chunks, details, base.figures, space)
        )

    async def _chunk(self, claim: ReadingClaim, quick: Reading, pace: ReadingPacer) -> Reading:
        """Return the reading that holds the chunks: this one, an equal one, or the quick one as a fallback.

        Raises:
            DocumentError: there is no text, neither in the file nor in its pictures; or the file is locked.
        """
        if claim.same_chunks:
            return claim.same_chunks
        try:
            if not quick.details.get("draws_pages", True):
                return quick
            made = await self._layout_chunker.chunk(claim, quick, pace)
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
        """Return the figures, with descriptions if there is a vision model."""
        figures = await self._files.figures(base.id) if base.figures else []
        return await self._describe(base.sha256, figures, wait_until_idle) if self._describe else figures

    async def _metadata(self, base: Reading) -> Mapping[str, Any]:
        """Return the metadata as stored, with the values that a model found and that a page prints."""
        printed: Mapping[str, Any] = base.details.get(METADATA_KEY, {})
        if self._fill_metadata is None:
            return printed
        pages = await self._files.pages(base.id)
        missing = missing_fields(printed, pages)
        said = await self._fill_metadata(pages[0].text, missing) if missing else {}
        return {**dump_metadata(locate_fields(said, pages).values()), **printed}

    def _rest(self, error: EmbedderUnavailable) -> None:
        """Back off for all documents after an embedder error, as thousands would fail in the same way."""
        self._failures += 1
        seconds = max(backoff(self._failures).total_seconds(), error.retry_after)
        self._rests_until = max(self._rests_until, monotonic_seconds() + seconds)

    async def _embed(self, texts: Sequence[str], pace: ReadingPacer) -> Vectors:
        """Return vectors, made in batches so that documents share the embedder, urgent work first."""
        batches = []
        for start in range(0, len(texts), self._embedder.batch):
            await pace.wait()
            batch = texts[start : start + self._embedder.batch]
            batches.append(await self._vectors.embed(self._embedder, batch))
            await pace.work.advance(CHUNK_SECONDS * len(batch))
            reach("after-vectors")
        return np.concatenate(batches)

    async def _sentence_vectors(
        self, chunks: Sequence[Chunk], pace: ReadingPacer
    ) -> list[ChunkSentenceVectors]:
        if self._sentences is None:
            return []

        async def report(done: int) -> None:
            await pace.work.advance_to(SENTENCES_SECONDS * (len(chunks) - done))

        return await self._sentences.embed(chunks, pace.wait, report)
