"""Layout job: detects the regions of a PDF's pages.

It extracts no text: the text job reads every character with its position, and regions and words are joined in
``ingestion/layout/reading_order.py``. The analysis is PyMuPDF's model, which sees one page at a time. It
keeps state per process, and a process handles one file.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import onnxruntime


class _ChildOptions(onnxruntime.SessionOptions):  # type: ignore[misc]
    """Session options for a forked child: without threads, of which it has none, and with a memory arena.

    PyMuPDF disables the arena, so that a long process does not grow. A child ends with its file; without an
    arena each page maps 120 MB anew, a third of its time.
    """

    enable_cpu_mem_arena = property(lambda _: True, lambda _, __: None)

    def __init__(self) -> None:
        super().__init__()
        self.intra_op_num_threads = self.inter_op_num_threads = 1


onnxruntime.SessionOptions = _ChildOptions  # before PyMuPDF, which loads its models on import

import pymupdf  # noqa: E402
from pymupdf4llm.helpers.document_layout import LayoutBox, parse_document  # noqa: E402

from storage.pdf.child.document import (  # noqa: E402
    PAGE_FAULTS,
    is_out_of_memory,
    page_count,
    record_baseline,
    run_job,
    to_line,
)
from storage.pdf.child.frames import find_frames  # noqa: E402
from storage.pdf.child.shapes import count_shapes  # noqa: E402
from storage.text.callouts import names_callout  # noqa: E402
from storage.text.word_boxes import SCALE  # noqa: E402

# Runs for hours in the background.
NICENESS = 15

# Text direction on the stored page ((0, 1) is down) -> page rotation that makes it upright.
_ROTATIONS = {(1, 0): 0, (0, -1): 90, (-1, 0): 180, (0, 1): 270}

# PyMuPDF's class names; all others are text.
_KINDS = {
    "title": "heading",
    "section-header": "heading",
    "list-item": "item",
    "table": "table",
    "picture": "figure",
    "caption": "caption",
    "footnote": "footnote",
    "page-header": "running",
    "page-footer": "running",
}


def perform(job: dict[str, Any], source: int, out: int) -> None:
    """Write the regions of pages ``first`` to ``last`` (from 1), one line per page, and an end marker."""
    run_job(_lay_out, job, source, out)


def _lay_out(job: dict[str, Any], document: pymupdf.Document) -> Iterator[bytes]:
    last = min(job["last"], page_count(document))
    for number in range(job["first"], last + 1):
        yield to_line({"number": number, **_page(document, number - 1)})
    yield to_line({"end": last})


def _page(document: pymupdf.Document, index: int) -> dict[str, Any]:
    """Return a page's regions in reading order, None if the analysis failed, and its rotation."""
    try:
        lines = _lines(document[index])
        turn = _rotate_upright(document[index], lines)
        _crop_media_box(document[index])
        (page,) = parse_document(document, pages=[index], use_ocr=False).pages
        has_callout = _name_callout(lines) or (index > 0 and _name_callout(_lines(document[index - 1])))
        drawings = _drawings(document[index]) if has_callout or any(map(_is_figure, page.boxes)) else []
        parts = [_part(box, page.width, page.height, drawings) for box in page.boxes]
        frames = find_frames(drawings, page.height) if has_callout else ()
        return {
            "turn": turn,
            "parts": parts,
            "frames": [_place(frame, page.width, page.height) for frame in frames],
        }
    except PAGE_FAULTS as error:
        if is_out_of_memory(error):
            raise
        return {"parts": None}


def _lines(page: pymupdf.Page) -> list[dict[str, Any]]:
    return [line for block in page.get_text("dict", flags=0)["blocks"] for line in block["lines"]]


def _name_callout(lines: Sequence[dict[str, Any]]) -> bool:
    return any(names_callout(span["text"]) for line in lines for span in line["spans"])


def _rotate_upright(page: pymupdf.Page, lines: Sequence[dict[str, Any]]) -> int:
    """Rotate a page whose letters mostly lie on their side; return the clockwise quarter turns."""
    letters: Counter[tuple[int, int]] = Counter()
    for line in lines:
        across, down = line["dir"]
        letters[round(across), round(down)] += sum(len(span["text"]) for span in line["spans"])
    way = max(letters, key=letters.__getitem__, default=(1, 0))
    turn: int = (_ROTATIONS.get(way, page.rotation) - page.rotation) % 360 if letters else 0
    page.set_rotation(page.rotation + turn)
    return turn // 90


def _crop_media_box(page: pymupdf.Page) -> None:
    """Set the media box to the crop box: the analysis misplaces regions on rotated, cropped pages."""
    crop, media = page.cropbox, page.mediabox
    if crop != media:
        page.set_mediabox(pymupdf.Rect(crop.x0, media.y1 - crop.y1, crop.x1, media.y1 - crop.y0))


def _is_figure(box: LayoutBox) -> bool:
    return _KINDS.get(box.boxclass) == "figure"


def _drawings(page: pymupdf.Page) -> list[dict[str, Any]]:
    """Return the drawings of a page; none if they cannot be parsed."""
    try:
        found: list[dict[str, Any]] = page.get_cdrawings()
    except PAGE_FAULTS as error:
        if is_out_of_memory(error):
            raise
        return []
    return found


def _part(box: LayoutBox, width: float, height: float, drawings: Sequence[dict[str, Any]]) -> list[Any]:
    """Return [kind, box, rows of cells, shapes of a figure]."""
    rows = (box.table or {}).get("cells") or ()
    cells = [[cell and _place(cell, width, height) for cell in row] for row in rows]
    rect = (box.x0, box.y0, box.x1, box.y1)
    shapes = count_shapes(drawings, rect) if _is_figure(box) else ()
    return [_KINDS.get(box.boxclass, "text"), _place(rect, width, height), cells, shapes]


def _place(rect: Sequence[float], width: float, height: float) -> list[int]:
    """Return a box in SCALE-ths of the displayed page."""
    sides = (rect[0] / width, rect[1] / height, rect[2] / width, rect[3] / height)
    return [round(min(max(side, 0), 1) * SCALE) for side in sides]


def warm_up() -> None:
    """Run everything once that jobs will use."""
    with pymupdf.open() as document:
        document.new_page().insert_text((72, 72), "Footnote")
        parse_document(document, use_ocr=False)
    record_baseline()
    os.nice(NICENESS)  # last, because the starting process waits
