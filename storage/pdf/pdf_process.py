"""Entry point for reading PDFs and web pages, and rendering pages, in sandboxed child processes."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

from storage.errors import NoPages, NotAPdf, PasswordProtected, ReaderKilled, TooLarge
from storage.models import Box
from storage.pdf import protocol
from storage.pdf.fork_client import ForkServerPool
from storage.pdf.models import PdfText, RenderedPage
from storage.pdf.passwords import Keyring, Passwords, password_file
from storage.settings import StorageSettings
from storage.text.word_boxes import SCALE

MEGABYTE = 1024 * 1024
MIN_DPI, MAX_DPI = 36, 400
# Idle timeout of fork servers that hold models, which take 220 and 270 MB.
IDLE_SECONDS = 300

# Idle timeout of the fork server for web pages, which takes 70 MB; most homes need none.
HTML_IDLE_SECONDS = 60
# Address space of a child for a web page, of which a tenth is used, and its CPU limit: a small page takes
# 0.05 s, a manual's chapter of 300 kB 0.3 s.
HTML_MEMORY, HTML_SECONDS = 768 * MEGABYTE, 30

# Address space of a layout child; the memory used is a fifth of it.
LAYOUT_MEMORY = 3072 * MEGABYTE
# CPU limit of a layout child, plus an amount per page; a page takes 0.2 to 1.2 s, and seldom 4.
LAYOUT_SECONDS, LAYOUT_PAGE_SECONDS = 20, 6


class PdfProcess:
    """Opens PDFs in child processes, never in this one.

    Args:
        settings: limits of files and of the children that open them.
        keyring: asked for the passwords of a locked file by its name, which is its sha256; None: none.
        readers: PDFs read concurrently, and as many analysed.
        renderers: pages rendered concurrently; rendering never waits for reading.
    """

    def __init__(
        self,
        settings: StorageSettings,
        keyring: Keyring | None = None,
        *,
        readers: int = 2,
        renderers: int = 2,
    ) -> None:
        self._settings = settings
        self._keyring = keyring
        self._readers = asyncio.Semaphore(readers)
        self._layout_slots = asyncio.Semaphore(readers)
        self._renderers = asyncio.Semaphore(renderers)
        self._ocr_readers = asyncio.Semaphore(settings.ocr_workers)
        is_required = settings.is_confinement_required
        self._html_slot = asyncio.Semaphore(1)
        self._text = ForkServerPool("text", is_confinement_required=is_required)
        self._html = ForkServerPool(
            "html", idle_seconds=HTML_IDLE_SECONDS, is_confinement_required=is_required
        )
        self._layout, self._ocr = (
            ForkServerPool(kind, idle_seconds=IDLE_SECONDS, is_confinement_required=is_required)
            for kind in ("layout", "ocr")
        )

    @property
    def pid(self) -> int | None:
        """Process id of the text fork server, None before it was started."""
        return self._text.pid

    @property
    def peak_memory(self) -> int:
        """Peak memory in bytes of the last text child to end, including shared memory."""
        return self._text.peak_memory

    def confinement_gaps(self) -> str:
        """Return a sentence that lists what the sandbox does not confine; empty if it is complete."""
        return self._text.confinement_gaps()

    async def start(self) -> None:
        """Start the text fork server, which takes half a second; it is restarted whenever it ends.

        Raises:
            EngineStartError: it cannot be started; the message says why.
        """
        await self._text.start()

    async def read(self, path: Path) -> PdfText:
        """Return text, words and lines of every page.

        Raises:
            DocumentError: the file cannot be read; the message is for an admin.
            EngineStartError, OSError: as ``fetch``.
        """
        return await asyncio.to_thread(protocol.parse_reading, await self.fetch(path))

    async def fetch(self, path: Path) -> bytes:
        """Return the child's output for ``read``; ``protocol.parse_reading`` parses it and raises its errors.

        Raises:
            DocumentError: the child hit a limit, or the file is larger than allowed.
            EngineStartError: the fork server cannot be started, or ended twice.
            OSError: ``path`` cannot be opened.
        """
        job = {"do": "read", "max_pages": self._settings.max_pages}
        async with self._readers:
            return await self._run(job, path, self._settings.read_seconds)

    async def fetch_html(self, path: Path) -> bytes:
        """Return title, date and blocks of a stored web page, or a sitemap's addresses: a line of JSON.

        It is written by ``html_job.py`` and untrusted.

        Raises:
            DocumentError: the child hit a limit, or the file is larger than allowed.
            EngineStartError, OSError: as ``fetch``.
        """
        job = {"do": "read", "memory": HTML_MEMORY, "seconds": HTML_SECONDS}
        try:
            async with self._html_slot:
                return protocol.require_complete_line(await self._with_file(self._html, job, path))
        except ReaderKilled:
            raise NoPages("the page's HTML is too large or too twisted to be read") from None

    async def can_open(self, path: Path, passwords: Passwords) -> bool:
        """True if a PDF opens without a password, or with one of these; the keyring is not consulted.

        Raises:
            DocumentError, EngineStartError, OSError: as ``read``.
        """
        job = {"do": "open", "memory": self._settings.read_memory_mb * MEGABYTE}
        limited = {**job, "seconds": self._settings.render_seconds}
        async with self._renderers:
            source = await asyncio.to_thread(self._open, path)
            try:
                with password_file(passwords.found) as secret:
                    data = await self._text.run(limited, source, secret)
            finally:
                os.close(source)
        if protocol.is_locked(data):
            return False
        protocol.require_complete_line(data)
        return True

    async def fetch_layout(self, path: Path, first: int, last: int) -> bytes:
        """Return the layout of pages ``first`` to ``last`` (from 1), as the child's output.

        ``protocol.parse_layout`` parses the concatenation of any number of such batches.

        Raises:
            DocumentError, EngineStartError, OSError: as ``read``.
        """
        job = {"do": "lay out", "first": first, "last": last, "memory": LAYOUT_MEMORY}
        seconds = LAYOUT_SECONDS + (last - first + 1) * LAYOUT_PAGE_SECONDS
        async with self._layout_slots:
            return protocol.require_complete_batch(
                await self._with_file(self._layout, {**job, "seconds": seconds}, path)
            )

    async def render(
        self, path: Path, page: int, dpi: int, clip: Box | None = None, side: int | None = None
    ) -> RenderedPage:
        """Render a page (from 1), or a part of it, as PNG, or as JPEG if that is much smaller.

        The image is at most 3,000 pixels long, and at most ``side``.

        Raises:
            DocumentError, EngineStartError, OSError: as ``read``.
        """
        resolution = max(MIN_DPI, min(dpi, MAX_DPI))
        job = {"do": "render", "page": page, "dpi": resolution, "clip": clip, "side": side}
        async with self._renderers:
            data = await self._run(job, path, self._settings.render_seconds)
        return protocol.parse_image(data)

    async def fetch_ocr(self, path: Path, page: int, clip: Box | None = None) -> bytes:
        """Return the OCR result of a page (from 1); takes some seconds of CPU time at the lowest priority.

        ``protocol.parse_ocr_page`` parses it. Each page has its own child: one that hits a limit costs no
        other page. With a ``clip`` only that part is read; boxes are still fractions of the page.

        Raises:
            DocumentError, EngineStartError, OSError: as ``read``.
        """
        limited = {
            "do": "ocr",
            "page": page,
            "clip": clip and [round(side * SCALE) for side in clip],
            "memory": self._settings.ocr_memory_mb * MEGABYTE,
            "seconds": self._settings.ocr_seconds,
        }
        async with self._ocr_readers:
            return protocol.require_complete_line(await self._with_file(self._ocr, limited, path))

    async def _run(self, job: dict[str, Any], path: Path, seconds: int) -> bytes:
        limited = {**job, "memory": self._settings.read_memory_mb * MEGABYTE, "seconds": seconds}
        return await self._with_file(self._text, limited, path)

    async def _with_file(self, program: ForkServerPool, job: dict[str, Any], path: Path) -> bytes:
        source = await asyncio.to_thread(self._open, path)
        try:
            data = await program.run(job, source)
            return await self._unlock(program, job, source, path.name) if protocol.is_locked(data) else data
        finally:
            os.close(source)

    async def _unlock(self, program: ForkServerPool, job: dict[str, Any], source: int, sha256: str) -> bytes:
        """Repeat the job in a child that may try the passwords of this content."""
        passwords = await self._keyring.passwords_of(sha256) if self._keyring else Passwords()
        if self._keyring is None or not passwords.found:
            raise PasswordProtected(passwords.refusal)
        os.lseek(source, 0, os.SEEK_SET)
        with password_file(passwords.found) as secret:
            data = await program.run(job, source, secret)
        if protocol.is_locked(data):
            self._keyring.note_wrong(sha256, passwords)
            raise PasswordProtected(passwords.refusal)
        return data

    def _open(self, path: Path) -> int:
        """Return a read-only handle; a file over the size limit is refused before anything reads it."""
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        size = os.fstat(handle).st_size
        limit = self._settings.max_file_mb
        if 0 < size <= limit * MEGABYTE:
            return handle
        os.close(handle)
        if size == 0:
            raise NotAPdf("the file is empty; drop it again")
        raise TooLarge(f"the file has {size / MEGABYTE:.0f} MB, the limit is {limit} MB; split it")

    async def aclose(self) -> None:
        """End the fork servers and all children."""
        await self._text.aclose()
        await self._layout.aclose()
        await self._ocr.aclose()
        await self._html.aclose()
