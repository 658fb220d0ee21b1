"""Client of the chunking job, which runs in a side process."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from ingestion.jobs.compute_pool import ComputePool
from storage.embeddings.base import Embedder
from storage.files.reading_files import ReadingFiles
from storage.models import Box


class ChunkingClient:
    """Makes chunks of at most ``chunk_tokens`` tokens that fit the embedder's window."""

    def __init__(
        self,
        compute_pool: ComputePool,
        files: ReadingFiles,
        embedder: Embedder,
        chunk_tokens: int,
        *,
        reads_pictures: bool,
    ) -> None:
        """Accept PDFs without text if ``reads_pictures``: OCR will read them."""
        self._compute_pool = compute_pool
        self._files = files
        self._embedder = embedder
        self._chunk_tokens = chunk_tokens
        self._reads_pictures = reads_pictures

    async def chunk(
        self,
        reading: UUID,
        pages: bytes,
        layout: bytes = b"",
        ocr: bytes | None = None,
        job: str = "chunk",
    ) -> dict[str, Any]:
        """Write a reading's files; return its ``title``, ``details`` and counts of ``pages``, ``chunks``,
        ``figures``.

        Independent of the file's name: a reading serves files of any name.

        Args:
            pages: output of the reader.
            layout: output of the layout child, if it ran.
            ocr: output of the OCR child, for pages and figures; None: OCR has not run yet.
            job: the reader's job of the side process.

        Raises:
            DocumentError: the file is at fault.
            BlobsUnavailable: a disk is at fault.
        """
        tokenizer = self._embedder.tokenizer
        pictures = "waiting" if self._reads_pictures else "left"
        task = {
            "do": job,
            "root": str(self._files.root),
            "reading": str(reading),
            "limit": self._chunk_tokens,
            "tokenizer": str(tokenizer) if tokenizer else None,
            "window": self._embedder.window,
            **_lengths(layout, ocr or b""),
            "pictures": pictures if ocr is None else "read",
        }
        made: dict[str, Any] = await self._compute_pool.run(task, pages, layout, ocr or b"")
        return made

    async def find_crops(self, pages: bytes, layout: bytes, ocr: bytes) -> list[tuple[int, Box]]:
        """Return (page, box) of the figures that need OCR; arguments and errors as in ``chunk``."""
        found = await self._compute_pool.run(
            {"do": "find crops", **_lengths(layout, ocr)}, pages, layout, ocr
        )
        return [(page, Box(*box)) for page, box in found]


def _lengths(layout: bytes, ocr: bytes) -> dict[str, int]:
    """Return the lengths that separate the children's outputs in the job's data."""
    return {"layout": len(layout), "ocr": len(ocr)}
