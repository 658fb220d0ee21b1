"""Puts the lines that OCR saw into the order in which a person reads them, and into rows of text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from storage.pdf.child.page_text import PageText, PageTransform, Row, write
from storage.text.word_boxes import SCALE

Quad = NDArray[np.float32]
"""Four corners (x, y) as its reader sees them: top left, top right, bottom right, bottom left."""

WHOLE = (0, 0, SCALE, SCALE)

COLUMN_LINES = 4
"""Long lines on each side of a gap that make two columns of it; fewer are cells of a table."""

LONG = 9
"""Width to height of a line that fills a column rather than a cell."""

ACROSS = 0.2
"""Most of a region's lines that may run across both columns: titles and wide tables."""

LETTERS = 0.7
"""Font size to the height of the box that is found around a line."""

SAME_SIZE = 0.2
"""Sizes that differ by less are one: the boxes are not exact to a pixel."""


@dataclass(frozen=True, slots=True)
class SeenLine:
    """Piece of text in one row, as OCR saw it."""

    words: tuple[tuple[str, Quad], ...]
    quad: Quad
    score: float  # confidence of the model, from MIN_SCORE to 1

    def turned_back(self, width: int) -> SeenLine:
        """The same line in the picture before it was turned to the left, which was so many pixels wide."""
        words = tuple((text, _turned_back(quad, width)) for text, quad in self.words)
        return SeenLine(words, _turned_back(self.quad, width), self.score)


def _turned_back(quad: Quad, width: int) -> Quad:
    return np.stack((width - quad[:, 1], quad[:, 0]), axis=1)


@dataclass(frozen=True, slots=True)
class _Placed:
    """A line where it would stand if the page stood straight."""

    line: SeenLine
    left: float
    right: float
    middle: float
    height: float

    @property
    def is_long(self) -> bool:
        return self.right - self.left >= LONG * self.height


Group = list[_Placed]


def page_of(
    lines: Sequence[SeenLine], dpi: float, size: tuple[int, int], number: int, clip: Sequence[int] | None
) -> dict[str, Any]:
    """Make page ``number``, or its part ``clip``, of the lines of a picture of ``size`` (width, height).

    The score is the mean of its letters' scores, 0 when there is none.
    """
    x0, y0, x1, y1 = clip or WHOLE
    page = PageText(number)
    to_page = PageTransform((x1 - x0) / size[0], 0, 0, (y1 - y0) / size[1], x0, y0)
    write(rows_of(lines, dpi), to_page, set(), page)
    letters = sum(len(text) for line in lines for text, _ in line.words)
    sure = sum(line.score * len(text) for line in lines for text, _ in line.words)
    return {
        "number": number,
        "clip": clip,
        "text": page.text,
        "words": page.words.to_text(),
        "lines": page.lines,
        "score": round(sure / letters, 3) if letters else 0,
    }


def rows_of(lines: Sequence[SeenLine], dpi: float) -> list[Row]:
    """The lines as rows, column by column, with boxes in pixels of the picture they were seen in."""
    if not lines:
        return []
    angle = _angle(lines)
    placed = [_place(line, angle) for line in lines]
    groups = _arranged(placed)
    heights = [one.height for one in placed for text, _ in one.line.words for _ in text]
    usual = median(heights) * LETTERS * 72 / dpi  # the font size of most letters, in points
    rows: list[Row] = []
    for block, group in enumerate(groups):
        rows += _rows(group, 1000 * block, dpi, usual)
    return rows


def _angle(lines: Sequence[SeenLine]) -> float:
    """The direction in which most text runs, in radians: 0 is to the right, a quarter is down."""
    across = sum(float(line.quad[1][0] - line.quad[0][0]) for line in lines)
    down = sum(float(line.quad[1][1] - line.quad[0][1]) for line in lines)
    return math.atan2(down, across)


def _place(line: SeenLine, angle: float) -> _Placed:
    cos, sin = math.cos(angle), math.sin(angle)
    xs = [float(x) * cos + float(y) * sin for x, y in line.quad]
    ys = [float(y) * cos - float(x) * sin for x, y in line.quad]
    height = (ys[3] + ys[2] - ys[0] - ys[1]) / 2
    return _Placed(line, min(xs), max(xs), sum(ys) / 4, max(abs(height), 1.0))


def _arranged(lines: Group) -> list[Group]:
    """Groups of lines that are read one after the other; inside a group rows go across."""
    gap = _column_gap(lines)
    if gap is None:
        return [lines]
    groups: list[Group] = []
    sides: tuple[Group, Group] = ([], [])
    wide: Group = []
    for one in sorted(lines, key=lambda one: one.middle):
        if one.left < gap < one.right:
            groups += _closed(*sides)
            sides = ([], [])
            wide.append(one)
            continue
        if wide:
            groups.append(wide)
            wide = []
        sides[one.left >= gap].append(one)
    return groups + _closed(*sides) + ([wide] if wide else [])


def _closed(left: Group, right: Group) -> list[Group]:
    """Both sides of a gap, the left one first, each of which may have columns again."""
    return [group for side in (left, right) if side for group in _arranged(side)]


def _column_gap(lines: Group) -> float | None:
    """Where a gap between two columns is, if there is one: few lines cross it, and both sides are full."""
    best: tuple[int, float] | None = None
    for x in sorted({one.left - one.height / 2 for one in lines if one.is_long}):
        crossing = sum(one.left < x < one.right for one in lines)
        left = [one for one in lines if one.right <= x and one.is_long]
        right = [one for one in lines if one.left >= x and one.is_long]
        if crossing > ACROSS * len(lines) or not _stand_beside(left, right):
            continue
        if best is None or crossing < best[0]:
            best = crossing, x
    return best and best[1]


def _stand_beside(left: Group, right: Group) -> bool:
    """Both sides are full, over much the same part of the page."""
    if min(len(left), len(right)) < COLUMN_LINES:
        return False
    (top, bottom), (other_top, other_bottom) = _span(left), _span(right)
    shared = min(bottom, other_bottom) - max(top, other_top)
    return shared > min(bottom - top, other_bottom - other_top) / 2


def _span(group: Group) -> tuple[float, float]:
    middles = [one.middle for one in group]
    return min(middles), max(middles)


def _rows(group: Group, block: int, dpi: float, usual: float) -> list[Row]:
    """Rows from the top; a wide gap above one begins a block."""
    found: list[Group] = []
    for one in sorted(group, key=lambda one: one.middle):
        row = next((row for row in found[-3:] if _is_beside(row, one)), None)
        if row:
            row.append(one)
        else:
            found.append([one])
    rows: list[Row] = []
    before: _Placed | None = None
    for cells in found:
        cells.sort(key=lambda one: one.left)
        if before and cells[0].middle - before.middle > 0.8 * (before.height + cells[0].height):
            block += 1
        rows.append(_row(cells, block, dpi, usual))
        before = cells[0]
    return rows


def _is_beside(row: Group, one: _Placed) -> bool:
    """On the same height, and next to everything that is in the row already."""
    is_level = all(abs(one.middle - other.middle) < 0.5 * min(one.height, other.height) for other in row)
    reach = 0.5 * one.height
    return is_level and all(one.left > other.right - reach or one.right < other.left + reach for other in row)


def _row(cells: Group, block: int, dpi: float, usual: float) -> Row:
    row = Row(block, is_bold=False)
    end: float | None = None
    for one in cells:
        if end is not None and one.left - end > 0.5 * one.height:
            row.gaps.add(len(row.words))
        for text, quad in one.line.words:
            xs, ys = quad[:, 0].tolist(), quad[:, 1].tolist()
            row.words.append([text, min(xs), min(ys), max(xs), max(ys)])
        size = one.height * LETTERS * 72 / dpi
        size = round(usual if abs(size - usual) < SAME_SIZE * usual else size, 1)
        row.sizes[size] = row.sizes.get(size, 0) + sum(len(text) for text, _ in one.line.words)
        end = one.right
    return row
