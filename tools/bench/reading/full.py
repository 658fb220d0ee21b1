"""Full reading, with layout, as a column of the table, and its chunks."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ingestion.chunking.chunker import chunk_document
from ingestion.chunking.structure import Structure
from ingestion.layout.reading_order import ArrangedPdf, Block, arrange
from ingestion.reading.full import BATCH
from storage.models import Chunk
from storage.pdf import protocol
from storage.pdf.models import BlockKind, PdfText
from storage.pdf.pdf_process import PdfProcess
from storage.settings import StorageSettings
from storage.text.token_counts import TOKENIZER, PieceCounter, bundled
from tools.bench.reading.findings import Area, Findings, Readout, Rows
from tools.bench.reading.quick import LIMIT, WINDOW, children_seconds


@dataclass(frozen=True, slots=True)
class FullReadings:
    """Full readings of files, and the CPU time that they took."""

    pdfs: Mapping[str, ArrangedPdf]
    seconds: float

    def readout(self) -> Readout:
        """Return a column of the table."""
        seen = {name: _seen(one) for name, one in self.pdfs.items()}
        return Readout(seen, sum(len(one.pdf.pages) for one in self.pdfs.values()), self.seconds)

    def chunks(self) -> dict[str, Sequence[Chunk]]:
        """Return the chunks of every file."""
        counter = PieceCounter(bundled(TOKENIZER))
        return {
            name: chunk_document(
                one.pdf, limit=LIMIT, pieces=counter, window=WINDOW, blocks=one.blocks
            ).chunks
            for name, one in self.pdfs.items()
        }


async def read_full(files: Mapping[str, Path], quick: Mapping[str, PdfText]) -> FullReadings:
    """Analyse the layout of read PDFs; start-up of the process is not counted."""
    process = PdfProcess(StorageSettings())
    try:
        await process.fetch_layout(next(iter(files.values())), 1, 1)
        own, theirs = time.process_time(), children_seconds()
        pdfs: dict[str, ArrangedPdf] = {}
        for name, path in files.items():
            layout = protocol.parse_layout(await _look(process, path, len(quick[name].pages)))
            pdfs[name] = arrange(quick[name], layout)
    finally:
        await process.aclose()
    return FullReadings(pdfs, time.process_time() - own + children_seconds() - theirs)


async def _look(process: PdfProcess, path: Path, count: int) -> bytes:
    batches = [
        await process.fetch_layout(path, first, min(first + BATCH - 1, count))
        for first in range(1, count + 1, BATCH)
    ]
    return b"".join(batches)


def _seen(arranged: ArrangedPdf) -> Findings:
    """Return findings, with headings as the chunker sees them."""
    structure, pages = Structure(arranged.pdf, arranged.blocks), arranged.pdf.pages
    headings = [
        (page.number, page.text[piece.start : piece.end])
        for number, page in enumerate(pages)
        for piece in structure.segments(number)
        if piece.rank
    ]
    tables = {
        page.number: [_rows(page.text, block) for block in blocks if block.kind is BlockKind.TABLE]
        for page, blocks in zip(pages, arranged.blocks, strict=True)
    }
    figures = {page: [Area(*region.box) for region in regions] for page, regions in arranged.figures.items()}
    return Findings(headings, tables, {page.number: page.text for page in pages}, figures)


def _rows(text: str, table: Block) -> Rows:
    lines = (text[start:end].split("\n", maxsplit=1)[0] for start, end in table.rows)
    return [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines]
