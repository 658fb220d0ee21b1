"""Layout of pages that are rotated by 90 degrees, and with framed text."""

from __future__ import annotations

from pathlib import Path

import pymupdf
import pytest
from harness.lasting_pool import LastingPdf

from ingestion.layout.reading_order import arrange
from storage.pdf import protocol
from storage.pdf.models import BlockKind
from storage.settings import StorageSettings

ROWS = [
    ("Depot", "Buses", "Trams"),
    ("Harbour", "12", "40"),
    ("Old town", "31", "18"),
    ("Airport", "55", "9"),
]


def save_table(path: Path, rotate: int, page_rotation: int) -> None:
    """Save a page with a table whose text runs up (90) or down (270) on the page as stored."""
    document = pymupdf.open()
    page = document.new_page()
    page.insert_text((72, 50), "Annual report", fontsize=11)
    side, x, y = (1, 90, 700) if rotate == 90 else (-1, 500, 120)
    for r, row in enumerate(ROWS):
        for c, cell in enumerate(row):
            left, bottom = x + side * 30 * r, y - side * 120 * c
            page.draw_rect(pymupdf.Rect(left, bottom - side * 120, left + side * 30, bottom).normalize())
            page.insert_text((left + side * 19, bottom - side * 8), cell, fontsize=11, rotate=rotate)
    page.set_rotation(page_rotation)
    document.save(path)


@pytest.mark.parametrize(("rotate", "page_rotation", "turn"), [(90, 0, 1), (270, 0, 3), (90, 90, 0)])
async def test_a_rotated_table_is_read_upright(
    tmp_path: Path, rotate: int, page_rotation: int, turn: int
) -> None:
    """Rows are in order, and word boxes are those of the page as displayed."""
    path, process = tmp_path / "side.pdf", LastingPdf(StorageSettings())
    save_table(path, rotate, page_rotation)
    layout = protocol.parse_layout(await process.fetch_layout(path, 1, 1))
    pdf = await process.read(path)
    page = arrange(pdf, layout).pdf.pages[0]
    assert layout.turns.get(1, 0) == turn
    assert page.text.endswith("| Harbour | 12 | 40 |\n| Old town | 31 | 18 |\n| Airport | 55 | 9 |")

    def places(text: str, words: object) -> set[object]:
        return {(text[word.start : word.end], word.box) for word in words}  # type: ignore[attr-defined]

    assert places(page.text, page.words) == places(pdf.pages[0].text, pdf.pages[0].words)


@pytest.mark.parametrize("page_rotation", [0, 90])
async def test_a_frame_over_a_page_end_is_found(tmp_path: Path, page_rotation: int) -> None:
    """Shows the box of a warning, and its part on the next page, which has no label of its own."""
    document = pymupdf.open()
    for lines in (("WARNING", "The burner stays hot."), ("Wear thick gloves.", "")):
        page = document.new_page()
        page.draw_rect(pymupdf.Rect(72, 60, 500, 110))
        for number, line in enumerate(lines):
            page.insert_text((80, 78 + 20 * number), line, fontsize=11)
        page.set_rotation(page_rotation)
    path, process = tmp_path / "boxes.pdf", LastingPdf(StorageSettings())
    document.save(path)
    layout = protocol.parse_layout(await process.fetch_layout(path, 1, 2))
    arranged = arrange(await process.read(path), layout)
    found = [
        page.text[block.start : block.end]
        for page, blocks in zip(arranged.pdf.pages, arranged.blocks, strict=True)
        for block in blocks
        if block.kind is BlockKind.CALLOUT
    ]
    assert found == ["WARNING\nThe burner stays hot.", "Wear thick gloves."]
