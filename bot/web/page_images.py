"""Disk cache of rendered pages and page regions, by content and resolution, with a size limit.

The browser overlays marks, so one picture serves every citation of its page. Where PDFs are in a blob store
shared by machines, rendered pictures are shared through it, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from contextlib import suppress
from pathlib import Path
from weakref import WeakValueDictionary

from bot.web.viewer.fair_semaphore import FairSemaphore
from storage.errors import BlobsUnavailable
from storage.files.blobs import Blobs
from storage.models import Box, PageImage
from storage.pdf.pdf_process import PdfProcess
from storage.threads import run_in_thread

# Concurrent renderings, as many as ``PdfProcess`` runs.
MAX_RENDERINGS = 2
# Concurrent uploads to the blob store; more are skipped, as every picture can be rendered again.
MAX_UPLOADS = 8
# Steps per page side when a region is named in a cache key: a tenth of a pixel of a rendered page.
_CLIP_STEPS = 10_000


class PageImages:
    """LRU cache of rendered pages on disk, limited to ``limit_bytes``."""

    def __init__(self, blobs: Blobs, renderer: PdfProcess, limit_bytes: int) -> None:
        self._blobs = blobs
        self._renderer = renderer
        self._limit = limit_bytes
        self._slots = FairSemaphore(MAX_RENDERINGS)
        # Cache hits and misses since process start.
        self.hits = self.misses = 0
        self._uploads: set[asyncio.Task[None]] = set()
        # Weak values: a lock lives as long as a task holds it or waits for it, even if waiters are cancelled.
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def image(
        self,
        sha256: str,
        page: int,
        dpi: int,
        *,
        holder: Hashable,
        clip: Box | None = None,
        side: int | None = None,
    ) -> PageImage:
        """Return the picture of a page, or of a region of it, rendering it on a cache miss.

        ``holder`` identifies the requester for fair turns: many pictures for one do not delay another's.

        Raises:
            storage.errors.DocumentError: this page cannot be rendered.
            storage.errors.InfrastructureError: the child process cannot start, or the blob store is down.
        """
        part = "".join(f"-{round(share * _CLIP_STEPS)}" for share in clip or ()) + (
            f"-{side}" if side else ""
        )
        name = f"{sha256}-{page}-{dpi}{part}"
        if cached := await self._read_cached(name):
            return cached
        if await self._blobs.copy_image(name) and (copied := await self._read_cached(name)):
            await asyncio.to_thread(self._blobs.images.evict_lru, self._limit)
            return copied
        blob = await self._blobs.fetch(sha256)
        # Take the turn before the lock: a task that waits for the lock then waits for a rendering under way.
        async with self._slots.slot(holder), self._locks.setdefault(name, asyncio.Lock()):
            if cached := await self._read_cached(name):
                return cached
            self.misses += 1
            drawing = await self._renderer.render(blob, page, dpi, clip, side)
            image = PageImage(drawing.data, drawing.media_type)
            self._upload_in_background(await asyncio.to_thread(self._store, name, image))
            return image

    async def _read_cached(self, name: str) -> PageImage | None:
        if image := await asyncio.to_thread(self._blobs.images.read, name):
            self.hits += 1
        return image

    def _store(self, name: str, image: PageImage) -> Path:
        file = self._blobs.images.write(name, image)
        self._blobs.images.evict_lru(self._limit)
        return file

    def _upload_in_background(self, image: Path) -> None:
        """Upload the picture for the other machines in the background."""
        if len(self._uploads) < MAX_UPLOADS:
            sending = asyncio.create_task(self._upload(image))
            self._uploads.add(sending)
            sending.add_done_callback(self._uploads.discard)

    async def _upload(self, image: Path) -> None:
        with suppress(BlobsUnavailable):  # other machines render it themselves
            await run_in_thread(lambda: self._blobs.upload_image(image))
