"""Chart shapes: counts bars on a common base, data lines, and slices around a centre.

Pure geometry on PyMuPDF's drawings, used to guess the chart type of a figure.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from storage.pdf.models import Shapes

Rect = tuple[float, float, float, float]
Point = tuple[float, float]

# In points; anything thinner is a rule.
MIN_SIDE = 2.0
# Tolerance in points for equal positions.
NEAR = 1.5
# Segments of a data line; fewer are an axis, a bracket or an arrow.
MIN_STEPS = 3
# Minimum extent of a data line, as fractions of the figure.
LINE_WIDTH, LINE_HEIGHT = 0.3, 0.03


def count_shapes(drawings: Iterable[dict[str, Any]], figure: Rect) -> Shapes:
    """Count the shapes in a figure; ``drawings`` are those of its page, from ``Page.get_cdrawings``."""
    inside = [one for one in drawings if _is_inside(one["rect"], figure)]
    filled = [one for one in inside if one.get("fill") is not None and min(one["fill"], default=1) < 1]
    return Shapes(
        _bars([rect for one in filled for rect in _rectangles(one)]),
        _lines(inside, figure),
        _slices(filled),
    )


def _is_inside(rect: Rect, figure: Rect) -> bool:
    return (
        figure[0] - NEAR <= rect[0]
        and rect[2] <= figure[2] + NEAR
        and figure[1] - NEAR <= rect[1]
        and rect[3] <= figure[3] + NEAR
    )


def _rectangles(drawing: dict[str, Any]) -> Iterator[Rect]:
    """Yield the filled rectangles; a polygon of vertical and horizontal sides counts as one."""
    items = drawing["items"]
    boxes = [item[1] for item in items if item[0] == "re"]
    if not boxes and items and all(item[0] == "l" and _is_straight(*item[1:3]) for item in items):
        boxes = [drawing["rect"]]
    yield from (box for box in boxes if box[2] - box[0] >= MIN_SIDE and box[3] - box[1] >= MIN_SIDE)


def _is_straight(start: Point, end: Point) -> bool:
    return abs(start[0] - end[0]) < NEAR or abs(start[1] - end[1]) < NEAR


def _bars(boxes: Iterable[Rect]) -> int:
    """Return the most bars with a common base and width but different heights, upright or lying."""
    groups: defaultdict[tuple[str, int, int], set[tuple[int, int]]] = defaultdict(set)
    for x0, y0, x1, y1 in boxes:
        groups["standing", _round(y1), _round(x1 - x0)].add((_round(x0), _round(y0)))
        groups["lying", _round(x0), _round(y1 - y0)].add((_round(y0), _round(x1)))
    return max((len(group) for group in groups.values() if len({end for _, end in group}) > 1), default=0)


def _round(length: float) -> int:
    return round(length / NEAR)


def _lines(drawings: Iterable[dict[str, Any]], figure: Rect) -> int:
    """Count runs of strokes, each beginning where the previous one ends, that advance to one side."""
    runs: list[list[Point]] = []
    strokes = (item for one in drawings if one["type"] == "s" for item in one["items"] if item[0] in "lc")
    for start, end in ((item[1], item[-1]) for item in strokes):
        if runs and _goes_on(runs[-1], start, end):
            runs[-1].append(end)
        else:
            runs.append([start, end])
    return sum(_shows_data(run, figure) for run in runs)


def _goes_on(run: Sequence[Point], start: Point, end: Point) -> bool:
    (before, _), (x, y) = run[-2], run[-1]
    is_joined = abs(x - start[0]) < NEAR and abs(y - start[1]) < NEAR
    return is_joined and (x - before) * (end[0] - start[0]) > 0


def _shows_data(run: Sequence[Point], figure: Rect) -> bool:
    xs, ys = [x for x, _ in run], [y for _, y in run]
    is_wide = max(xs) - min(xs) >= LINE_WIDTH * (figure[2] - figure[0])
    is_high = max(ys) - min(ys) >= LINE_HEIGHT * (figure[3] - figure[1])
    return len(run) > MIN_STEPS and is_wide and is_high


def _slices(filled: Iterable[dict[str, Any]]) -> int:
    """Return the most sectors that meet in a point: each has a curve and one or two straight sides."""
    corners: Counter[tuple[int, int]] = Counter()
    for one in filled:
        kinds = Counter(item[0] for item in one["items"])
        if kinds["c"] and 1 <= kinds["l"] <= 2:
            ends = {point for item in one["items"] if item[0] == "l" for point in item[1:3]}
            corners.update({(_round(x), _round(y)) for x, y in ends})
    return max(corners.values(), default=0)
