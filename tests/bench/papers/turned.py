"""Sheets that were scanned or bound sideways: their text is upright only as displayed."""

from __future__ import annotations

from random import Random

from papers.sheet import MARGIN, Paper, wrapped, write
from papers.wording import openings, paragraph

TURNS = (90, 180, 270)


def turned_paper() -> Paper:
    """A page for each turn; the file holds the text as it would stand before the turning."""
    paper, random = Paper("turned"), Random(3)
    for turn in TURNS:
        page, texts, y = paper.new_page(), openings(random), 80.0
        paper.order[paper.page] = texts[:6]
        for opening in texts[:6]:
            y = write(page, MARGIN, y, wrapped(paragraph(opening, random), 460)) + 10
        page.set_rotation(turn)
    return paper
