"""Reading of web pages in sandboxed children, as for PDFs: untrusted HTML is never parsed in this process."""

from __future__ import annotations

import asyncio
import os

from storage.errors import NoPages, ReaderKilled
from storage.pdf.fork_client import ForkServerPool

# Address space of a child; the memory used is a tenth of it.
MEMORY = 768 * 1024 * 1024
# CPU limit of a child; a small page takes 0.05 s, a manual's chapter of 300 kB 0.3 s.
SECONDS = 30
# Idle timeout of the fork server, which takes 70 MB.
IDLE_SECONDS = 60


class HtmlProcess:
    """Extracts the text of web pages, one at a time.

    Its fork server starts with the first page that is due, and most homes have none.
    """

    def __init__(self, pool: ForkServerPool | None = None, *, is_confinement_required: bool = False) -> None:
        """Use ``pool``, a pool of kind "html"; by default a new one."""
        self._pool = pool or ForkServerPool(
            "html", idle_seconds=IDLE_SECONDS, is_confinement_required=is_confinement_required
        )
        self._turn = asyncio.Semaphore(1)

    async def read(self, data: bytes, media_type: str, charset: str | None) -> bytes:
        """Return the page's title, date and blocks as written by ``html_job.py``: one line of untrusted JSON.

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
