"""Publisher: writes a reading into its tenant, verifies the counts, then flips it live."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Any

from ingestion.jobs.compute_pool import ComputePool
from storage.crash_points import reach
from storage.errors import InfrastructureError, LostReading, UnknownTenant
from storage.files.file_format import Vectors
from storage.files.reading_files import ReadingFiles
from storage.index.base import FIGURE_FACET, Index, IndexedChunk, document_facet
from storage.models import Rung
from storage.queues.locked_pdfs import LockedPdfs
from storage.queues.publication_queue import PublicationClaim, PublicationQueue
from storage.queues.purge import PurgeQueue

# Chunks and figures per index write.
BATCH = 100

_log = logging.getLogger(__name__)


class Publisher:
    """Runs claimed publications and removals."""

    def __init__(
        self,
        queue: PublicationQueue,
        purge: PurgeQueue,
        files: ReadingFiles,
        index: Index,
        *,
        compute_pool: ComputePool,
        locked_pdfs: LockedPdfs,
    ) -> None:
        self.queue = queue
        self.purge = purge
        self._files = files
        self._index = index
        self._compute_pool = compute_pool
        self._locked_pdfs = locked_pdfs

    async def publish(self, claim: PublicationClaim) -> None:
        """Write, verify and flip a publication; if the index does not answer at all, it is only postponed.

        Raises:
            StorageError: it failed halfway; see ``fail``.
        """
        started = time.monotonic()
        try:
            refusal = await self._locked_pdfs.refusal(claim)
            if refusal is not None:
                _log.warning("document=%s publication=%s outcome=locked", claim.document_id, claim.id)
                return await self.queue.refuse(claim, refusal)
            await self._index.ping()
            await self._index.ensure_tenant(claim.tenant)
            first = await self._analysed(claim, 0)
            vectors = await self._files.vectors(claim.reading_id) if claim.rung is Rung.FULL else None
        except LostReading as error:
            await self.queue.requeue_reading(claim, str(error))
            return _log_postponed(claim, error)
        except InfrastructureError as error:
            await self.queue.release(claim, _reason(error))
            return _log_postponed(claim, error)
        await self._write(claim, first, vectors)
        is_live = await self.queue.go_live(claim)
        reach("after-flip")
        _log.info(
            "document=%s version=%d tenant=%s reading=%s publication=%s rung=%s pages=%d chunks=%d "
            "figures=%d vectors=%d milliseconds=%d outcome=%s",
            claim.document_id,
            claim.version,
            claim.tenant,
            claim.reading_id,
            claim.id,
            claim.rung,
            claim.pages,
            claim.chunks,
            claim.figures,
            0 if vectors is None else len(vectors),
            round((time.monotonic() - started) * 1000),
            "live" if is_live else "overtaken",
        )

    async def _analysed(self, claim: PublicationClaim, start: int) -> list[list[Any]]:
        """Return a batch of chunks, followed by figures, from ordinal ``start``, analysed for the index.

        The file name is searchable like a title.
        """
        job = {
            "do": "analyse",
            "root": str(self._files.root),
            "reading": str(claim.reading_id),
            "first": start,
            "end": min(start + BATCH, claim.objects),
            "chunks": claim.chunks,
            "title": f"{claim.title} {PurePosixPath(claim.file).stem}",
        }
        await self._files.fetch(claim.reading_id)
        analysed: list[list[Any]] = await self._compute_pool.run(job)
        return analysed

    async def _write(self, claim: PublicationClaim, batch: list[list[Any]], vectors: Vectors | None) -> None:
        reach("before-write")
        for start in range(0, claim.objects, BATCH):
            batch = batch if start == 0 else await self._analysed(claim, start)
            await self._index.write(claim.tenant, _indexed(claim, batch, vectors))
            reach("after-batch")
        count = 0 if vectors is None else len(vectors)
        reach("before-seal")
        await self._index.commit_publication(
            claim.tenant, claim.id, chunks=claim.objects, vectors=count, space=claim.space
        )
        reach("after-seal")

    async def fail(self, claim: PublicationClaim, error: Exception) -> None:
        """Retry under a new id after an error: what the index holds under this one is unknown."""
        await self.queue.retry_under_new_id(claim, _reason(error))
        _log_postponed(claim, error)

    async def remove(self, claim: PublicationClaim) -> None:
        """Remove a retired publication from the index.

        Raises:
            InfrastructureError: the index or the database is down.
        """
        reach("before-removal")
        try:
            await self._index.remove(claim.tenant, claim.id, claim.objects)
        except UnknownTenant:
            _log.info("publication=%s outcome=tenant-gone", claim.id)
        reach("after-removal")
        await self.purge.finish(claim)

    async def release_removal(self, claim: PublicationClaim, error: Exception | None = None) -> None:
        """Release a removal that failed or was interrupted; the publication stays hidden."""
        await self.queue.release(claim, _reason(error) if error else None)


def _indexed(
    claim: PublicationClaim, analysed: Iterable[list[Any]], vectors: Vectors | None
) -> list[IndexedChunk]:
    """Return chunks and figures in the form that the index engines store."""
    document = document_facet(claim.document_id)
    return [
        IndexedChunk(
            publication=claim.id,
            ordinal=ordinal,
            terms=terms,
            text=text,
            first_page=first_page,
            last_page=last_page,
            heading_path=tuple(path),
            facets=(document,) if ordinal < claim.chunks else (document, FIGURE_FACET),
            vector=None if vectors is None else vectors[ordinal].tolist(),
            space=None if vectors is None else claim.space,
        )
        for ordinal, terms, text, first_page, last_page, path in analysed
    ]


def _reason(error: Exception) -> str:
    return f"Publishing will be retried ({type(error).__name__})."


def _log_postponed(claim: PublicationClaim, error: Exception) -> None:
    _log.warning(
        "document=%s publication=%s rung=%s outcome=postponed cause=%s",
        claim.document_id,
        claim.id,
        claim.rung,
        type(error).__name__,
    )
