"""Quick rung: turns a file into pages and chunks."""

from __future__ import annotations

import asyncio
import logging
import time

from ingestion.reading.chunk_jobs import ChunkingClient
from ingestion.reading.reading_work import usual_seconds
from storage.crash_points import reach
from storage.errors import (
    DocumentError,
    InfrastructureError,
    PasswordProtected,
    ReaderKilled,
    StorageError,
    raised_at,
)
from storage.files.blobs import Blobs
from storage.files.reading_files import ReadingFiles
from storage.pdf.pdf_process import PdfProcess
from storage.queues.reading_queue import FULL_SECONDS, ReadingClaim, ReadingQueue, ReadingResult
from storage.readers.registry import READERS

_FAULT = "An internal error occurred while reading this file ({})."
_log = logging.getLogger(__name__)


class QuickReader:
    """Runs claimed quick readings and records their outcome."""

    def __init__(
        self,
        queue: ReadingQueue,
        blobs: Blobs,
        files: ReadingFiles,
        pdf: PdfProcess,
        chunking_client: ChunkingClient,
    ) -> None:
        self.queue = queue
        self._blobs = blobs
        self._files = files
        self._pdf = pdf
        self._chunking_client = chunking_client

    async def read(self, claim: ReadingClaim) -> None:
        """Make a quick reading: pages, chunks and their map of offsets to boxes.

        Raises:
            DocumentError: the file is at fault.
            InfrastructureError, OSError: an engine or a disk is at fault.
        """
        if claim.is_spent:
            raise ReaderKilled("Reading this file crashed the program ten times; it is not tried again.")
        started = time.monotonic()
        names, path = await self.queue.files(claim), await self._blobs.fetch(claim.sha256)
        reader = await asyncio.to_thread(READERS.reader_of, names, path)
        pages = await reader.read(self._pdf, path)
        reach("after-parse")
        ocr = None if reader.draws_pages else b""
        made = await self._chunking_client.chunk(claim.id, pages, ocr=ocr, job=reader.chunk_job)
        await self._files.upload(claim.id)
        reach("after-reading-file")
        waiting = len(made["details"].get("pages_for_ocr", ()))
        seconds = usual_seconds(made["pages"], waiting, made["chunks"])
        details = {
            "milliseconds": round((time.monotonic() - started) * 1000),
            "draws_pages": reader.draws_pages,
            FULL_SECONDS: round(seconds, 2),
            **made["details"],
        }
        await self.queue.finish(claim, ReadingResult(made["title"], made["pages"], made["chunks"], details))

    async def fail(self, claim: ReadingClaim, error: Exception) -> None:
        """Record a failed step: errors of an engine are retried and never count against the file."""
        is_foreseen = isinstance(error, StorageError | OSError)
        cause = type(error).__name__ if is_foreseen else raised_at(error)
        if isinstance(error, InfrastructureError | OSError):
            reason, at_least = "a stored file cannot be opened", 0.0
            if isinstance(error, InfrastructureError):
                reason, at_least = str(error), error.retry_after
            await self.queue.release(claim, reason, at_least)
            outcome = "postponed"
        else:
            reason = str(error) if isinstance(error, DocumentError) else _FAULT.format(type(error).__name__)
            is_locked = isinstance(error, PasswordProtected)
            is_over = await self.queue.fail(claim, reason, is_locked=is_locked)
            outcome = "quarantined" if is_over else "failed"
        files = await self.queue.files(claim)
        named = f'"{files[0]}"' if files else "none"
        _log.log(
            logging.INFO if outcome == "failed" else logging.WARNING,
            "reading=%s rung=%s attempt=%d outcome=%s cause=%s file=%s",
            claim.id,
            claim.rung,
            claim.attempt,
            outcome,
            cause,
            named if len(files) < 2 else f"{named} and {len(files) - 1} more",
        )
