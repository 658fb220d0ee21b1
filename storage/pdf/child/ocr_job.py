"""OCR job: renders a page and reads the image."""

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
    is_out_of_memory,
    page_count,
    record_baseline,
    run_job,
    to_line,
)
from storage.pdf.child.mupdf import pymupdf
from storage.pdf.child.ocr_engine import OcrEngine, Picture
from storage.pdf.child.ocr_layout import WHOLE, page_of
from storage.text.word_boxes import SCALE

# Rendering resolution: that of the page's largest image, within these limits.
MIN_DPI, MAX_SIDE, MIN_SIDE = 150, 3000, 64

# Margin around the printed area, in points.
MARGIN = 10

# OCR takes seconds per page, and everything else has priority.
NICENESS = 15

_engines: list[OcrEngine] = []


def warm_up() -> None:
    """Load and run all models once, so that no child needs to open a file."""
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
    record_baseline()
    os.nice(NICENESS)  # last, because the starting process waits


def perform(job: dict[str, Any], source: int, out: int) -> None:
    """Read page ``job["page"]`` of the PDF open at ``source``, or its part ``job["clip"]``, by OCR.

    Writes one line of JSON to ``out``: the page's number, text, words and lines in the format of a text job,
    and the mean score of its letters, 0 if there are none.
    """
    run_job(_read, job, source, out)


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
    """Return the printed part of a page, as of a receipt on a sheet; the whole page if it has no image.

    Finding it means running the page, which is slow where forms draw forms.
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
    """Render a part of a page as displayed; return the image and its resolution in dpi."""
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
    """Return the resolution in dpi of the largest image in a part of the page."""
    if not page.get_images():
        return MIN_DPI
    shown = part * page.derotation_matrix
    pictures = [(abs(pymupdf.Rect(one["bbox"]) & shown), one) for one in page.get_image_info()]
    area, largest = max(pictures, key=itemgetter(0), default=(0, None))
    if not area or largest is None:
        return MIN_DPI
    dots = largest["width"] * largest["height"] / abs(pymupdf.Rect(largest["bbox"]))
    return float(max(MIN_DPI, 72 * math.sqrt(dots)))
