"""Reads web pages in limited children, as PDFs are: no page of a stranger is ever opened in this process."""

from __future__ import annotations

import asyncio
import os

from storage.errors import NoPages, ReaderKilled
from storage.pdf.fork_client import ForkServerPool

# Address space of a child; what it really uses is a tenth of it.
MEMORY = 768 * 1024 * 1024
# Computing time of a child; a small page takes 0.05 s, a manual's chapter of 300 kB 0.3 s.
SECONDS = 30
# The fork server is closed after so long without a page: it takes 70 MB.
IDLE_SECONDS = 60


class HtmlProcess:
    """Finds the text of web pages, one at a time.

    The fork server behind it starts with the first page that is due, and most homes have none.
    """

    def __init__(self, pool: ForkServerPool | None = None, *, is_confinement_required: bool = False) -> None:
        """``pool``: of the kind "html"; its own by default."""
        self._pool = pool or ForkServerPool(
            "html", idle_seconds=IDLE_SECONDS, is_confinement_required=is_confinement_required
        )
        self._turn = asyncio.Semaphore(1)

    async def read(self, data: bytes, media_type: str, charset: str | None) -> bytes:
        """The page's title, day and blocks as ``html_job.py`` writes them: one line of JSON, not yet trusted.

        Raises:
            NoPages: no child can read it within its limits.
            EngineStartError: the fork server cannot be started.
        """
        job = {
            "do": "read",
            "media_type": media_type,
            "charset": charset,
            "memory": MEMORY,
            "seconds": SECONDS,
        }
        source = os.memfd_create("page", os.MFD_CLOEXEC)
        try:
            await asyncio.to_thread(_fill, source, data)
            async with self._turn:
                return await self._pool.run(job, source)
        except ReaderKilled:
            raise NoPages("the page's HTML is too large or too twisted to be read") from None
        finally:
            os.close(source)

    async def aclose(self) -> None:
        """End the fork server."""
        await self._pool.aclose()


def _fill(file: int, data: bytes) -> None:
    with os.fdopen(os.dup(file), "wb") as sink:
        sink.write(data)
    os.lseek(file, 0, os.SEEK_SET)
