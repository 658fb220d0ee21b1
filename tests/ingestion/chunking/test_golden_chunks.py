"""The chunks of the samples, byte for byte: making them faster must not make other ones.

A digest that should change changes together with ``CHUNKER`` or ``PARSER`` in ``generations.py``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from ingestion.chunking.chunker import chunk_document
from storage.models import Chunk, Page, PlacedWord
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
            "e44555a13c17653c28cc0b856f8bb2cf160448cdbd71a9f850308ac60ccad472",
        ),
        (
            "SOP-IT-04-Backup-and-Restore.pdf",
            80,
            64,
            20,
            "6510a6217d3c0515ca8ca04966478ba76c088afc00a6cf75cb6c122467ba8ba4",
        ),
        (
            "SOP-HR-02-Remote-Work-Requests.pdf",
            400,
            256,
            11,
            "c629c769fb3956182a920939b8da8461dea10a630f61b788a2a47f2bf6733e7c",
        ),
        (
            "SOP-HR-02-Remote-Work-Requests.pdf",
            80,
            64,
            19,
            "a42ac70209e52ae0c044608cb30057e09ae2b89ec9317ee833070dc2105dfe42",
        ),
    ],
)
async def test_a_sample_gives_the_same_pages_and_chunks_as_ever(
    file: str, limit: int, window: int, chunks: int, digest: str
) -> None:
    """Shows that texts, boxes, headings and borders of a known document stand where they stood."""
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
    return [chunk.ordinal, chunk.text, chunk.tokens, chunk.heading_path, words, chunk.page_starts]


def _flat(words: Iterable[PlacedWord]) -> list[int]:
    return [
        number
        for start, end, page, line, box in words
        for number in (start, end, page, line, *(round(side * SCALE) for side in box))
    ]
