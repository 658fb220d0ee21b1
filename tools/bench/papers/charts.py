"""Vector charts and diagrams; each function draws into a box and returns the area that it fills."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from random import Random
from typing import Any

import pymupdf

from tools.bench.papers.sheet import GREY, INK, around, label

PALETTE = ((0.12, 0.35, 0.62), (0.85, 0.45, 0.1), (0.2, 0.55, 0.3), (0.6, 0.2, 0.45), (0.8, 0.7, 0.2))
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug")
PARTS = ("Office", "Store", "Lab", "Field", "Other")
STEPS = ("Report", "Assess", "Contain", "Repair", "Review")

Draw = Callable[[Any, Any, Random], Any]


def _axes(page: Any, box: Any, most: int) -> tuple[Any, list[Any]]:
    """Draw two axes with four ticks; return the plot area and the boxes of the labels."""
    plot = pymupdf.Rect(box.x0 + 30, box.y0 + 6, box.x1 - 4, box.y1 - 16)
    page.draw_line(plot.bl, plot.tl, color=INK, width=0.8)
    page.draw_line(plot.bl, plot.br, color=INK, width=0.8)
    labels = []
    for tick in range(5):
        y = plot.y1 - tick * plot.height / 4
        page.draw_line((plot.x0 - 3, y), (plot.x0, y), color=INK, width=0.6)
        labels.append(label(page, box.x0, y + 2, str(most * tick // 4)))
    return plot, labels


def bars(page: Any, box: Any, random: Random) -> Any:
    """Draw a bar chart with one bar per month."""
    plot, drawn = _axes(page, box, 400)
    step = plot.width / len(MONTHS)
    for number, month in enumerate(MONTHS):
        left = plot.x0 + number * step + step * 0.2
        top = plot.y1 - plot.height * random.uniform(0.15, 0.95)
        page.draw_rect((left, top, left + step * 0.6, plot.y1), color=None, fill=PALETTE[0])
        drawn.append(label(page, left, plot.y1 + 10, month))
    return around([plot, *drawn])


def grouped_bars(page: Any, box: Any, random: Random) -> Any:
    """Draw a bar chart with three bars per quarter and a legend below."""
    legend = pymupdf.Rect(box.x0, box.y1 - 14, box.x1, box.y1)
    plot, drawn = _axes(page, pymupdf.Rect(box.x0, box.y0, box.x1, legend.y0), 80)
    step = plot.width / 4
    for number in range(12):
        left = plot.x0 + number // 3 * step + (number % 3 + 0.5) * step / 4
        top = plot.y1 - plot.height * random.uniform(0.1, 0.9)
        page.draw_rect(
            (left, top, left + step / 4 - 2, plot.y1), color=INK, width=0.3, fill=PALETTE[number % 3]
        )
    drawn += [
        label(page, plot.x0 + (number + 0.3) * step, plot.y1 + 10, f"Q{number + 1}") for number in range(4)
    ]
    return around([plot, *drawn, _legend(page, legend.x0 + 40, legend.y1 - 3, PARTS[:3])])


def _legend(page: Any, x: float, y: float, names: Sequence[str]) -> Any:
    boxes = []
    for colour, name in zip(PALETTE, names, strict=False):
        boxes.append(_key(page, x, y, colour, name))
        x = boxes[-1].x1 + 14
    return around(boxes)


def _key(page: Any, x: float, y: float, colour: Sequence[float], name: str) -> Any:
    """Draw a legend entry: a colour patch and its name."""
    patch = pymupdf.Rect(x, y - 6, x + 7, y + 1)
    page.draw_rect(patch, color=None, fill=colour)
    return around([patch, label(page, x + 10, y, name)])


def curves(page: Any, box: Any, random: Random) -> Any:
    """Draw a line chart of two lines over eight months, on a light grid."""
    plot, drawn = _axes(page, box, 60)
    for tick in range(1, 5):
        y = plot.y1 - tick * plot.height / 4
        page.draw_line((plot.x0, y), (plot.x1, y), color=GREY, width=0.2)
    xs = [plot.x0 + number * plot.width / (len(MONTHS) - 1) for number in range(len(MONTHS))]
    for colour in PALETTE[:2]:
        points = [(x, plot.y1 - plot.height * random.uniform(0.1, 0.95)) for x in xs]
        for start, end in pairwise(points):
            page.draw_line(start, end, color=colour, width=1.4)
    drawn += [label(page, x - 6, plot.y1 + 10, month) for x, month in zip(xs[:-1], MONTHS, strict=False)]
    return around([plot, *drawn])


def dots(page: Any, box: Any, random: Random) -> Any:
    """Draw a scatter plot of forty points."""
    plot, drawn = _axes(page, box, 20)
    for _ in range(40):
        x, noise = random.random(), random.uniform(-0.2, 0.2)
        centre = (plot.x0 + x * plot.width, plot.y1 - min(1, max(0, 0.2 + 0.6 * x + noise)) * plot.height)
        page.draw_circle(centre, 2, color=PALETTE[3], fill=PALETTE[3])
    drawn.append(label(page, plot.x0 + plot.width / 2 - 20, plot.y1 + 12, "Temperature"))
    return around([plot, *drawn])


def pie(page: Any, box: Any, random: Random) -> Any:
    """Draw a pie chart of five slices, with a legend beside it."""
    radius = min(box.width / 3, box.height / 2) - 4
    centre = pymupdf.Point(box.x0 + radius + 10, (box.y0 + box.y1) / 2)
    shares = [random.uniform(0.5, 2) for _ in PARTS]
    start = centre + pymupdf.Point(radius, 0)
    for colour, share in zip(PALETTE, shares, strict=True):
        angle = 360 * share / sum(shares)
        start = page.draw_sector(centre, start, angle, color=(1, 1, 1), fill=colour, fullSector=True)
    corner = pymupdf.Point(radius, radius)
    drawn = [pymupdf.Rect(centre - corner, centre + corner)]
    for number, name in enumerate(PARTS):
        drawn.append(_key(page, centre.x + radius + 20, centre.y - 30 + 14 * number, PALETTE[number], name))
    return around(drawn)


def flow(page: Any, box: Any, random: Random) -> Any:
    """Draw a flow chart: boxes with words, joined by arrows."""
    width, height = box.width / len(STEPS), 34
    middle = (box.y0 + box.y1) / 2 + random.uniform(-10, 10)
    drawn = []
    for number, step in enumerate(STEPS):
        left = box.x0 + number * width
        own = pymupdf.Rect(left, middle - height / 2, left + width * 0.78, middle + height / 2)
        page.draw_rect(own, color=PALETTE[0], fill=(0.9, 0.94, 1), width=1)
        label(page, own.x0 + 4, middle + 3, step, size=8)
        drawn.append(own)
    for here, there in pairwise(drawn):
        page.draw_line((here.x1, middle), (there.x0, middle), color=INK, width=1)
        tip = pymupdf.Point(there.x0, middle)
        barbs = (tip + pymupdf.Point(-5, -3), tip + pymupdf.Point(-5, 3))
        page.draw_polyline([barbs[0], tip, barbs[1]], color=INK, fill=INK, closePath=True)
    return around(drawn)
