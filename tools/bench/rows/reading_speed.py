"""Row ``read``: PDFs to pages and chunks on disk, compared to a bare ``rawdict`` pass over the same pages."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from uuid import uuid4

from ingestion.jobs.compute_pool import ComputePool
from storage.pdf.pdf_process import PdfProcess
from storage.settings import StorageSettings
from storage.text.token_counts import TOKENIZER, bundled
from tools.bench.corpus import PAGES, pdfs
from tools.bench.figures import Figure
from tools.bench.raw_reading import raw_seconds

CORES, ROUNDS = 2, 5


def bench_read(work: Path) -> list[Figure]:
    """Alternate between both on the same files, each on both cores."""
    return asyncio.run(_bench(work))


async def _bench(work: Path) -> list[Figure]:
    files = pdfs(2 * CORES, PAGES)
    pdf, side = PdfProcess(StorageSettings(), readers=CORES), ComputePool(CORES)
    ratios, ours, raws = [], [], []
    try:
        await _read(pdf, side, files[:CORES], work)  # warm-up: starts the processes
        for _ in range(ROUNDS):
            ours.append(await _read(pdf, side, files, work))
            raws.append(await asyncio.to_thread(raw_seconds, files, CORES))
            ratios.append(raws[-1] / ours[-1])
    finally:
        await side.aclose()
        await pdf.aclose()
    pages, ratio = len(files) * PAGES, median(ratios)
    return [
        Figure("quick reading, two PDFs at a time", ">= 0.6 x", f"{pages / median(ours):.0f} pages/s",
               f"bare rawdict likewise {pages / median(raws):.0f} pages/s", f"{ratio:.2f} x", ratio >= 0.6)
    ]  # fmt: skip


async def _read(pdf: PdfProcess, side: ComputePool, files: Sequence[Path], work: Path) -> float:
    async def read(file: Path) -> None:
        job = {
            "do": "chunk", "root": str(work / "read"), "reading": str(uuid4()), "limit": 400,
            "tokenizer": str(bundled(TOKENIZER)), "window": 256, "layout": 0, "ocr": 0, "pictures": "left",
        }  # fmt: skip
        await side.run(job, await pdf.fetch(file))

    started = time.perf_counter()
    await asyncio.gather(*map(read, files))
    seconds = time.perf_counter() - started
    shutil.rmtree(work / "read")
    return seconds
