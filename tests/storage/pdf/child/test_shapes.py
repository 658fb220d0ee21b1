"""Chart shapes are counted by geometry; rules, tables, frames and arrows do not count."""

from __future__ import annotations

from itertools import pairwise
from math import cos, pi, sin
from typing import Any

from storage.pdf.child.shapes import count_shapes
from storage.pdf.models import NO_SHAPES, Shapes

FIGURE = (0.0, 0.0, 300.0, 200.0)
RED = (1.0, 0.0, 0.0)


def filled(x0: float, y0: float, x1: float, y1: float, fill: tuple[float, ...] = RED) -> dict[str, Any]:
    rect = (x0, y0, x1, y1)
    return {"type": "f", "fill": fill, "rect": rect, "items": [("re", rect, 1)]}


def stroked(*points: tuple[float, float]) -> dict[str, Any]:
    xs, ys = zip(*points, strict=True)
    items = [("l", start, end) for start, end in pairwise(points)]
    return {"type": "s", "rect": (min(xs), min(ys), max(xs), max(ys)), "items": items}


def sector(start: float, end: float) -> dict[str, Any]:
    """Return a pie slice between two shares of the circle."""
    ends = [(150 + 50 * cos(2 * pi * share), 100 + 50 * sin(2 * pi * share)) for share in (start, end)]
    curve = ("c", ends[0], ends[0], ends[1], ends[1])
    items = [("l", (150.0, 100.0), ends[0]), curve, ("l", ends[1], (150.0, 100.0))]
    return {"type": "f", "fill": RED, "rect": (100, 50, 200, 150), "items": items}


def test_bars_share_a_base_and_a_width() -> None:
    """Vertical or horizontal; a row of equal boxes, table shading and white patches are no bars."""
    standing = [filled(10 + 30 * at, 180 - 20 * (at + 1), 30 + 30 * at, 180) for at in range(4)]
    lying = [filled(10, 10 + 30 * at, 40 + 20 * at, 30 + 30 * at) for at in range(5)]
    assert count_shapes(standing, FIGURE) == Shapes(bars=4)
    assert count_shapes(lying, FIGURE) == Shapes(bars=5)
    equal = [filled(10 + 30 * at, 100, 30 + 30 * at, 180) for at in range(4)]
    white = [filled(10 + 30 * at, 180 - 20 * (at + 1), 30 + 30 * at, 180, (1, 1, 1)) for at in range(4)]
    assert count_shapes([*equal, *white], FIGURE) == NO_SHAPES


def test_a_bar_may_be_a_polygon() -> None:
    """A polygon of four vertical and horizontal sides, as office programs draw it."""
    bars = []
    for at in range(3):
        x0, y0, x1, y1 = 10.0 + 30 * at, 100.0 + 20 * at, 30.0 + 30 * at, 180.0
        sides = stroked((x0, y1), (x0, y0), (x1, y0), (x1, y1), (x0, y1))
        bars.append({**sides, "type": "f", "fill": RED})
    assert count_shapes(bars, FIGURE).bars == 3


def test_a_chart_line_runs_from_one_side_to_the_other() -> None:
    """In one path or one path per segment; an axis, a frame, a circle and a short arrow are no lines."""
    points = [(10.0 + 40 * at, 100.0 + 30 * (at % 2)) for at in range(7)]
    steps = [stroked(*pair) for pair in pairwise(points)]
    assert count_shapes([stroked(*points)], FIGURE) == count_shapes(steps, FIGURE) == Shapes(lines=1)
    frame = stroked((10, 10), (290, 10), (290, 190), (10, 190), (10, 10))
    axis = stroked((10, 100), (100, 100), (200, 100), (290, 100))
    arrow = stroked((10, 10), (20, 14), (30, 18), (40, 22))
    assert count_shapes([frame, axis, arrow], FIGURE) == NO_SHAPES


def test_slices_meet_in_one_point() -> None:
    """The five slices of a pie count, scattered sectors do not."""
    pie = [sector(at / 5, (at + 1) / 5) for at in range(5)]
    assert count_shapes(pie, FIGURE) == Shapes(slices=5)
    assert count_shapes(pie[:1], FIGURE).slices == 1


def test_shapes_outside_the_figure_do_not_count() -> None:
    """Another chart of the same page is another figure."""
    bars = [filled(310 + 30 * at, 180 - 20 * (at + 1), 330 + 30 * at, 180) for at in range(4)]
    assert count_shapes(bars, FIGURE) == NO_SHAPES
