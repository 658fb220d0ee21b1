"""Cuts a PDF by the layout of its pages and what OCR reads on them; a page that resists goes without."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ingestion.read.cutting import ChunkingClient
from ingestion.read.describing import Renderer
from storage.blobs import Blobs
from storage.errors import DocumentError, PasswordProtected
from storage.models import Box, Reading
from storage.reading_work import ReadingClaim

BATCH = 10
"""Pages looked at in one go, some seconds of work: then whatever is more urgent comes first."""

MAX_FAILURES = 10
"""Pages that may fail by themselves before the rest of a document is left alone."""

_FIGURE = b'"figure"'
"""What the layout child calls one: without it there is none to read."""


@dataclass(frozen=True, slots=True)
class ReadingPacer:
    """How a long reading keeps in step with all else."""

    wait: Callable[[], Awaitable[object]]
    """Returns when nothing more urgent runs."""
    report: Callable[[int], Awaitable[object]]
    """So many pages were looked at so far."""


class PageViewer(Renderer, Protocol):
    """Opens PDFs outside this process."""

    async def fetch(self, path: Path) -> bytes:
        """Every page as ``storage.pdf.wire`` reads it; raises DocumentError or EngineStartError."""

    async def lay_out(self, path: Path, first: int, last: int) -> bytes:
        """Where the parts of some pages stand, as ``wire`` reads it; raises as ``fetch``."""

    async def fetch_ocr(self, path: Path, page: int, clip: Box | None = None) -> bytes:
        """What is printed in a page's picture, or in a part of it, as ``wire`` reads it; as ``fetch``."""


class LayoutChunker:
    """Makes the pages and chunks of a full reading."""

    def __init__(
        self,
        blobs: Blobs,
        viewer: PageViewer,
        chunking_client: ChunkingClient,
        *,
        reads_layout: bool,
        ocr_pages: int,
    ) -> None:
        """``reads_layout``: whether the layout model runs; ``ocr_pages``: most pages of a PDF to read by OCR."""
        self._blobs = blobs
        self._viewer = viewer
        self._chunking_client = chunking_client
        self._reads_layout = reads_layout
        self._ocr_pages = ocr_pages

    async def cut(self, claim: ReadingClaim, quick: Reading, pace: ReadingPacer) -> dict[str, Any] | None:
        """Write the reading's pages and chunks; what ``ChunkingClient.cut`` made.

        None: there is nothing to make better.

        Raises:
            DocumentError: the file is at fault.
            EngineStartError, BlobsUnavailable, OSError: an engine or a disk is.
        """
        path = self._blobs.path(claim.sha256)
        for_ocr = quick.details.get("pages_for_ocr", [])[: self._ocr_pages]
        if not self._reads_layout and not for_ocr:
            return None
        layout = await self._layout(path, quick.pages, pace) if self._reads_layout else b""
        ocr = await self._ocr(path, [(page, None) for page in for_ocr], pace)
        await pace.wait()
        pages = await self._viewer.fetch(path)
        left = self._ocr_pages - len(for_ocr)
        if left > 0 and _FIGURE in layout:
            crops = await self._chunking_client.find_crops(pages, layout, ocr)
            ocr += await self._ocr(path, crops[:left], pace)
            await pace.wait()
        return await self._chunking_client.cut(claim.id, pages, layout, ocr)

    async def _ocr(self, path: Path, pictures: Sequence[tuple[int, Box | None]], pace: ReadingPacer) -> bytes:
        """What OCR reads on these pages, or in these boxes of them; what it cannot read goes without."""
        found: list[bytes] = []
        for page, clip in pictures:
            await pace.wait()
            with _page_skipped():
                found.append(await self._viewer.fetch_ocr(path, page, clip))
        return b"".join(found)

    async def _layout(self, path: Path, count: int, pace: ReadingPacer) -> bytes:
        """The layout of all pages, batch after batch.

        A batch that a page ends is tried once more page by page, for one page in a thousand takes all
        the time or memory there is.
        """
        found: list[bytes] = []
        failures = 0
        for first, last in _ranges(1, count, BATCH):
            batch = await self._read_layout(path, first, last, pace)
            await pace.report(last)
            if batch is not None:
                found.append(batch)
                continue
            for page in range(first, last + 1):
                if failures == MAX_FAILURES:
                    return b"".join(found)
                alone = await self._read_layout(path, page, page, pace)
                failures += alone is None
                found.append(alone or b"")
        return b"".join(found)

    async def _read_layout(self, path: Path, first: int, last: int, pace: ReadingPacer) -> bytes | None:
        await pace.wait()
        with _page_skipped():
            return await self._viewer.lay_out(path, first, last)
        return None


@contextmanager
def _page_skipped() -> Iterator[None]:
    """What a page cannot give is done without; a password opens all pages or none."""
    try:
        yield
    except PasswordProtected:
        raise
    except DocumentError:
        pass


def _ranges(first: int, last: int, size: int) -> Iterator[tuple[int, int]]:
    for start in range(first, last + 1, size):
        yield start, min(start + size - 1, last)
