"""Papers in columns with a shuffled file order; the opening of each paragraph identifies it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

from tools.bench.papers.pictures import BRAND
from tools.bench.papers.sheet import BOLD, LEADING, MARGIN, WIDTH, Paper, wrapped
from tools.bench.papers.wording import openings, paragraph

GUTTER = 20
SIZE = 9.5
# Words of a snippet: more than one line, so that text torn line by line does not contain it.
WORDS = 14


@dataclass(frozen=True, slots=True)
class Set:
    """A line of print and its position."""

    x: float
    y: float
    text: str
    font: str = "helv"
    size: float = SIZE


def column_papers() -> Iterator[Paper]:
    """Yield papers in two and three columns: shuffled by paragraph or line, or stored row by row."""
    for columns in (2, 3):
        for shuffling in ("paragraphs", "lines", "rows"):
            random = Random(f"{columns} {shuffling}")
            yield _paper(f"columns-{columns}-{shuffling}", columns, shuffling, random)


def _paper(name: str, columns: int, shuffling: str, random: Random) -> Paper:
    paper = Paper(name)
    for has_box in (False, True):
        texts = openings(random)
        page = paper.new_page()
        title = [[Set(MARGIN, 70, "What the year has taught us", BOLD, 16)]]
        body, read = _columns(columns, texts, random, bottom=600 if has_box else 680)
        if has_box:
            body.append(_box(page, texts.pop(), random))
            read.append(_snippet(body[-1][0].text))
        body.append([Set(MARGIN, 770, "* Figures of the year before stand in brackets.", size=7.5)])
        _print(page, title + body, shuffling, random)
        paper.order[paper.page] = ["What the year has taught us", *read, "* Figures of the year before"]
    return paper


def _columns(
    columns: int, texts: list[str], random: Random, bottom: float
) -> tuple[list[list[Set]], list[str]]:
    """Return the paragraphs of the columns in reading order, and their snippets."""
    width = (WIDTH - 2 * MARGIN - (columns - 1) * GUTTER) / columns
    paragraphs, read = [], []
    for column in range(columns):
        x, y = MARGIN + column * (width + GUTTER), 110.0
        while y < bottom:
            text = paragraph(texts.pop(), random, 4)
            lines = wrapped(text, width, size=SIZE)
            paragraphs.append([Set(x, y + row * SIZE * LEADING, line) for row, line in enumerate(lines)])
            read.append(_snippet(text))
            y += (len(lines) + 0.8) * SIZE * LEADING
    return paragraphs, read


def _snippet(text: str) -> str:
    return " ".join(text.split()[:WORDS])


def _box(page: Any, opening: str, random: Random) -> list[Set]:
    """Draw a tinted box below the columns, as wide as the page; return its lines."""
    lines = wrapped(paragraph(opening, random), WIDTH - 2 * MARGIN - 20, size=SIZE)
    page.draw_rect((MARGIN, 700, WIDTH - MARGIN, 755), color=BRAND, fill=(0.93, 0.96, 0.97))
    return [Set(MARGIN + 10, 708 + row * SIZE * LEADING, line) for row, line in enumerate(lines)]


def _print(page: Any, paragraphs: list[list[Set]], shuffling: str, random: Random) -> None:
    """Write the lines to the file in an order other than the reading order."""
    if shuffling == "paragraphs":
        random.shuffle(paragraphs)
    lines = [line for one in paragraphs for line in one]
    if shuffling == "lines":
        random.shuffle(lines)
    if shuffling == "rows":
        lines.sort(key=lambda line: (line.y, line.x))
    for line in lines:
        page.insert_text((line.x, line.y + line.size), line.text, fontsize=line.size, fontname=line.font)
