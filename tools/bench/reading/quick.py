"""Quick reading as a column of the table, and its chunks."""

from __future__ import annotations

import asyncio
import resource
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ingestion.chunking.chunker import chunk_document
from ingestion.chunking.segments import segments_of
from ingestion.layout.headings import HeadingDetector
from storage.models import Chunk
from storage.pdf.models import PdfText
from storage.pdf.pdf_process import PdfProcess
from storage.settings import StorageSettings
from storage.text.token_counts import TOKENIZER, PieceCounter, bundled
from tools.bench.reading.findings import Findings, Readout

# Tokens per chunk and window of the embedder, as in the service.
LIMIT, WINDOW = 400, 256


@dataclass(frozen=True, slots=True)
class QuickReadings:
    """Quick readings of files, and the CPU time that they took."""

    pdfs: Mapping[str, PdfText]
    seconds: float

    def readout(self) -> Readout:
        """Return a column of the table."""
        seen = {name: _seen(pdf) for name, pdf in self.pdfs.items()}
        return Readout(seen, sum(len(pdf.pages) for pdf in self.pdfs.values()), self.seconds)

    def chunks(self) -> dict[str, Sequence[Chunk]]:
        """Return the chunks of every file."""
        counter = PieceCounter(bundled(TOKENIZER))
        return {
            name: chunk_document(pdf, limit=LIMIT, pieces=counter, window=WINDOW).chunks
            for name, pdf in self.pdfs.items()
        }


async def read_quick(files: Mapping[str, Path]) -> QuickReadings:
    """Read files one after the other; start-up of the process is not counted."""
    start = await _cpu_seconds({})
    pdfs: dict[str, PdfText] = {}
    seconds = await _cpu_seconds(files, pdfs)
    return QuickReadings(pdfs, max(0.001, seconds - start))


async def _cpu_seconds(files: Mapping[str, Path], pdfs: dict[str, PdfText] | None = None) -> float:
    """Read files into ``pdfs``; return the CPU seconds here, in the reading process and its children."""
    own, theirs = time.process_time(), children_seconds()
    process = PdfProcess(StorageSettings())
    await process.start()
    try:
        for name, path in files.items():
            read = await process.read(path)
            if pdfs is not None:
                pdfs[name] = read
    finally:
        await process.aclose()
    await asyncio.sleep(0)
    return time.process_time() - own + children_seconds() - theirs


def children_seconds() -> float:
    """Return the CPU seconds of ended child processes."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _seen(pdf: PdfText) -> Findings:
    """Return findings, with headings as the chunker sees them, without tables and figures."""
    outline = HeadingDetector(pdf)
    headings = [
        (page.number, page.text[piece.start : piece.end])
        for number, page in enumerate(pdf.pages)
        for piece in segments_of(page.text, outline.lines(number))
        if piece.rank
    ]
    return Findings(headings, text={page.number: page.text for page in pdf.pages})
