"""Reads pages with a bare library: ``library_program.py pymupdf|pymupdf4llm|words ANSWER``, files on stdin.

A separate program, because only the sandboxed child may load PyMuPDF. Writes the findings by file, and the
CPU seconds without start-up.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

Reader = Callable[[str, Sequence[int]], dict[str, Any]]
HEADINGS = {"title", "section-header"}


def main() -> None:
    """Read the files listed on stdin."""
    import pymupdf  # noqa: F401, PLC0415  (its start is not counted)
    from pymupdf4llm.helpers import document_layout  # noqa: F401, PLC0415

    readers: dict[str, Reader] = {"pymupdf": read_bare, "pymupdf4llm": read_layout, "words": read_words}
    read, answer = readers[sys.argv[1]], Path(sys.argv[2])
    files = json.load(sys.stdin)
    started = time.process_time()
    said = {name: read(path, pages) for name, (path, pages) in files.items()}
    seconds = time.process_time() - started
    answer.write_text(json.dumps({"files": said, "seconds": seconds}), encoding="utf-8")


def read_bare(path: str, pages: Sequence[int]) -> dict[str, Any]:
    """Return PyMuPDF's text, tables without layout, pictures and clusters of drawings."""
    import pymupdf  # noqa: PLC0415

    seen: dict[str, Any] = {"headings": [], "tables": {}, "text": {}, "figures": {}}
    with pymupdf.open(path) as document:
        for number in pages:
            page = document[number - 1]
            boxes = [one["bbox"] for one in page.get_image_info()] + page.cluster_drawings()
            seen["text"][number] = page.get_text()
            seen["tables"][number] = [table.extract() for table in page.find_tables(use_layout=False).tables]
            seen["figures"][number] = [_fractions(page, box) for box in boxes]
    return seen


def read_layout(path: str, pages: Sequence[int]) -> dict[str, Any]:
    """Return the findings of pymupdf4llm with its layout model, without OCR."""
    from pymupdf4llm.helpers.document_layout import parse_document  # noqa: PLC0415

    seen: dict[str, Any] = {"headings": [], "tables": {}, "text": {}, "figures": {}}
    parsed = parse_document(path, pages=[number - 1 for number in pages], use_ocr=False)
    for number, page in zip(pages, parsed.pages, strict=True):
        seen["headings"] += [(number, _text(box)) for box in page.boxes if box.boxclass in HEADINGS]
        seen["tables"][number] = [box.table["extract"] for box in page.boxes if box.table]
        seen["text"][number] = "\n".join(map(_text, page.boxes))
        seen["figures"][number] = [
            (box.x0 / page.width, box.y0 / page.height, box.x1 / page.width, box.y1 / page.height)
            for box in page.boxes
            if box.boxclass == "picture"
        ]
    return seen


def _text(box: Any) -> str:
    """Return the text of a box; a table row by row."""
    if box.table:
        return "\n".join(_spaced(row) for row in box.table["extract"])
    return "\n".join(_line(line["spans"]) for line in box.textlines or ())


def _line(spans: Sequence[Any]) -> str:
    """Return spans joined as the library itself does: with a space at every gap."""
    text, end = "", 0.0
    for span in spans:
        text += " " * (text != "" and span["bbox"][0] - end > 1) + span["text"]
        end = span["bbox"][2]
    return text


def _spaced(cells: Iterable[str | None]) -> str:
    return " ".join(filter(None, cells))


def read_words(path: str, pages: Sequence[int]) -> dict[str, Any]:
    """Return the words of each page with their boxes as displayed.

    Ignores /ActualText: an empty one hides words that are visible.
    """
    import pymupdf  # noqa: PLC0415

    flags = pymupdf.TEXTFLAGS_WORDS | pymupdf.TEXT_IGNORE_ACTUALTEXT
    with pymupdf.open(path) as document:
        return {
            str(number): [
                (_fractions(page, pymupdf.Rect(word[:4]) * page.rotation_matrix), *word[4:7])
                for word in page.get_text("words", flags=flags)
            ]
            for number in pages
            for page in [document[number - 1]]
        }


def _fractions(page: Any, box: Sequence[float]) -> list[float]:
    """Return a box as fractions of the displayed page."""
    width, height = page.rect.width, page.rect.height
    return [box[0] / width, box[1] / height, box[2] / width, box[3] / height]


if __name__ == "__main__":
    main()
