"""Illustrated reports: two figures per page, captions above or below, and decoration."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pymupdf

from tools.bench.papers import charts
from tools.bench.papers.pictures import decorate, logo, note, photo
from tools.bench.papers.sheet import BOLD, MARGIN, WIDTH, Paper, fractions, label, wrapped, write
from tools.bench.papers.wording import openings, paragraph

# The last page of a report has no figure.
REPORTS, PAGES = 12, 5

INNER = WIDTH - 2 * MARGIN
DRAWINGS: tuple[tuple[str, charts.Draw], ...] = (
    ("Visits by month", charts.bars),
    ("The slope after the storm", photo),
    ("Costs by quarter and site", charts.grouped_bars),
    ("Level in both tanks", charts.curves),
    ("Waste by origin", charts.pie),
    ("From the report to the review", charts.flow),
    ("Drift against temperature", charts.dots),
)


def reports() -> Iterator[Paper]:
    """Yield the reports; they differ in decoration, captions and the order of their drawings."""
    for number in range(REPORTS):
        yield _report(number, Random(number))


def _report(number: int, random: Random) -> Paper:
    paper, corner, texts = Paper(f"report-{number + 1}"), logo(), openings(random)
    for sheet in range(PAGES):
        page = paper.new_page()
        decorate(page, title=f"Annual report {number + 1}", number=sheet + 1, style=number, corner=corner)
        y = write(page, MARGIN, 84, [f"{sheet + 1}. Section {sheet + 1}"], size=14, font=BOLD) + 6
        y = _text(page, y, texts.pop(), random)
        paper.figures[paper.page] = []
        if sheet == PAGES - 1:
            note(page, MARGIN, y, INNER, wrapped(paragraph(texts.pop(), random), INNER - 16))
            continue
        for place in range(2):
            title, draw = DRAWINGS[(number + 2 * sheet + place) % len(DRAWINGS)]
            count = 2 * sheet + place + 1
            y = _figure(paper, page, y, title=f"Figure {count}. {title}", draw=draw, random=random)
            y = _text(page, y, texts.pop(), random)
    return paper


def _text(page: Any, y: float, opening: str, random: Random) -> float:
    return write(page, MARGIN, y, wrapped(paragraph(opening, random), INNER)) + 10


def _figure(paper: Paper, page: Any, y: float, *, title: str, draw: charts.Draw, random: Random) -> float:
    """Draw a figure with its caption, which some reports put above it; return the lower end."""
    is_above = paper.name[-1] in "369"
    if is_above:
        label(page, MARGIN, y + 8, title, size=9)
    left = MARGIN + random.choice((0, 40, 90))
    room = pymupdf.Rect(
        left, y + 18, left + random.choice((260, 320, 380)), y + 18 + random.choice((120, 150))
    )
    drawn = draw(page, room, random)
    if not is_above:
        label(page, MARGIN, room.y1 + 14, title, size=9)
    paper.figures[paper.page].append({"box": fractions(drawn), "caption": title})
    return room.y1 + (16 if is_above else 28)
