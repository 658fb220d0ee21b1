"""Real compute processes and PDF programs shared by all tests of a process, because each starts slowly."""

from __future__ import annotations

import asyncio
import atexit
import threading
from collections.abc import Coroutine
from functools import cache
from typing import Any, TypeVar

from ingestion.jobs.compute_pool import ComputePool
from storage.pdf.fork_client import ForkServerPool
from storage.pdf.passwords import Keyring
from storage.pdf.pdf_process import PdfProcess
from storage.settings import StorageSettings

MOST = 2

Result = TypeVar("Result")


class LastingLoop:
    """An event loop in a thread, which outlives all tests."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="lasting", daemon=True).start()

    async def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine on it; cancellation is passed on."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    def end(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a last coroutine and stop the loop."""
        asyncio.run_coroutine_threadsafe(work, self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)


class LastingSide(ComputePool):
    """Compute processes that outlive the ingestions, homes and loops that use them."""

    def __init__(self) -> None:
        super().__init__(MOST)
        self._lasting = LastingLoop()
        atexit.register(lambda: self._lasting.end(super(LastingSide, self).aclose()))

    async def run(self, job: dict[str, Any], *data: bytes) -> Any:
        """Run a job; see ``ComputePool.run``."""
        return await self._lasting.run(super().run(job, *data))

    async def aclose(self) -> None:
        """Stay open."""


class LastingForks(ForkServerPool):
    """A PDF program that outlives its users."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self._lasting = LastingLoop()
        atexit.register(lambda: self._lasting.end(super(LastingForks, self).aclose()))

    async def start(self) -> None:
        """Start it; see ``ForkServerPool.start``."""
        await self._lasting.run(super().start())

    async def run(self, job: dict[str, Any], source: int, passwords: int | None = None) -> bytes:
        """Run a job; see ``ForkServerPool.run``."""
        return await self._lasting.run(super().run(job, source, passwords))

    async def aclose(self) -> None:
        """Stay open."""


class LastingPdf(PdfProcess):
    """A ``PdfProcess`` on shared programs, for tests that do not end them."""

    def __init__(self, settings: StorageSettings, keyring: Keyring | None = None) -> None:
        super().__init__(settings, keyring)
        kinds = ("text", "layout", "ocr", "html")
        self._text, self._layout, self._ocr, self._html = map(lasting_forks, kinds)


@cache
def lasting_side() -> LastingSide:
    """Return the pool of this test process."""
    return LastingSide()


@cache
def lasting_forks(kind: str) -> LastingForks:
    """Return the program of a kind of this test process."""
    return LastingForks(kind)
