"""Work of a full reading in usual seconds, so that its progress is even although kinds of pages differ.

Layout of all pages comes first, then OCR of pages and figures, then vectors: counted in pages, a scan would
seem finished after a tenth of its time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

# Usual seconds on one core, the means of what was measured: .5 to 1.2 a page, 4 to 19 a page by OCR.
LAYOUT_SECONDS, OCR_SECONDS = 0.9, 9.0
# Vectors of a chunk and of its sentences.
CHUNK_SECONDS, SENTENCES_SECONDS = 0.03, 0.07


def usual_seconds(pages: int, ocr_pages: int, chunks: int) -> float:
    """Return the usual time of the full reading of a document."""
    vectors = (CHUNK_SECONDS + SENTENCES_SECONDS) * chunks
    return LAYOUT_SECONDS * pages + OCR_SECONDS * ocr_pages + vectors


class ReadingWork:
    """Progress of a reading, as the share of its work that is done."""

    def __init__(self, planned: float, report: Callable[[float], Awaitable[object]]) -> None:
        """Report the share of ``planned`` usual seconds that is done."""
        self._planned = planned
        self._report = report
        self._done = 0.0

    def plan(self, seconds: float) -> None:
        """Add work that only the reading itself reveals, such as figures for OCR."""
        self._planned += seconds

    async def advance(self, seconds: float) -> None:
        """Count work as done, and report it."""
        await self.advance_to(self._planned - self._done - seconds)

    async def advance_to(self, left: float) -> None:
        """Count all work as done but ``left`` usual seconds: what was planned may not be needed."""
        self._done = max(self._done, self._planned - left)
        await self._report(min(1.0, self._done / self._planned) if self._planned else 1.0)
