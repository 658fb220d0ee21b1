"""A running service fed with hostile files: outcome, time and memory of each."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from samples.paper import pdf

from harness.ingestion_home import Home, open_home
from storage.embeddings.base import Embedder
from storage.errors import DocumentError
from storage.index.embedded.index import EmbeddedIndex
from storage.models import DocumentStatus
from storage.pdf.pdf_process import PdfProcess
from storage.settings import StorageSettings

ROOT = Path(__file__).parents[2]
CHANNEL = "hostile"
READERS = 2
# CPU seconds: a bomb uses them three times, a file of 5,000 pages a good half of them on a slow machine.
READ_SECONDS = 10

RENDER_SECONDS = 2
# Pixels of a rendered page.
LONGEST_SIDE = 3000

# Seconds without any file ending, after which the rest is stuck.
PATIENCE = 300.0

# In hidden texts and attachments.
SECRET = "hiddenword"

# Words that no admin should have to read.
INTERNALS = re.compile(
    r"Error|Exception|Traceback|internal error|0x[0-9a-f]{6}|/\w+/\w+|\b[A-Z][a-z]+[A-Z]\w+"
)
REMEDY = re.compile(
    r"drop it again|export|split|save (a copy|it)|run OCR|free some memory|passwords", re.IGNORECASE
)
_NUMBER = re.compile(r" (\d+)\.pdf$")


@dataclass(frozen=True, slots=True)
class Ending:
    """Outcome of a file."""

    number: int
    kind: str
    # Required state: live, quarantined, or '' for either.
    ends: str
    state: str
    reason: str
    # Longest attempt.
    seconds: float
    # Peak memory in bytes of a child that read or rendered it.
    peak: int
    # Reason why the first page of a live file cannot be rendered, or ''.
    undrawn: str

    @property
    def fault(self) -> str | None:
        """Violation of the requirements, or None."""
        if self.state not in ("live", "quarantined"):
            return f"is {self.state} for ever"
        if self.ends not in ("", self.state):
            return f"is {self.state}: {self.reason}"
        if self.state == "quarantined" and (INTERNALS.search(self.reason) or not REMEDY.search(self.reason)):
            return f"has a reason that helps nobody: {self.reason}"
        if INTERNALS.search(self.undrawn):
            return f"cannot be shown, and says so badly: {self.undrawn}"
        return None


class MeasuredReader:
    """Reads with a PDF process per reader, so that a child's memory can be attributed to a file."""

    def __init__(self, processes: list[PdfProcess]) -> None:
        self._free = asyncio.LifoQueue[PdfProcess]()
        for process in processes:
            self._free.put_nowait(process)
        self.seconds: dict[str, float] = {}
        self.peaks: dict[str, int] = {}

    async def fetch(self, path: Path) -> bytes:
        """Fetch as ``PdfProcess`` does, recording time and memory by content hash."""
        process, sha256 = await self._free.get(), path.name
        started = time.monotonic()
        try:
            return await process.fetch(path)
        finally:
            self.seconds[sha256] = max(self.seconds.get(sha256, 0), time.monotonic() - started)
            self.peaks[sha256] = max(self.peaks.get(sha256, 0), process.peak_memory)
            self._free.put_nowait(process)


@dataclass
class Siege:
    """A service and its reading processes."""

    home: Home
    reader: MeasuredReader
    processes: list[PdfProcess]

    async def withstand(self, folder: Path) -> list[Ending]:
        """Drop the files written by ``make_hostile`` and wait until each has ended.

        Raises:
            AssertionError: the service no longer reads healthy files.
        """
        cases = json.loads((folder / "cases.json").read_text())
        before = [process.pid for process in self.processes]
        await self._read_healthy("before.pdf", "firm")
        shas = [self._drop(folder, row) for row in cases]
        listed = await self._ended(len(cases))
        await self._read_healthy("after.pdf", "calm")
        assert await self.home.find(CHANNEL, "firm ground"), "what answered before does not any more"
        assert [process.pid for process in self.processes] == before, "a parent program ended"
        return [
            await self._ending(row, sha256, listed.get(row["number"]))
            for row, sha256 in zip(cases, shas, strict=True)
        ]

    def _drop(self, folder: Path, row: dict[str, Any]) -> str:
        data = (folder / f"{row['number']}.pdf").read_bytes()
        self.home.drop(f"{CHANNEL}/{row['name']}", data)
        return hashlib.sha256(data).hexdigest()

    async def _read_healthy(self, name: str, word: str) -> None:
        self.home.drop(f"{CHANNEL}/{name}", pdf(f"Healthy\nThis stands on {word} ground."))
        await self.home.until_found(CHANNEL, f"{word} ground", name)

    async def _ended(self, files: int) -> dict[int, DocumentStatus]:
        """Return the documents by their number once all have ended, or after PATIENCE."""
        ended, end = -1, time.monotonic()
        while True:
            listed = await self.home.documents(CHANNEL)
            numbered = {int(found[1]): one for file, one in listed.items() if (found := _NUMBER.search(file))}
            now = sum(one.state in ("live", "quarantined") for one in numbered.values())
            if now != ended:
                ended, end = now, time.monotonic() + PATIENCE
            if now == files or time.monotonic() > end:
                return numbered
            await asyncio.sleep(0.5)

    async def _ending(self, row: dict[str, Any], sha256: str, status: DocumentStatus | None) -> Ending:
        state, reason = (status.state, status.reason or "") if status else ("unseen", "")
        undrawn, drawing = await self._draw(sha256) if state == "live" else ("", 0)
        seconds, peak = self.reader.seconds.get(sha256, 0.0), self.reader.peaks.get(sha256, 0)
        return Ending(
            row["number"], row["kind"], row["ends"], state, reason, seconds, max(peak, drawing), undrawn
        )

    async def _draw(self, sha256: str) -> tuple[str, int]:
        """Render the first page as the viewer would; return the error, or '', and the peak memory."""
        process = self.processes[0]
        try:
            drawn = await process.render(self.home.blobs.path(sha256), 1, 72)
            assert max(drawn.width, drawn.height) <= LONGEST_SIDE
        except DocumentError as error:
            return str(error), process.peak_memory
        return "", process.peak_memory


@asynccontextmanager
async def besieged(path: Path, embedder: Embedder) -> AsyncIterator[Siege]:
    """Yield a service at the quick rung on a new home; all limits are real except for time."""
    settings = StorageSettings(read_seconds=READ_SECONDS, render_seconds=RENDER_SECONDS)
    async with AsyncExitStack() as stack:
        home = await stack.enter_async_context(open_home(path, embedder, EmbeddedIndex(path / "index", 10)))
        processes = [
            await stack.enter_async_context(aclosing(PdfProcess(settings, readers=1))) for _ in range(READERS)
        ]
        for process in processes:
            await process.start()
        siege = Siege(home, MeasuredReader(processes), processes)
        await home.serve(pdf=siege.reader, stop_at="quick", read_workers=READERS, rest_seconds=1)
        yield siege


async def make_files(folder: Path, seed: int, first: int, count: int) -> None:
    """Run ``make_hostile`` into a new folder."""
    folder.mkdir(parents=True)
    arguments = ["-m", "tools.hostile.make_hostile", str(folder.absolute()), *map(str, (seed, first, count))]
    maker = await asyncio.create_subprocess_exec(sys.executable, *arguments, cwd=ROOT)
    assert await maker.wait() == 0
