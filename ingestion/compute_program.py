"""Program of a side process: splits PDFs and web pages into chunks, analyses chunks for the index.

``python -I -m ingestion.compute_program PARENT``: a job is a line of JSON and the bytes that it announces,
the answer a line of JSON. Runs at low priority, so that the threads that answer questions come first.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import sys
from datetime import date
from pathlib import Path
from typing import Any
from uuid import UUID

from ingestion.chunking.chunker import chunk_document
from ingestion.chunking.web_document import blocks_of, chunk_page
from ingestion.extraction.figures import crops_for_ocr, find_figures
from ingestion.extraction.metadata import read_metadata
from ingestion.layout.ocr_selection import pages_for_ocr, with_ocr
from ingestion.layout.reading_order import arrange
from storage.errors import NoPages, ReaderKilled, StorageError
from storage.files.reading_files import ReadingFiles
from storage.models import METADATA_KEY, Box, Figure, MetadataField, dump_metadata
from storage.pdf import protocol, sandbox
from storage.pdf.models import Layout, OcrPage, PdfText
from storage.pdf.protocol import READY
from storage.text.analyzer import index_terms
from storage.text.token_counts import PieceCounter, count_tokens

NICENESS = 10
# Address space in bytes: the largest result of a reading child needs 2.3 GB.
MEMORY = 3 * 1024**3

# Words of a figure that are indexed: more would make its text long compared to chunks.
SEARCHED_LABELS = 40

_NO_MEMORY = "the file holds more text than fits into memory; split it"


def chunk(job: dict[str, Any], data: bytes) -> dict[str, Any]:
    """Build a reading from the output of the sandboxed children, and write its files.

    ``data`` ends with ``job["layout"]`` bytes from the layout child and ``job["ocr"]`` from the OCR child.

    Raises:
        DocumentError: the file is at fault.
        BlobsUnavailable: a disk is at fault.
    """
    pdf, layout, crops = _read(job, data)
    arranged = arrange(pdf, layout)
    pieces = PieceCounter(Path(job["tokenizer"])) if job["tokenizer"] else count_tokens
    document = chunk_document(
        arranged.pdf, limit=job["limit"], pieces=pieces, window=job["window"], blocks=arranged.blocks
    )
    waiting = pages_for_ocr(pdf) if job["pictures"] == "waiting" else ()
    if not document.chunks and not waiting:
        raise NoPages(_no_text_message(pdf, job["pictures"]))
    figures = find_figures(arranged, document.chunks, crops)
    ReadingFiles(Path(job["root"])).write_here(
        UUID(job["reading"]), arranged.pdf.pages, document.chunks, None, figures
    )
    metadata = read_metadata(pdf)
    labelled = metadata.get("title")
    return {
        "title": document.title or (labelled.value if labelled else ""),
        "pages": len(pdf.pages),
        "chunks": len(document.chunks),
        "figures": len(figures),
        "details": {
            METADATA_KEY: dump_metadata(metadata.values()),
            "struck_words": pdf.struck_words,
            "is_repaired": pdf.is_repaired,
            "is_locked": pdf.is_locked,
            "unread_pages": list(pdf.unread_pages),
            "pages_without_text": [page.number for page in pdf.pages if not page.words],
            "pages_for_ocr": list(waiting),
            "ocr_pages": list(pdf.ocr_pages),
            "tables": arranged.tables if job["layout"] else None,
        },
    }


def _read(job: dict[str, Any], data: bytes) -> tuple[PdfText, Layout, list[OcrPage]]:
    """Return the PDF including OCR pages, its layout, and the OCR of its figures."""
    ocr_start = len(data) - job["ocr"]
    text_end = ocr_start - job["layout"]
    read = [protocol.parse_ocr_page(line) for line in data[ocr_start:].splitlines()]
    pdf = with_ocr(protocol.parse_reading(data[:text_end]), (one for one in read if one.clip is None))
    crops = [one for one in read if one.clip is not None]
    return pdf, protocol.parse_layout(data[text_end:ocr_start]), crops


def chunk_web_page(job: dict[str, Any], data: bytes) -> dict[str, Any]:
    """Build a reading from a web page's blocks, as the sandboxed child wrote them, and write its files.

    Raises:
        NoPages: the page contains no text.
        BlobsUnavailable: a disk is at fault.
    """
    page = json.loads(data)
    pieces = PieceCounter(Path(job["tokenizer"])) if job["tokenizer"] else count_tokens
    title, day = str(page["title"]), _day(page["day"])
    pages, chunks, anchors = chunk_page(
        blocks_of(page["blocks"]), title, limit=job["limit"], pieces=pieces, window=job["window"]
    )
    if not chunks:
        raise NoPages("the page holds no text that could be cited; it may need JavaScript")
    ReadingFiles(Path(job["root"])).write_here(UUID(job["reading"]), pages, chunks, None)
    dated = [MetadataField("last_updated", day, None, (), day)] if day else []
    details = {METADATA_KEY: dump_metadata(dated), "anchors": anchors}
    return {"title": title, "pages": 1, "chunks": len(chunks), "figures": 0, "details": details}


def _day(value: Any) -> str:
    """Return an ISO date that a sandboxed child wrote, like 2024-03-01; '' for anything else."""
    try:
        day = date.fromisoformat(value).isoformat()
    except (TypeError, ValueError):
        return ""
    return day if day == value else ""


def find_crops(job: dict[str, Any], data: bytes) -> list[tuple[int, Box]]:
    """Return (page, box) of each figure that needs OCR; ``data`` as for ``chunk``.

    Raises:
        DocumentError: the file is at fault.
    """
    pdf, layout, _ = _read(job, data)
    return crops_for_ocr(arrange(pdf, layout))


def _no_text_message(pdf: PdfText, pictures: str) -> str:
    """Return a message that says why a PDF has no text, and what to do."""
    if pdf.is_repaired:
        return "The file is damaged or truncated, and none of its text is left. Export it again."
    count = len(pdf.pages)
    silent = "Its only page holds no text" if count == 1 else f"None of its {count} pages holds text"
    if not pages_for_ocr(pdf):
        return f"{silent}, and no picture that could hold any. Export the file again."
    if pictures == "read":
        return f"{silent}, and OCR found none in its picture. Scan it again, larger and straight."
    return f"{silent}, probably because it was scanned. Run OCR on it, or ask an admin to switch OCR on."


def analyse(job: dict[str, Any], _data: bytes) -> list[list[Any]]:
    """Return [ordinal, terms, text, first page, last page, heading path] of each chunk, for the index.

    Figures follow the chunks: their ordinals begin at ``job["chunks"]``.

    Raises:
        BlobsUnavailable: the reading's files are gone, damaged or unreachable.
    """
    files, reading = ReadingFiles(Path(job["root"])), UUID(job["reading"])
    first, end, chunks = job["first"], job["end"], job["chunks"]
    found: list[list[Any]] = [
        [
            chunk.ordinal,
            index_terms(job["title"], chunk.heading_path, chunk.text),
            chunk.text,
            chunk.first_page,
            chunk.last_page,
            chunk.heading_path,
        ]
        for chunk in files.wordless_here(reading, first, min(end, chunks))
    ]
    if end > chunks:
        start = max(first - chunks, 0)
        figures = files.figures_here(reading, start, end - chunks)
        found += [_analysed_figure(chunks + start + number, one) for number, one in enumerate(figures)]
    return found


def _analysed_figure(ordinal: int, figure: Figure) -> list[Any]:
    """Return the index entry of a figure: searchable by caption, description and the first of its labels."""
    name = "\n".join(filter(None, (figure.caption, figure.description)))
    labels = " ".join(figure.text.split()[:SEARCHED_LABELS])
    terms = index_terms("", figure.heading_path, f"{name}\n{labels}")
    return [ordinal, terms, name, figure.page, figure.page, figure.heading_path]


JOBS = {
    "chunk": chunk,
    "chunk page": chunk_web_page,
    "find crops": find_crops,
    "analyse": analyse,
}


def answer(job: dict[str, Any], data: bytes) -> dict[str, Any]:
    """Run a job and return its result or error; an exception does not end the process."""
    try:
        return {"done": JOBS[job["do"]](job, data)}
    except StorageError as error:
        return {"error": type(error).__name__, "message": str(error)}
    except MemoryError:
        return {"error": ReaderKilled.__name__, "message": _NO_MEMORY}
    except Exception as error:
        return {"fault": type(error).__name__}


def main() -> None:
    """Process jobs until the parent ends."""
    sandbox.terminate_with_parent(int(sys.argv[1]))
    os.nice(NICENESS)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    count_tokens("")
    gc.freeze()
    gc.disable()  # a job's objects have no cycles; searching for some would double its time
    jobs, answers = sys.stdin.buffer, sys.stdout.buffer
    answers.write(READY)
    answers.flush()
    while line := jobs.readline():
        job = json.loads(line)
        answers.write(json.dumps(answer(job, jobs.read(job["bytes"]))).encode() + b"\n")
        answers.flush()
        gc.collect()


if __name__ == "__main__":
    main()
