"""Keeps drawn pages, and parts of pages, on disk, by content and resolution, within a size that is set.

Marks are laid over the picture by the browser, so one picture serves every citation of its page. Where PDFs
lie in a store for many machines, it gets what is drawn, and a machine without a copy of a PDF takes it there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from contextlib import suppress
from pathlib import Path
from typing import Protocol
from weakref import WeakValueDictionary

from bot.web.viewer.fair_turns import FairTurns
from storage.errors import BlobsUnavailable
from storage.files.blobs import Blobs
from storage.models import Box, PageImage
from storage.pdf.models import RenderedPage
from storage.threads import run_in_thread

# Pages that are drawn at a time, as many as ``PdfProcess`` draws.
DRAWINGS = 2
# Pictures that are on their way to the store at a time; more are not sent, for each can be drawn again.
MOST_SENDING = 8
# Into which a page's sides are divided where a part of it is named: a tenth of a pixel of a drawn page.
_STEPS = 10_000


class PageRenderer(Protocol):
    """Draws pages, in a limited child process."""

    async def render(
        self, path: Path, page: int, dpi: int, clip: Box | None = None, side: int | None = None
    ) -> RenderedPage:
        """Draw one page, or a part of it that has ``side`` pixels at most on its longer side.

        Raises:
            storage.errors.DocumentError: this page cannot be drawn.
            storage.errors.InfrastructureError: the child could not be started.
        """


class PageImages:
    """Draws pages once, and deletes the least recently used when they outgrow ``limit_bytes``."""

    def __init__(self, blobs: Blobs, renderer: PageRenderer, limit_bytes: int) -> None:
        self._blobs = blobs
        self._renderer = renderer
        self._limit = limit_bytes
        self._turns = FairTurns(DRAWINGS)
        # Pictures that were there, and those that were drawn, since this process began.
        self.hits = self.misses = 0
        self._sending: set[asyncio.Task[None]] = set()
        # A lock lives as long as somebody holds it or waits for it: a waiter that leaves takes none along.
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
        """Return the picture of one page, or of a part of it, of a content.

        ``holder`` is whoever asks: of many pictures for one, none lets another wait.

        Raises:
            storage.errors.DocumentError: this page cannot be drawn.
            storage.errors.InfrastructureError: the drawing child cannot start, or the blob store is away.
        """
        part = "".join(f"-{round(share * _STEPS)}" for share in clip or ()) + (f"-{side}" if side else "")
        name = f"{sha256}-{page}-{dpi}{part}"
        if cached := await self._hit(name):
            return cached
        if await self._blobs.copy_image(name) and (copied := await self._hit(name)):
            await asyncio.to_thread(self._blobs.images.make_room, self._limit)
            return copied
        blob = await self._blobs.fetch(sha256)
        # The turn comes first: whoever waits for a picture's lock waits for a drawing that goes on.
        async with self._turns.turn(holder), self._locks.setdefault(name, asyncio.Lock()):
            if cached := await self._hit(name):
                return cached
            self.misses += 1
            drawing = await self._renderer.render(blob, page, dpi, clip, side)
            image = PageImage(drawing.data, drawing.media_type)
            self._share(await asyncio.to_thread(self._keep, name, image))
            return image

    async def _hit(self, name: str) -> PageImage | None:
        if image := await asyncio.to_thread(self._blobs.images.read, name):
            self.hits += 1
        return image

    def _keep(self, name: str, image: PageImage) -> Path:
        file = self._blobs.images.keep(name, image)
        self._blobs.images.make_room(self._limit)
        return file

    def _share(self, image: Path) -> None:
        """Send it to the other machines, while whoever asked for it is looking at it."""
        if len(self._sending) < MOST_SENDING:
            sending = asyncio.create_task(self._send(image))
            self._sending.add(sending)
            sending.add_done_callback(self._sending.discard)

    async def _send(self, image: Path) -> None:
        with suppress(BlobsUnavailable):  # it is drawn again where it is missed
            await run_in_thread(lambda: self._blobs.send_image(image))
