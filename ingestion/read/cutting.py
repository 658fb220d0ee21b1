"""Asks a side process to cut a read PDF into a reading's pages and chunks."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from ingestion.work.side_process import SideProcesses
from storage.embedding import Embedder
from storage.readings import ReadingFiles


class Cutter:
    """Cuts chunks of at most ``chunk_tokens`` tokens that fit the embedder's window."""

    def __init__(
        self, side: SideProcesses, files: ReadingFiles, embedder: Embedder, chunk_tokens: int
    ) -> None:
        self._side = side
        self._files = files
        self._embedder = embedder
        self._chunk_tokens = chunk_tokens

    async def cut(self, reading: UUID, pages: bytes, layout: bytes = b"") -> dict[str, Any]:
        """Write a reading's files; its ``title``, and how many ``pages`` and ``chunks``, with ``details``.

        The file's name is not asked for: a reading serves files of any name.

        Args:
            reading: whose files they are.
            pages: as the text child wrote them.
            layout: batches of the layout child, if it looked.

        Raises:
            DocumentError: the file is at fault.
            BlobsUnavailable: a disk is.
        """
        tokenizer = self._embedder.tokenizer
        job = {
            "do": "cut",
            "root": str(self._files.root),
            "reading": str(reading),
            "limit": self._chunk_tokens,
            "tokenizer": str(tokenizer) if tokenizer else None,
            "window": self._embedder.window,
            "layout": len(layout),
        }
        made: dict[str, Any] = await self._side.run(job, pages + layout)
        return made
