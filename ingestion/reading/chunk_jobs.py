"""Asks a side process to cut a read PDF into a reading's pages and chunks."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from ingestion.jobs.compute_pool import ComputePool
from storage.embeddings.base import Embedder
from storage.files.reading_files import ReadingFiles
from storage.models import Box


class ChunkingClient:
    """Cuts chunks of at most ``chunk_tokens`` tokens that fit the embedder's window."""

    def __init__(
        self,
        compute_pool: ComputePool,
        files: ReadingFiles,
        embedder: Embedder,
        chunk_tokens: int,
        *,
        reads_pictures: bool,
    ) -> None:
        """``reads_pictures``: a PDF without text is not refused, for OCR is to read it."""
        self._compute_pool = compute_pool
        self._files = files
        self._embedder = embedder
        self._chunk_tokens = chunk_tokens
        self._reads_pictures = reads_pictures

    async def cut(
        self, reading: UUID, pages: bytes, layout: bytes = b"", ocr: bytes | None = None
    ) -> dict[str, Any]:
        """Write a reading's files; its ``title``, number of ``pages``, ``chunks``, ``figures``, ``details``.

        The file's name is not asked for: a reading serves files of any name.

        Args:
            reading: whose files they are.
            pages: as the text child wrote them.
            layout: batches of the layout child, if it ran.
            ocr: lines of the OCR child, of pages and of figures; None: it has not read yet.

        Raises:
            DocumentError: the file is at fault.
            BlobsUnavailable: a disk is.
        """
        tokenizer = self._embedder.tokenizer
        pictures = "waiting" if self._reads_pictures else "left"
        job = {
            "do": "cut",
            "root": str(self._files.root),
            "reading": str(reading),
            "limit": self._chunk_tokens,
            "tokenizer": str(tokenizer) if tokenizer else None,
            "window": self._embedder.window,
            **_lengths(layout, ocr or b""),
            "pictures": pictures if ocr is None else "read",
        }
        made: dict[str, Any] = await self._compute_pool.run(job, pages, layout, ocr or b"")
        return made

    async def find_crops(self, pages: bytes, layout: bytes, ocr: bytes) -> list[tuple[int, Box]]:
        """(page, box) of the figures whose words OCR should read; arguments and errors as of ``cut``."""
        found = await self._compute_pool.run(
            {"do": "find crops", **_lengths(layout, ocr)}, pages, layout, ocr
        )
        return [(page, Box(*box)) for page, box in found]


def _lengths(layout: bytes, ocr: bytes) -> dict[str, int]:
    """Where one child's lines end and the next one's begin."""
    return {"layout": len(layout), "ocr": len(ocr)}
