"""Makes readings: a PDF becomes pages and chunks (quick), and the chunks get vectors (full)."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ingestion.side_process import SideProcesses
from storage.blobs import Blobs
from storage.crash_points import reach
from storage.errors import BlobsUnavailable, DocumentError, InfrastructureError, ReaderKilled
from storage.leases import pause
from storage.models import Rung
from storage.reading_work import Made, ReadingClaim, ReadingWork
from storage.readings import ReadingFiles, Vectors

BATCH = 16
"""Chunks embedded at once: small, so that documents take turns and quick work can come between."""

_FAULT = "This file runs into a fault of this program ({})."
_log = logging.getLogger(__name__)


class PdfReader(Protocol):
    """Opens PDFs outside this process."""

    async def fetch(self, path: Path) -> bytes:
        """Every page as ``storage.pdf.wire`` reads it; raises DocumentError or EngineStartError."""


class VectorMaker(Protocol):
    """Makes vectors of texts."""

    @property
    def window(self) -> int:
        """Most pieces of a text that it looks at."""

    @property
    def id(self) -> str:
        """Changes with the model: vectors of two ids never compare."""

    @property
    def space(self) -> str:
        """Where its vectors lie: those of two spaces are never compared."""

    @property
    def tokenizer(self) -> Path | None:
        """The file that cuts a text into pieces; None when pieces are cl100k tokens."""

    async def aembed(self, texts: Sequence[str]) -> Vectors:
        """(texts, dimensions) float32, each row of length 1."""


class Reader:
    """Carries out claimed readings and writes down how they ended."""

    def __init__(
        self,
        work: ReadingWork,
        blobs: Blobs,
        files: ReadingFiles,
        pdf: PdfReader,
        embedder: VectorMaker,
        *,
        side: SideProcesses,
        chunk_tokens: int,
    ) -> None:
        """Cut chunks of at most ``chunk_tokens`` that fit the embedder's window."""
        self._work = work
        self._blobs = blobs
        self._files = files
        self._pdf = pdf
        self._embedder = embedder
        self._side = side
        self._chunk_tokens = chunk_tokens

    async def claim_quick(self) -> ReadingClaim | None:
        """Take the next quick reading, if one waits."""
        return await self._work.claim(Rung.QUICK)

    async def claim_full(self) -> ReadingClaim | None:
        """Take the next full reading, if one waits."""
        return await self._work.claim(Rung.FULL)

    async def read(self, claim: ReadingClaim) -> None:
        """A quick reading: pages, chunks and their offset -> box map.

        Raises:
            DocumentError: the file is at fault.
            InfrastructureError, OSError: an engine or a disk is.
        """
        if claim.is_spent:
            raise ReaderKilled("Reading this file ended the whole program ten times; it is left alone now.")
        started = time.monotonic()
        pages = await self._pdf.fetch(self._blobs.path(claim.sha256))
        reach("after-parse")
        made = await self._side.run(self._cut(claim), pages)
        reach("after-reading-file")
        details = {"milliseconds": _milliseconds(started), **made["details"]}
        await self._work.finish(claim, Made(made["title"], made["pages"], made["chunks"], details))

    def _cut(self, claim: ReadingClaim) -> dict[str, Any]:
        """The job of a side process; without the file's name, for a reading serves files of any name."""
        tokenizer, window = self._embedder.tokenizer, self._embedder.window
        return {
            "do": "cut",
            "root": str(self._files.root),
            "reading": str(claim.id),
            "limit": self._chunk_tokens,
            "tokenizer": str(tokenizer) if tokenizer else None,
            "window": window,
        }

    async def embed(self, claim: ReadingClaim, wait_for_quiet: Callable[[], Awaitable[object]]) -> None:
        """A full reading: the quick one's pages and chunks, with vectors.

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
        chunks = await self._files.chunks(quick.id)
        batches = []
        for start in range(0, len(chunks), BATCH):
            await wait_for_quiet()
            batches.append(await self._embedder.aembed([c.text for c in chunks[start : start + BATCH]]))
            reach("after-vectors")
        await self._files.write(claim.id, await self._files.pages(quick.id), chunks, np.concatenate(batches))
        details = {"milliseconds": _milliseconds(started)}
        await self._work.finish(
            claim, Made(quick.title, quick.pages, len(chunks), details, self._embedder.space)
        )

    async def fail(self, claim: ReadingClaim, error: Exception) -> None:
        """A step ended with an error: the engines' faults never count against the file, all others do."""
        cause = type(error).__name__
        if isinstance(error, InfrastructureError | OSError):
            reason = (
                str(error) if isinstance(error, InfrastructureError) else "a stored file cannot be opened"
            )
            await self._work.give_back(claim, reason, pause(claim.lease.fence))
            outcome = "postponed"
        else:
            reason = str(error) if isinstance(error, DocumentError) else _FAULT.format(cause)
            outcome = "quarantined" if await self._work.fail(claim, reason) else "failed"
        _log.warning(
            "reading=%s rung=%s attempt=%d outcome=%s cause=%s",
            claim.id,
            claim.rung,
            claim.attempt,
            outcome,
            cause,
        )

    async def let_go(self, claim: ReadingClaim) -> None:
        """We are stopping: another worker may start it at once."""
        await self._work.give_back(claim, None, None)


def _milliseconds(started: float) -> int:
    return round((time.monotonic() - started) * 1000)
