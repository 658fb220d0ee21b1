"""Rendered ink of a page: areas drawn over text, and the shape of glyphs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from storage.pdf.child.glyphs.hidden_text import Rect, touches
from storage.pdf.child.mupdf import pymupdf

# In points; anything thicker is a bar.
MAX_RULE = 3.0

# Segments of a curve, of which one at least is neither horizontal nor vertical to this many points.
MIN_CURVE = 3
LEVEL = 0.05

# Minimum shorter side of an area that can hide a word, in points.
MIN_BAR = 4.0

# Colours with all components above this are invisible on white paper.
PALE = 0.94

# Of 255; a smaller difference from the background is invisible.
MIN_CONTRAST = 8

# Fraction of its outline that a bar fills, also in slanted print.
MIN_FILLED = 0.6

# Larger content streams are maps and plans, and each of their paths takes a kilobyte of memory.
MAX_CONTENTS = 1_000_000
FREE_TEXT = 2  # PDF_ANNOT_FREE_TEXT
# Operators that draw a path, paint it, or draw a form; a page without any has neither rules nor bars. Word
# processors clip each line of text by a path that is not painted. What is before a path's operator is checked
# last, since few words are named like one.
_PATHS = re.compile(rb"\s(?:[lcvy](?<=[\d.\s]\s.)|re(?<=[\d.\s]\s..))\s")
_PAINTING = re.compile(rb"\s[SsFfBb]\*?(?![^\s/\[(<%])")
_FORMS = re.compile(rb"/\S+\s+(?:Do|sh)(?![^\s/\[(<%])")


class PageInk:
    """Ink of one page, rendered at low resolution and only if a text looks hidden."""

    ZOOM = 0.5
    MAX_SIDE = 1000
    # Height in pixels of a glyph when its shape is examined.
    GLYPH_DOTS = 48

    def __init__(self, page: pymupdf.Page) -> None:
        self._page = page

    @cached_property
    def _zoom(self) -> float:
        shown = self._page.rect
        return float(min(self.ZOOM, self.MAX_SIDE / max(shown.width, shown.height, 1)))

    @cached_property
    def _picture(self) -> pymupdf.Pixmap:
        return self._page.get_pixmap(
            matrix=pymupdf.Matrix(self._zoom, self._zoom), colorspace=pymupdf.csGRAY, alpha=False
        )

    def is_white(self, box: Rect) -> bool:
        """True if most of the box is white; tolerates ink of neighbours and of overlapping text."""
        ink = self._samples(box)
        return sum(value > 0xE8 for value in ink) * 2 >= len(ink)

    def is_plain(self, box: Rect) -> bool:
        """True if nothing is visible in the middle of the box, whatever its colour."""
        x0, y0, x1, y1 = box
        height, edge = y1 - y0, min((x1 - x0) / 4, 1.5 / self._zoom)
        middle = (x0 + edge, y0 + 0.3 * height, x1 - edge, y0 + 0.75 * height)
        # Small pale print disappears at low resolution: render again what looks plain there.
        if _contrast(self._samples(middle)) >= MIN_CONTRAST:
            return False
        return _contrast(self._large(middle).samples) < MIN_CONTRAST

    def _samples(self, box: Rect) -> bytes:
        picture = self._picture
        shown = pymupdf.Rect(box) * self._page.rotation_matrix * self._zoom
        left, right = max(0, int(shown.x0)), max(0, int(shown.x1)) + 1
        rows = range(max(0, int(shown.y0)), min(picture.height, int(shown.y1) + 1))
        samples, stride, width = picture.samples, picture.stride, picture.width
        return b"".join(samples[row * stride + left : row * stride + min(right, width)] for row in rows)

    @cached_property
    def is_scan(self) -> bool:
        """True if one image covers four fifths of the page."""
        whole = self._page.rect * self._page.derotation_matrix
        pictures = [pymupdf.Rect(image["bbox"]) & whole for image in self._page.get_image_info()]
        return any(abs(picture) > 0.8 * abs(whole) for picture in pictures)

    def is_dash(self, box: Rect) -> bool | None:
        """True if the box contains only a horizontal bar, None if it is empty; an accent is no bar."""
        x0, y0, x1, y1 = box
        inset = (y1 - y0) / self.GLYPH_DOTS  # an image is rounded outwards, to the neighbours' ink
        picture = self._large((x0 + inset, y0, x1 - inset, y1))
        width = picture.width
        inked = [at for at, value in enumerate(picture.samples) if value < 0xA0]
        if not inked:
            return None
        rows, columns = {at // width for at in inked}, {at % width for at in inked}
        is_full = len(inked) >= MIN_FILLED * len(rows) * len(columns)
        return max(rows) - min(rows) + 1 <= self.GLYPH_DOTS / 5 and len(columns) > len(rows) and is_full

    def _large(self, box: Rect) -> pymupdf.Pixmap:
        """Render a part of the page, GLYPH_DOTS high."""
        zoom = self.GLYPH_DOTS / max(box[3] - box[1], 1)
        return self._page.get_pixmap(
            matrix=pymupdf.Matrix(zoom, zoom),
            clip=pymupdf.Rect(box) * self._page.rotation_matrix,
            colorspace=pymupdf.csGRAY,
            alpha=False,
        )

    @cached_property
    def fields(self) -> list[Rect]:
        """Boxes of form values and of free-text annotations."""
        fields = self._page.widgets() if self._page.first_widget else ()
        typed = self._page.annots(types=[FREE_TEXT]) if self._page.first_annot else ()
        return [tuple(one.rect) for one in (*fields, *typed)]

    @cached_property
    def _drawings(self) -> list[dict[str, Any]]:
        contents = self._page.read_contents()
        has_paths = _PATHS.search(contents) and _PAINTING.search(contents)
        if not (has_paths or _FORMS.search(contents) or self._page.first_annot):
            return []
        forms = (form[0] for form in self._page.get_xobjects())
        size = len(contents) + sum(len(self._page.parent.xref_stream_raw(form) or b"") for form in forms)
        return list(self._page.get_cdrawings()) if size <= MAX_CONTENTS else []

    @cached_property
    def rules(self) -> list[Rect]:
        """Visible straight lines, horizontal or vertical, each as (x0, y0, x1, y1) of its centre line."""
        return [rule for drawing in self._drawings if _is_seen(drawing) for rule in _rules(drawing)]

    @cached_property
    def bars(self) -> list[Rect]:
        """Filled areas that may hide what was printed before them."""
        return [
            drawing["rect"]
            for drawing in self._drawings
            if drawing.get("fill") is not None and _is_large(drawing["rect"])
        ]

    @cached_property
    def covering_bars(self) -> list[Rect]:
        """Filled boxes that are drawn after a text that they touch."""
        texts: list[Rect] = []
        found: list[Rect] = []
        for kind, box in self._page.get_bboxlog():
            if kind.endswith("-text"):
                texts.append(box)
            elif kind == "fill-path" and _is_large(box) and any(touches(box, text) for text in texts):
                found.append(box)
        return found


def _contrast(samples: bytes) -> int:
    return max(samples, default=0) - min(samples, default=0)


def _is_large(box: Rect) -> bool:
    return box[2] - box[0] >= MIN_BAR and box[3] - box[1] >= MIN_BAR


def _is_seen(drawing: dict[str, Any]) -> bool:
    color: Sequence[float] = drawing.get("color") or drawing.get("fill") or ()
    opacity = drawing.get("stroke_opacity" if drawing.get("color") else "fill_opacity")
    return opacity != 0 and min(color, default=0) < PALE


def _rules(drawing: dict[str, Any]) -> Iterator[Rect]:
    """Yield the horizontal and vertical lines, and thin rectangles as lines, but no parts of a curve."""
    items = drawing["items"]
    curves = _curves(items) if len(items) >= MIN_CURVE else ()
    for number, item in enumerate(items):
        if item[0] == "l" and number not in curves:
            (x0, y0), (x1, y1) = item[1], item[2]
        elif item[0] == "re":
            x0, y0, x1, y1 = item[1]
            if y1 - y0 <= MAX_RULE:
                y0 = y1 = (y0 + y1) / 2
            elif x1 - x0 <= MAX_RULE:
                x0 = x1 = (x0 + x1) / 2
        else:
            continue
        if abs(y1 - y0) < 1 or abs(x1 - x0) < 1:
            yield min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)


def _curves(items: Sequence[Any]) -> set[int]:
    """Return the numbers of the segments of curves, which cross the labels of a chart but strike nothing."""
    found: set[int] = set()
    run: list[int] = []
    for number, item in enumerate((*items, ("end",))):
        if run and (item[0] != "l" or item[1] != items[run[-1]][2]):
            is_curve = len(run) >= MIN_CURVE and any(_is_slanted(*items[one][1:3]) for one in run)
            found.update(run if is_curve else ())
            run = []
        if item[0] == "l":
            run.append(number)
    return found


def _is_slanted(start: Sequence[float], end: Sequence[float]) -> bool:
    return min(abs(end[0] - start[0]), abs(end[1] - start[1])) > LEVEL
