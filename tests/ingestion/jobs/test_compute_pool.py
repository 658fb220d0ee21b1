"""Compute processes that chunk and analyse next to the service: results, errors, shutdown."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from harness.processes import children, is_running
from harness.waiting import PATIENCE
from samples.paper import pdf
from samples.pictures import picture_pdf

from ingestion.compute_program import MEMORY
from ingestion.jobs.compute_pool import PROGRAM, ComputePool
from storage.errors import EngineStartError, LostReading, NoPages, ReaderKilled
from storage.files.reading_files import ReadingFiles
from storage.models import Box, Figure, FigureKind
from storage.pdf.pdf_process import PdfProcess
from storage.settings import StorageSettings
from storage.text.token_counts import TOKENIZER, bundled

OWNER = """
import asyncio, os
from ingestion.jobs.compute_pool import ComputePool
async def main():
    side = ComputePool(1)
    try:
        await side.run({"do": "analyse", "root": "/nowhere", "reading": str(__import__("uuid").uuid4()),
                        "first": 0, "end": 1, "chunks": 1, "title": ""})
    except Exception:
        print("idle", flush=True)
    await asyncio.sleep(600)
asyncio.run(main())
"""


@pytest.fixture
async def side() -> AsyncIterator[ComputePool]:
    """A pool of one process."""
    made = ComputePool(1)
    yield made
    await made.aclose()


@pytest.fixture
def started() -> Callable[[], int]:
    """``started()`` returns the pid of this test's process; others may be left from earlier tests."""
    before = children(os.getpid(), PROGRAM)

    def find() -> int:
        (pid,) = set(children(os.getpid(), PROGRAM)) - set(before)
        return pid

    return find


async def pages_of(path: Path, *pages: str) -> bytes:
    """Return what the confined child reads from a PDF with these pages."""
    path.write_bytes(pdf(*pages))
    process = PdfProcess(StorageSettings())
    try:
        return await process.fetch(path)
    finally:
        await process.aclose()


def cut(root: Path) -> dict[str, Any]:
    """Return a job that makes a reading below ``root``."""
    tokenizer = str(bundled(TOKENIZER))
    reading = str(uuid4())
    return {
        "do": "chunk",
        "root": str(root),
        "reading": reading,
        "limit": 400,
        "window": 256,
        "tokenizer": tokenizer,
        "layout": 0,
        "ocr": 0,
        "pictures": "left",
    }


def analyse(job: dict[str, Any], end: int = 1) -> dict[str, Any]:
    """Return a job that analyses the reading of ``job``."""
    made = {"root": job["root"], "reading": job["reading"]}
    return {"do": "analyse", **made, "first": 0, "end": end, "chunks": end, "title": "Leave"}


async def test_a_reading_is_chunked_stored_and_analysed(side: ComputePool, tmp_path: Path) -> None:
    """Covers the whole path of a document through a compute process."""
    job = cut(tmp_path)
    made = await side.run(job, await pages_of(tmp_path / "a.pdf", "Employees get marzipan leave.", ""))
    assert (made["pages"], made["chunks"], made["details"]["pages_without_text"]) == (2, 1, [2])
    [[ordinal, terms, text, first, last, _path]] = await side.run(analyse(job))
    assert (ordinal, text, first, last) == (0, "Employees get marzipan leave.", 1, 1)
    assert terms.split().count("leav") == 3
    assert [chunk.text for chunk in await ReadingFiles(tmp_path).chunks(UUID(job["reading"]))] == [text]


async def test_a_title_is_the_labelled_one_if_no_print_stands_out(side: ComputePool, tmp_path: Path) -> None:
    """Without it, lists and receipts show the file's name beside answers that name the title."""
    text = "Standard Operating Procedure\nNumber: 07A v.02\nTitle: Using Balances\nTare the balance first."
    made = await side.run(cut(tmp_path), await pages_of(tmp_path / "a.pdf", text))
    assert made["title"] == "Using Balances"


async def test_figures_are_analysed_after_the_chunks(side: ComputePool, tmp_path: Path) -> None:
    """A batch may hold chunks, figures or both; a figure is found by name and labels."""
    job = cut(tmp_path)
    await side.run(job, await pages_of(tmp_path / "a.pdf", "Employees get marzipan leave."))
    files, reading = ReadingFiles(tmp_path), UUID(job["reading"])
    box, labels = Box(0, 0, 1, 1), " ".join(f"label{number}" for number in range(90))
    figures = [Figure(1, box, FigureKind.BAR, True, 0, ("Leave",), "Figure 1. Nougat", "", labels)] * 2
    await files.write(reading, await files.pages(reading), await files.chunks(reading), None, figures)
    both = await side.run({**analyse(job), "end": 3, "chunks": 1})
    assert [(ordinal, text) for ordinal, _, text, *_ in both] == [
        (0, "Employees get marzipan leave."),
        (1, "Figure 1. Nougat"),
        (2, "Figure 1. Nougat"),
    ]
    assert {"nougat", "leav", "label0"} < set(both[1][1].split())
    assert "label80" not in both[1][1]
    assert await side.run({**analyse(job), "first": 2, "end": 3, "chunks": 1}) == both[2:]


async def test_errors_keep_their_type(side: ComputePool, tmp_path: Path) -> None:
    """Covers a bad file and missing files."""
    with pytest.raises(NoPages, match="Export the file again"):
        await side.run(cut(tmp_path), await pages_of(tmp_path / "a.pdf", ""))
    with pytest.raises(LostReading):
        await side.run(analyse(cut(tmp_path)))
    with pytest.raises(ReaderKilled, match="was interrupted"):
        await side.run(cut(tmp_path), b"")


async def test_a_killed_process_fails_its_job_only(
    side: ComputePool, started: Callable[[], int], tmp_path: Path
) -> None:
    """Shows that the next job starts a new process."""
    job, data = cut(tmp_path), await pages_of(tmp_path / "a.pdf", "Employees get marzipan leave.")
    await side.run(job, data)
    os.kill(started(), signal.SIGKILL)
    with pytest.raises(ReaderKilled):
        await side.run(job, data)
    assert (await side.run(job, data))["chunks"] == 1


async def test_a_document_over_the_memory_limit_fails_alone(
    side: ComputePool, started: Callable[[], int], tmp_path: Path
) -> None:
    """Shows that too much text ends with a message about the file, and the process survives."""
    job, data = cut(tmp_path), await pages_of(tmp_path / "a.pdf", "Employees get marzipan leave.")
    await side.run(job, data)
    pid = started()
    assert resource.prlimit(pid, resource.RLIMIT_AS)[0] == MEMORY
    room = int(Path(f"/proc/{pid}/statm").read_text().split()[0]) * resource.getpagesize() + (64 << 20)
    resource.prlimit(pid, resource.RLIMIT_AS, (room, room))
    with pytest.raises(ReaderKilled, match="split it"):
        await side.run(job, b"[" + b"[]," * 4_000_000 + b"1]")
    assert (await side.run(job, data))["chunks"] == 1
    assert started() == pid


async def test_a_process_that_cannot_start_fails_no_file() -> None:
    """Shows that it counts as an engine outage, which is retried without limit."""
    with pytest.raises(EngineStartError):
        await ComputePool(1, program="ingestion.no_such_program").run({"do": "chunk"})


async def test_a_compute_process_has_low_priority_and_no_secrets(
    side: ComputePool, started: Callable[[], int], tmp_path: Path
) -> None:
    """Only PATH, LANG and TMPDIR are inherited."""
    with pytest.raises(LostReading):
        await side.run(analyse(cut(tmp_path)))
    pid = started()
    assert os.getpriority(os.PRIO_PROCESS, pid) >= 10
    names = {line.split(b"=")[0] for line in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0") if line}
    assert names <= {b"PATH", b"LANG", b"TMPDIR"}


def test_a_compute_process_ends_with_its_owner() -> None:
    owner = subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    assert owner.stdout.readline() == "idle\n"
    (pid,) = children(owner.pid, PROGRAM)
    owner.kill()
    owner.wait()
    owner.stdout.close()
    end = time.monotonic() + PATIENCE
    while is_running(pid):
        assert time.monotonic() < end, "it outlived its owner"
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("pages", "said"),
    [((" ",), "Its only page holds no text"), ((" ", " "), "None of its 2 pages holds text")],
)
async def test_a_file_without_text_gets_advice(
    side: ComputePool, tmp_path: Path, pages: tuple[str, ...], said: str
) -> None:
    """Covers singular and plural."""
    read = await pages_of(tmp_path / "silent.pdf", *pages)
    with pytest.raises(NoPages, match=f"{said}.* Export the file again"):
        await side.run(cut(tmp_path), read)


@pytest.mark.parametrize(
    ("pictures", "advice"), [("left", "ask an admin to switch OCR on"), ("read", "Scan it again")]
)
async def test_a_scan_gets_advice(side: ComputePool, tmp_path: Path, pictures: str, advice: str) -> None:
    """Shows that the advice differs before OCR and after OCR found no text."""
    path = tmp_path / "scan.pdf"
    path.write_bytes(picture_pdf("A picture of words."))
    async with aclosing(PdfProcess(StorageSettings())) as process:
        read = await process.fetch(path)
    with pytest.raises(NoPages, match=advice):
        await side.run({**cut(tmp_path), "pictures": pictures}, read)
