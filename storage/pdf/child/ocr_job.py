"""What the limited child of kind "ocr" does with one page: draw it, and read the picture."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from storage.pdf.child.document import (
    PAGE_FAULTS,
    Fault,
    answer,
    is_out_of_memory,
    note_libraries,
    page_count,
    to_line,
)
from storage.pdf.child.mupdf import pymupdf
from storage.pdf.child.ocr_engine import OcrEngine, Picture
from storage.pdf.child.ocr_layout import WHOLE, page_of
from storage.text.word_boxes import SCALE

# How a page is drawn for reading: as finely as its picture is, within these limits.
MIN_DPI, MAX_SIDE, MIN_SIDE = 150, 3000, 64

# Points of paper around what is printed.
MARGIN = 10

# Reading pictures takes seconds a page, and everything else comes first.
NICENESS = 15

_engines: list[OcrEngine] = []


def warm_up() -> None:
    """Load the models and use all of them once, so that no child has to find a file."""
    _engines.append(OcrEngine())
    document = pymupdf.open()
    for turn in (0, 90):
        page = document.new_page(width=300, height=200)
        page.insert_text((30, 60), "Footnote reads pictures", fontsize=16)
        page.set_rotation(turn)
    with pymupdf.open(stream=document.tobytes(), filetype="pdf") as copy:
        for number in (1, 2):
            for piece in _read({"page": number}, copy):
                len(piece)
    note_libraries()
    os.nice(NICENESS)  # last: whoever starts this waits


def perform(job: dict[str, Any], source: int, out: int) -> None:
    """Read page ``job["page"]`` of the PDF open at ``source`` from its picture, or ``job["clip"]`` of it.

    Writes one line of JSON to ``out``: the page's number, text, words and lines as a reading has them,
    and the mean score of its letters, 0 when there is none.
    """
    answer(_read, job, source, out)


def _read(job: dict[str, Any], document: pymupdf.Document) -> Iterator[bytes]:
    count, number = page_count(document), job["page"]
    if not 1 <= number <= count:
        raise Fault("NoPages", f"the PDF has {count} pages and no page {number}")
    clip = job.get("clip")
    part = clip or printed_part(document, number)
    picture, dpi = draw(document, number, part)
    height, width = picture.shape[:2]
    page = page_of(_engines[0].read(picture, dpi), dpi, (width, height), number, part)
    yield to_line({**page, "clip": clip})


def printed_part(document: pymupdf.Document, number: int) -> tuple[int, ...]:
    """The part of a page with all that is printed, as a receipt on a sheet of paper; without a picture, all.

    What is printed is only known from running the page, which takes long where forms draw forms.
    """
    try:
        page = document[number - 1]
        if not page.get_images():
            return WHOLE
        ink = pymupdf.Rect(pymupdf.EMPTY_RECT())
        for _, box in page.get_bboxlog():
            ink |= pymupdf.Rect(box)
        shown = (ink * page.rotation_matrix + (-MARGIN, -MARGIN, MARGIN, MARGIN)) & page.rect
        part = shown * pymupdf.Matrix(SCALE / page.rect.width, SCALE / page.rect.height)
    except PAGE_FAULTS as error:
        if is_out_of_memory(error):
            raise
        return WHOLE
    return tuple(part.round()) if part else WHOLE


def draw(document: pymupdf.Document, number: int, clip: Sequence[int]) -> tuple[Picture, float]:
    """Draw a part of a page as displayed; returns the picture and its dots an inch."""
    try:
        page = document[number - 1]
        x0, x1 = (page.rect.width * side / SCALE for side in clip[0::2])
        y0, y1 = (page.rect.height * side / SCALE for side in clip[1::2])
        part = pymupdf.Rect(x0, y0, x1, y1)
        long, short = max(part.width, part.height, 1), max(1, min(part.width, part.height))
        zoom = min(max(_own_dpi(page, part) / 72, MIN_SIDE / short), MAX_SIDE / long)
        drawn = page.get_pixmap(
            matrix=pymupdf.Matrix(zoom, zoom), clip=part, colorspace=pymupdf.csRGB, alpha=False
        )
    except PAGE_FAULTS as error:
        if is_out_of_memory(error):
            raise
        raise Fault("NoPages", f"page {number} is damaged and cannot be drawn") from error
    flat = np.frombuffer(drawn.samples, np.uint8)
    rows = flat.reshape(drawn.height, drawn.stride)[:, : 3 * drawn.width]
    return np.ascontiguousarray(rows.reshape(drawn.height, drawn.width, 3)[:, :, ::-1]), zoom * 72


def _own_dpi(page: pymupdf.Page, part: pymupdf.Rect) -> float:
    """Dots an inch of the largest picture in a part of the page."""
    if not page.get_images():
        return MIN_DPI
    shown = part * page.derotation_matrix
    pictures = [(abs(pymupdf.Rect(one["bbox"]) & shown), one) for one in page.get_image_info()]
    area, largest = max(pictures, key=itemgetter(0), default=(0, None))
    if not area or largest is None:
        return MIN_DPI
    dots = largest["width"] * largest["height"] / abs(pymupdf.Rect(largest["bbox"]))
    return float(max(MIN_DPI, 72 * math.sqrt(dots)))
