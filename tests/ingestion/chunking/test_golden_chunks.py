"""Golden chunks of the samples, byte for byte: optimizations must not change them.

A digest may change only together with ``CHUNKER`` in ``generations.py`` or the version of ``PDF_READER``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from ingestion.chunking.chunker import chunk_document
from storage.models import Chunk, Page, WordBox
from storage.pdf.pdf_process import PdfProcess
from storage.settings import StorageSettings
from storage.text.token_counts import TOKENIZER, PieceCounter, bundled
from storage.text.word_boxes import SCALE

SAMPLES = Path(__file__).parents[3] / "bot" / "cli" / "setup" / "samples"


@pytest.mark.parametrize(
    ("file", "limit", "window", "chunks", "digest"),
    [
        (
            "SOP-IT-04-Backup-and-Restore.pdf",
            400,
            256,
            11,
            "eba5da7852cd92bda02c97d66467b6150e7f79b8c164ba2c883953a45114d96c",
        ),
        (
            "SOP-IT-04-Backup-and-Restore.pdf",
            80,
            64,
            20,
            "20296aeaf52a4af3f2c2bb6ef8c0921c36f9b6ec62454c91450897457d43e7a3",
        ),
        (
            "SOP-HR-02-Remote-Work-Requests.pdf",
            400,
            256,
            11,
            "202199883b644fc88a776103d0e5f3e2e6f49267fa87deb6fdee83caabcf27f7",
        ),
        (
            "SOP-HR-02-Remote-Work-Requests.pdf",
            80,
            64,
            19,
            "a0d611ae8063604f8df82b21ae7ce72f6809cea51ee1978b7c2e1593df981509",
        ),
    ],
)
async def test_a_sample_gives_the_golden_pages_and_chunks(
    file: str, limit: int, window: int, chunks: int, digest: str
) -> None:
    """Covers texts, boxes, headings and boundaries."""
    process = PdfProcess(StorageSettings())
    try:
        pdf = await process.read(SAMPLES / file)
    finally:
        await process.aclose()
    pieces = PieceCounter(bundled(TOKENIZER))
    document = chunk_document(pdf, limit=limit, pieces=pieces, window=window)
    made = [document.title, *map(_page_values, pdf.pages), *map(_chunk_values, document.chunks)]
    assert len(document.chunks) == chunks
    assert hashlib.sha256(json.dumps(made).encode()).hexdigest() == digest


def _page_values(page: Page) -> list[Any]:
    return [page.number, page.label, page.width, page.height, page.text, _flat(page.words)]


def _chunk_values(chunk: Chunk) -> list[Any]:
    words = _flat(chunk.words)
    path, sections = chunk.heading_path, chunk.sections
    return [chunk.ordinal, chunk.text, chunk.tokens, path, words, chunk.page_starts, sections]


def _flat(words: Iterable[WordBox]) -> list[int]:
    return [
        number
        for start, end, page, line, box in words
        for number in (start, end, page, line, *(round(side * SCALE) for side in box))
    ]
