"""Frames: rectangles that are drawn around text, by strokes, thin bars or shading.

Pure geometry on PyMuPDF's drawings. A grid of cells counts as one frame, its outline.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

Rect = tuple[float, float, float, float]

# In points; anything thicker is a bar or an area.
MAX_RULE = 3.0
# Maximum distance in points of shapes that touch.
NEAR = 2.0
# In points: lower than a line of text, or narrower than a word.
MIN_HEIGHT, MIN_WIDTH = 12.0, 60.0
# Fraction of the page's height: anything taller frames a page.
MAX_HEIGHT = 0.6
# Fraction of a side that its strokes, and of an outline that its areas must cover.
MIN_COVERED = 0.9
# Fills with all components above this cannot be seen on white paper.
PALE = 0.99
# More shapes are a map or a plan; comparing them takes quadratic time.
MAX_SHAPES = 1000


def find_frames(drawings: Iterable[dict[str, Any]], height: float) -> list[Rect]:
    """Return the frames on a page of this height; ``drawings`` are from ``Page.get_cdrawings``."""
    rules: list[Rect] = []
    areas: list[Rect] = []
    for rect in (rect for one in drawings for rect in _shapes(one)):
        is_rule = min(rect[2] - rect[0], rect[3] - rect[1]) <= MAX_RULE
        if is_rule or rect[3] - rect[1] <= MAX_HEIGHT * height:
            (rules if is_rule else areas).append(rect)
    if len(rules) + len(areas) > MAX_SHAPES:
        return []
    outlines = [_outline(group) for group in _groups(rules) if _is_closed(group)]
    outlines += [_outline(group) for group in _groups(areas) if _is_solid(group)]
    return [
        (x0, y0, x1, y1)
        for x0, y0, x1, y1 in dict.fromkeys(outlines)
        if x1 - x0 >= MIN_WIDTH and MIN_HEIGHT <= y1 - y0 <= MAX_HEIGHT * height
    ]


def _shapes(drawing: dict[str, Any]) -> Iterator[Rect]:
    """Yield the visible straight strokes and areas of a drawing, strokes as rectangles of no height or width.

    The outline of a stroked rectangle, rounded or not, is four strokes.
    """
    has_stroke = "s" in drawing["type"] and drawing.get("stroke_opacity") != 0
    if "f" in drawing["type"] and drawing.get("fill_opacity") != 0 and min(drawing["fill"] or [1]) < PALE:
        rects = [item[1] for item in drawing["items"] if item[0] == "re"]
        yield from rects or [drawing["rect"]]
    if not has_stroke:
        return
    curves = [item for item in drawing["items"] if item[0] == "c"]
    for item in drawing["items"]:
        if item[0] == "l" and not curves:
            (x0, y0), (x1, y1) = item[1:3]
            yield min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)
        elif item[0] == "re":
            yield from _sides(item[1])
    if len(curves) == len(drawing["items"]) - 4 or (drawing.get("closePath") and len(curves) == 4):
        yield from _sides(drawing["rect"])


def _sides(rect: Rect) -> Iterator[Rect]:
    x0, y0, x1, y1 = rect
    yield from ((x0, y0, x1, y0), (x0, y1, x1, y1), (x0, y0, x0, y1), (x1, y0, x1, y1))


def _groups(rects: Sequence[Rect]) -> list[list[Rect]]:
    """Return groups of rectangles of which each touches another of its group, but does not contain it."""
    groups: list[list[Rect]] = []
    for rect in rects:
        touching = [group for group in groups if any(_touches(rect, other) for other in group)]
        groups = [group for group in groups if group not in touching]
        groups.append([rect, *(one for group in touching for one in group)])
    return groups


def _touches(one: Rect, other: Rect) -> bool:
    is_apart = (
        one[0] > other[2] + NEAR
        or other[0] > one[2] + NEAR
        or one[1] > other[3] + NEAR
        or other[1] > one[3] + NEAR
    )
    return not is_apart and not _contains(one, other) and not _contains(other, one)


def _contains(outer: Rect, inner: Rect) -> bool:
    return (
        outer[0] < inner[0] - NEAR
        and outer[1] < inner[1] - NEAR
        and inner[2] < outer[2] - NEAR
        and inner[3] < outer[3] - NEAR
    )


def _outline(group: Sequence[Rect]) -> Rect:
    lefts, tops, rights, bottoms = zip(*group, strict=True)
    return min(lefts), min(tops), max(rights), max(bottoms)


def _is_closed(group: Sequence[Rect]) -> bool:
    """True if strokes cover all four sides of their outline."""
    x0, y0, x1, y1 = _outline(group)
    return all(
        _covered([(one[axis], one[axis + 2]) for one in group if abs(one[side] - place) <= NEAR])
        >= MIN_COVERED * length
        for axis, side, place, length in ((0, 1, y0, x1 - x0), (0, 3, y1, x1 - x0), (1, 0, x0, y1 - y0),
                                          (1, 2, x1, y1 - y0))
    )  # fmt: skip


def _covered(spans: Iterable[tuple[float, float]]) -> float:
    """Return the length that spans cover together."""
    total, end = 0.0, float("-inf")
    for start, stop in sorted(spans):
        total += max(0.0, stop - max(start, end))
        end = max(end, stop)
    return total


def _is_solid(group: Sequence[Rect]) -> bool:
    """True if areas fill their outline."""
    x0, y0, x1, y1 = _outline(group)
    filled = sum((one[2] - one[0]) * (one[3] - one[1]) for one in group)
    return filled >= MIN_COVERED * (x1 - x0) * (y1 - y0)
