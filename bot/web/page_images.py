"""Keeps drawn pages, and parts of pages, on disk, by content and resolution, within a size that is set.

Marks are laid over the picture by the browser, so one picture serves every citation of its page.
"""

from __future__ import annotations

import asyncio
import mimetypes
import os
from collections.abc import Awaitable, Callable, Hashable
from contextlib import suppress
from pathlib import Path
from typing import Protocol
from uuid import uuid4
from weakref import WeakValueDictionary

from bot.core.ports import PageImage
from bot.web.viewer.fair_turns import FairTurns
from storage.models import Box
from storage.pdf.models import RenderedPage

DRAWINGS = 2
"""Pages that are drawn at a time, as many as ``PdfProcess`` draws."""
_STEPS = 10_000
"""Into which a page's sides are divided where a part of it is named: a tenth of a pixel of a drawn page."""


FetchBlob = Callable[[str], Awaitable[Path]]
"""As ``Blobs.fetch``."""


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
    """Draws pages once, and deletes the least recently used when they outgrow ``limit_bytes``.

    Several processes may share the folder: a picture appears there in one step.
    """

    def __init__(self, folder: Path, renderer: PageRenderer, limit_bytes: int, fetch: FetchBlob) -> None:
        """``fetch``: says where a content can be opened now."""
        self._folder, self._fetch = folder, fetch
        self._renderer = renderer
        self._limit = limit_bytes
        self._turns = FairTurns(DRAWINGS)
        self.hits = self.misses = 0
        """Pictures that were on the disk, and those that were drawn, since this process began."""
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
        """The picture of one page, or of a part of it, of a content.

        ``holder`` is whoever asks: of many pictures for one, none lets another wait.

        Raises:
            storage.errors.DocumentError: this page cannot be drawn.
            storage.errors.InfrastructureError: the drawing child cannot start, or the blob store is away.
        """
        part = "".join(f"-{round(share * _STEPS)}" for share in clip or ()) + (f"-{side}" if side else "")
        name = f"{sha256}-{page}-{dpi}{part}"
        if cached := await self._hit(name):
            return cached
        blob = await self._fetch(sha256)
        # The turn comes first: whoever waits for a picture's lock waits for a drawing that goes on.
        async with self._turns.turn(holder), self._locks.setdefault(name, asyncio.Lock()):
            if cached := await self._hit(name):
                return cached
            self.misses += 1
            drawing = await self._renderer.render(blob, page, dpi, clip, side)
            image = PageImage(drawing.data, drawing.media_type)
            await asyncio.to_thread(self._keep, name, image)
            return image

    async def _hit(self, name: str) -> PageImage | None:
        if cached := await asyncio.to_thread(self._cached, name):
            self.hits += 1
        return cached

    def _cached(self, name: str) -> PageImage | None:
        """A picture from disk, marked as just used."""
        for path in self._folder.glob(f"{name}.*"):
            media_type, _ = mimetypes.guess_type(path.name)
            try:
                os.utime(path)
                return PageImage(path.read_bytes(), media_type or "application/octet-stream")
            except FileNotFoundError:  # another process has just made room
                return None
        return None

    def _keep(self, name: str, image: PageImage) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        temporary = self._folder / f".{uuid4().hex}"
        temporary.write_bytes(image.data)
        suffix = mimetypes.guess_extension(image.media_type) or ".bin"
        temporary.replace(self._folder / f"{name}{suffix}")
        self._make_room()

    def _make_room(self) -> None:
        """Remove the least recently used pictures until the rest fits."""
        pictures = []
        for path in self._folder.glob("[!.]*"):
            with suppress(FileNotFoundError):  # another process has just made room
                status = path.stat()
                pictures.append((status.st_mtime, status.st_size, path))
        excess = sum(size for _, size, _ in pictures) - self._limit
        for _, size, path in sorted(pictures):
            if excess <= 0:
                return
            excess -= size
            path.unlink(missing_ok=True)
