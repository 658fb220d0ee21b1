"""Reading order of OCR lines, and their grouping into rows of text."""

from __future__ import annotations

import cmath
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from storage.pdf.child.page_text import PageText, PageTransform, Row, write
from storage.text.word_boxes import SCALE

# Corners (x, y) from the reader's view: top left, top right, bottom right, bottom left.
Quad = NDArray[np.float32]

WHOLE = (0, 0, SCALE, SCALE)

# In radians. Lines within SKEW of the page's direction share its skew; those beyond MAX_TURN have a direction
# of their own, as along an edge.
SKEW, MAX_TURN = 0.1, 0.35

# Long lines needed on each side of a gap to make columns; fewer are cells of a table.
COLUMN_LINES = 4

# Ratio of width to height of a line that fills a column rather than a cell.
LONG = 9

# Minimum of lines in columns per line that crosses the gap; beyond that, another part of the page begins.
LINES_PER_CROSSING = 4

# Share of lines beginning mid-sentence from which a group counts as prose.
PROSE = 0.25

# Ratio of font size to the height of a detected line box.
LETTERS = 0.7

# Relative difference below which font sizes are equal, because boxes are not exact to a pixel.
SAME_SIZE = 0.2


@dataclass(frozen=True, slots=True)
class SeenLine:
    """A piece of text on one row, as detected by OCR."""

    words: tuple[tuple[str, Quad], ...]
    quad: Quad
    score: float  # score of the model, from MIN_SCORE to 1

    def turned_back(self, width: int) -> SeenLine:
        """Return the line in the image before it was rotated left, which was ``width`` pixels wide."""
        words = tuple((text, _turned_back(quad, width)) for text, quad in self.words)
        return SeenLine(words, _turned_back(self.quad, width), self.score)


def _turned_back(quad: Quad, width: int) -> Quad:
    return np.stack((width - quad[:, 1], quad[:, 0]), axis=1)


@dataclass(frozen=True, slots=True)
class _DeskewedLine:
    """A line at its position on a deskewed page."""

    line: SeenLine
    left: float
    right: float
    middle: float
    height: float

    @property
    def is_long(self) -> bool:
        return self.right - self.left >= LONG * self.height


Group = list[_DeskewedLine]


def page_of(
    lines: Sequence[SeenLine], dpi: float, size: tuple[int, int], number: int, clip: Sequence[int] | None
) -> dict[str, Any]:
    """Build page ``number``, or its part ``clip``, from the lines of an image of ``size`` (width, height).

    The page's score is the mean of its letters' scores, 0 if there are none.
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
        "words": page.words.to_base64(),
        "lines": page.lines,
        "score": round(sure / letters, 3) if letters else 0,
    }


def rows_of(lines: Sequence[SeenLine], dpi: float) -> list[Row]:
    """Return the lines as rows, column by column, with boxes in pixels of the image."""
    groups = [group for way in _ways(lines) for group in _arranged(way)]
    if not groups:
        return []
    heights = [one.height for group in groups for one in group for text, _ in one.line.words for _ in text]
    usual = median(heights) * LETTERS * 72 / dpi  # the prevailing font size, in points
    rows: list[Row] = []
    for block, group in enumerate(groups):
        rows += _rows(group, 1000 * block, dpi, usual)
    return rows


def _ways(lines: Sequence[SeenLine]) -> Iterator[Group]:
    """Yield the lines of each text direction, deskewed, the prevailing direction first."""
    while lines:
        angle = _angle(lines)
        is_own = [abs(_turn(line, angle)) < MAX_TURN for line in lines]
        yield [_place(line, angle) for line, own in zip(lines, is_own, strict=True) if own]
        lines = [line for line, own in zip(lines, is_own, strict=True) if not own]


def _angle(lines: Sequence[SeenLine]) -> float:
    """Return the text direction in radians: 0 is to the right, a quarter turn is down.

    It is the direction of the median letter, refined by the lines close to it, so that an edge or stamp has
    no effect.
    """
    about = _mean_angle(lines)
    lines = sorted(lines, key=lambda line: _turn(line, about))
    letters = [line for line in lines for text, _ in line.words for _ in text]
    about = _mean_angle([letters[len(letters) // 2]])
    return _mean_angle([line for line in lines if abs(_turn(line, about)) < SKEW])


def _mean_angle(lines: Iterable[SeenLine]) -> float:
    return cmath.phase(sum(map(_vector, lines)))


def _turn(line: SeenLine, angle: float) -> float:
    """Return the angle between a line and a direction, from minus to plus a half turn."""
    return cmath.phase(_vector(line) * cmath.rect(1, -angle))


def _vector(line: SeenLine) -> complex:
    """Return the vector from the line's first corner to its second."""
    return complex(*(line.quad[1] - line.quad[0]))


def _place(line: SeenLine, angle: float) -> _DeskewedLine:
    cos, sin = math.cos(angle), math.sin(angle)
    xs = [float(x) * cos + float(y) * sin for x, y in line.quad]
    ys = [float(y) * cos - float(x) * sin for x, y in line.quad]
    height = (ys[3] + ys[2] - ys[0] - ys[1]) / 2
    return _DeskewedLine(line, min(xs), max(xs), sum(ys) / 4, max(abs(height), 1.0))


def _arranged(lines: Group) -> list[Group]:
    """Return groups of lines in reading order; within a group, rows go across."""
    lines = sorted(lines, key=lambda one: one.middle)
    band = _column_band(lines)
    if band is None:
        return [lines]
    above, below = lines[: band.start], lines[band.end :]
    columns = _by_columns(lines[band.start : band.end], band.gap)
    return [*(_arranged(above) if above else ()), *columns, *(_arranged(below) if below else ())]


def _by_columns(lines: Group, gap: float) -> list[Group]:
    """Return the columns on both sides of a gap, in order with the lines that cross it."""
    groups: list[Group] = []
    for is_wide, run in groupby(lines, key=lambda one: one.left < gap < one.right):
        own = list(run)
        sides = (
            [own]
            if is_wide
            else [[one for one in own if (one.left >= gap) == side] for side in (False, True)]
        )
        groups += [group for side in sides if side for group in ([side] if is_wide else _arranged(side))]
    return groups


class _Band(NamedTuple):
    """A run of lines in two columns."""

    score: int  # lines in columns, minus a penalty for those that cross the gap
    start: int
    end: int
    gap: float


def _column_band(lines: Group) -> _Band | None:
    """Return the longest run of lines, sorted from the top, that a gap splits into columns."""
    gaps = {one.left - one.height / 2 for one in lines if one.is_long}
    bands = (band for gap in sorted(gaps) for band in _bands(lines, gap))
    return max((band for band in bands if _has_columns(lines[band.start : band.end], band.gap)), default=None)


def _bands(lines: Group, gap: float) -> Iterator[_Band]:
    """Yield runs of lines of which few cross the gap."""
    score = start = 0
    best = _Band(0, 0, 0, gap)
    for number, one in enumerate(lines, start=1):
        score += -LINES_PER_CROSSING if one.left < gap < one.right else 1
        best = max(best, _Band(score, start, number, gap))
        if score < 0 or number == len(lines):
            yield best
            score, start, best = 0, number, _Band(0, number, number, gap)


def _has_columns(lines: Group, gap: float) -> bool:
    """True if both sides are full, cover much the same height of the page, and are not cells of rows."""
    left, right = [one for one in lines if one.right <= gap], [one for one in lines if one.left >= gap]
    long_left, long_right = ([one for one in side if one.is_long] for side in (left, right))
    if min(len(long_left), len(long_right)) < COLUMN_LINES or _are_cells(left, right):
        return False
    (top, bottom), (other_top, other_bottom) = _span(long_left), _span(long_right)
    shared = min(bottom, other_bottom) - max(top, other_top)
    return shared > min(bottom - top, other_bottom - other_top) / 2


def _are_cells(left: Group, right: Group) -> bool:
    """True if every line of the shorter side has one of the other beside it, and neither side is prose."""
    fewer, more = sorted((left, right), key=len)
    return not (_is_prose(left) or _is_prose(right)) and all(
        any(_is_level(one, other) for other in more) for one in fewer
    )


def _is_prose(group: Group) -> bool:
    """True if sentences continue from line to line."""
    begins = [one.line.words[0][0][:1] for one in group]
    return sum(char.isalpha() and not char.isupper() for char in begins) >= PROSE * len(group)


def _span(group: Group) -> tuple[float, float]:
    middles = [one.middle for one in group]
    return min(middles), max(middles)


def _rows(group: Group, block: int, dpi: float, usual: float) -> list[Row]:
    """Return rows from the top; a wide gap begins a new block."""
    found: list[Group] = []
    for one in sorted(group, key=lambda one: one.middle):
        row = next((row for row in found[-3:] if _is_beside(row, one)), None)
        if row:
            row.append(one)
        else:
            found.append([one])
    rows: list[Row] = []
    before: _DeskewedLine | None = None
    for cells in found:
        cells.sort(key=lambda one: one.left)
        if before and cells[0].middle - before.middle > 0.8 * (before.height + cells[0].height):
            block += 1
        rows.append(_row(cells, block, dpi, usual))
        before = cells[0]
    return rows


def _is_beside(row: Group, one: _DeskewedLine) -> bool:
    """True if it is level with everything in the row and overlaps none of it."""
    reach = 0.5 * one.height
    return all(
        _is_level(one, other) and (one.left > other.right - reach or one.right < other.left + reach)
        for other in row
    )


def _is_level(one: _DeskewedLine, other: _DeskewedLine) -> bool:
    return abs(one.middle - other.middle) < 0.5 * min(one.height, other.height)


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
