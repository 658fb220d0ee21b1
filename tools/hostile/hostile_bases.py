"""Healthy PDFs to be damaged: committed files of other programs, and files made with PyMuPDF."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pymupdf

from tools.hostile.hostile_active import locked

ROOT = Path(__file__).parents[2]


@cache
def bases() -> tuple[bytes, ...]:
    """Return the files: always the same bytes in the same order."""
    real = [
        *sorted((ROOT / "bot" / "cli" / "setup" / "samples").glob("*.pdf")),
        *sorted((ROOT / "tests" / "pdfs").glob("*.pdf")),
    ]
    return (*(path.read_bytes() for path in real), *_made(), locked(b"", b"owner"))


def _made() -> list[bytes]:
    document = pymupdf.open()
    for number in range(1, 8):
        _write(document.new_page(), number)
    document.set_toc([[1, "Part", 1], [2, "Chapter", 2], [2, "Chapter", 3], [1, "Part", 5]])
    document.set_metadata({"title": "Backup plan", "author": "IT"})
    document.set_page_labels([{"startpage": 0, "style": "r"}, {"startpage": 3, "prefix": "A-", "style": "D"}])
    document.embfile_add("table.csv", b"a,b\n1,2\n")
    for number in range(1, document.xref_length()):
        _forget_dates(document, number)
    ways = ({"deflate": False}, {"deflate": True, "garbage": 3}, {"use_objstms": 1, "deflate": True})
    return [document.tobytes(no_new_id=True, **way) for way in ways]


def _forget_dates(document: pymupdf.Document, number: int) -> None:
    for key in ("CreationDate", "ModDate", "M", "Params"):
        if document.xref_get_key(number, key)[0] != "null":
            document.xref_set_key(number, key, "null")


def _write(page: pymupdf.Page, number: int) -> None:
    page.insert_text((72, 72), f"Backups on page {number}", fontsize=18)
    for line in range(20):
        page.insert_text(
            (72, 110 + 14 * line), f"{line}. Backups run daily at {line}:00; report to step {number}."
        )
    picture = pymupdf.Pixmap(pymupdf.csRGB, pymupdf.IRect(0, 0, 40, 40))
    picture.clear_with(40 * number % 255)
    page.insert_image((400, 500, 500, 600), pixmap=picture)
    page.draw_circle((300, 600), 20 + number, color=(0, 0.4, 0))
    page.add_highlight_annot((72, 60, 200, 80))
    page.add_freetext_annot((72, 700, 300, 730), "A note beside the text")
    field = pymupdf.Widget()
    field.field_name, field.field_type = f"name{number}", pymupdf.PDF_WIDGET_TYPE_TEXT
    field.rect = pymupdf.Rect(72, 740, 200, 760)
    page.add_widget(field)
    page.insert_link(
        {"kind": pymupdf.LINK_URI, "from": pymupdf.Rect(72, 60, 99, 80), "uri": "https://example.org"}
    )
    page.set_rotation(90 * (number % 4))
