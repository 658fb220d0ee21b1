"""Pages that are stored sideways or upside down and rotated for display."""

from __future__ import annotations

from random import Random
from typing import Any

import pymupdf

from tools.bench.papers.sheet import LEADING, MARGIN, Paper, wrapped
from tools.bench.papers.wording import openings, paragraph

TURNS = (90, 180, 270)
SIZE = 10


def turned_paper() -> Paper:
    """Return a paper with a page per rotation; the text is upright as displayed."""
    paper, random = Paper("turned"), Random(3)
    for turn in TURNS:
        page, texts, y = paper.new_page(), openings(random)[:6], 80.0
        page.set_rotation(turn)
        paper.order[paper.page] = texts
        for opening in texts:
            y = _write(page, y, wrapped(paragraph(opening, random), 460)) + SIZE
    return paper


def _write(page: Any, y: float, lines: list[str]) -> float:
    """Write lines below ``y`` of the displayed page; return the position of the next one."""
    for line in lines:
        place = pymupdf.Point(MARGIN, y + SIZE) * page.derotation_matrix
        page.insert_text(place, line, fontsize=SIZE, rotate=page.rotation)
        y += SIZE * LEADING
    return y
