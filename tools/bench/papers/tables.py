"""Papers with tables: ruled, banded and borderless, with multi-line cells, over two pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from tools.bench.papers.sheet import (
    BODY,
    BOLD,
    GREY,
    INK,
    LEADING,
    MARGIN,
    WIDTH,
    Paper,
    label,
    wrapped,
    write,
)
from tools.bench.papers.wording import openings, paragraph

Rows = Sequence[Sequence[str]]

STAFF: Rows = (
    ("Site", "Manager", "Staff", "Opened"),
    ("Lisbon", "A. Duarte", "48", "2011-03-01"),
    ("Gdansk", "M. Wolski", "112", "2009-10-15"),
    ("Porto Alegre", "R. Nunes", "7", "2020-01-20"),
    ("Turku", "S. Lahti", "31", "2016-06-30"),
    ("Cork", "P. Byrne", "64", "2013-09-02"),
)
DUTIES: Rows = (
    ("Step", "What to do", "Who", "Keep"),
    ("Receive", "Check the seal, weigh the box and write both numbers on the delivery note", "Store", "Note"),
    ("Inspect", "Open under the hood; photograph anything that leaks", "Lab technician on duty", "Photo"),
    (
        "Release",
        "Sign twice, once on paper and once in the register of the building",
        "Lab manager",
        "Register",
    ),
    (
        "Discard",
        "Neutralise, label as waste, and call for collection within two working days",
        "Lab",
        "Waste log",
    ),
)
PRICES: Rows = (
    ("Item", "Unit", "Net", "Tax", "Gross"),
    ("Filter 0.45", "pack", "1,204.00", "240.80", "1,444.80"),
    ("Gloves L", "box", "18.50", "3.70", "22.20"),
    ("Ethanol 96 %", "litre", "9.90", "1.98", "11.88"),
    ("Vial 2 mL", "100", "36.00", "7.20", "43.20"),
    ("Buffer pH 7", "litre", "14.10", "2.82", "16.92"),
    ("Total", "", "1,282.50", "256.50", "1,539.00"),
)
LIMITS: Rows = (
    ("Substance", "Limit", "Method"),
    ("Lead", "5 ug/L", "ICP-MS"),
    ("Nitrate", "50 mg/L", "Photometer"),
    ("Chloride", "250 mg/L", "Titration"),
    ("pH", "6.5-9.5", "Electrode"),
)


@dataclass(frozen=True, slots=True)
class Look:
    """Style of a table."""

    widths: tuple[int, ...]
    # Lines around every cell.
    ruled: bool = False
    # Three horizontal rules: above and below the header, and at the end.
    booked: bool = False
    # Tint behind every second row.
    banded: bool = False
    size: float = 9
    is_head_bold: bool = True
    # Columns from this index on are right-aligned.
    right_from: int = 99


def draw(page: Any, x: float, y: float, rows: Rows, look: Look) -> float:
    """Draw a table below ``y``; return its lower end."""
    top = y
    for number, row in enumerate(rows):
        font = BOLD if number == 0 and look.is_head_bold else BODY
        texts = [wrapped(cell, width - 8, size=look.size, font=font)
                 for cell, width in zip(row, look.widths, strict=True)]  # fmt: skip
        height = max(map(len, texts)) * look.size * LEADING + 7
        if look.banded and number % 2:
            page.draw_rect((x, y, x + sum(look.widths), y + height), color=None, fill=(0.9, 0.93, 0.97))
        _row(page, x, y, texts, look=look, font=font, height=height)
        y += height
        if look.booked and number in (0, len(rows) - 1):
            page.draw_line((x, y), (x + sum(look.widths), y), color=INK, width=0.8)
    if look.booked:
        page.draw_line((x, top), (x + sum(look.widths), top), color=INK, width=0.8)
    return y


def _row(
    page: Any, x: float, y: float, texts: list[list[str]], *, look: Look, font: str, height: float
) -> None:
    for column, (lines, width) in enumerate(zip(texts, look.widths, strict=True)):
        if look.ruled:
            page.draw_rect((x, y, x + width, y + height), color=GREY, width=0.6)
        is_right = column >= look.right_from
        left = x + width - 5 - 0.52 * look.size * len(lines[0]) if is_right else x + 4
        write(page, left, y + 2, lines, size=look.size, font=font)
        x += width


def table_papers() -> Iterator[Paper]:
    """Yield papers with tables, and one with lookalikes."""
    random = Random(7)
    sheets = (
        ("ruled", ((STAFF, Look((120, 120, 70, 100), ruled=True)),)),
        ("many-lines", ((DUTIES, Look((70, 210, 100, 80), ruled=True)),)),
        ("booked", ((PRICES, Look((130, 60, 80, 70, 90), booked=True, right_from=2)),)),
        ("borderless", ((STAFF, Look((120, 120, 70, 100))),)),
        ("banded", ((DUTIES, Look((80, 200, 110, 70), banded=True)),)),
        ("two-on-a-page", ((LIMITS, Look((120, 100, 110), ruled=True)),
                           (PRICES, Look((120, 60, 90, 70, 90), banded=True)))),
        ("plain-head", ((LIMITS, Look((140, 120, 120), booked=True, is_head_bold=False)),)),
    )  # fmt: skip
    for name, tables in sheets:
        yield _sheet(f"table-{name}", tables, random)
    yield _over_two_pages(random)
    yield _lookalikes(random)


def _sheet(name: str, tables: Sequence[tuple[Rows, Look]], random: Random) -> Paper:
    paper, texts = Paper(name), openings(random)
    page = paper.new_page()
    paper.tables["1"] = []
    y = _text(page, 70, texts.pop(), random)
    for number, (rows, look) in enumerate(tables, 1):
        label(page, MARGIN, y + 8, f"Table {number}. What is kept on record", size=9)
        y = draw(page, MARGIN, y + 16, rows, look) + 18
        paper.tables["1"].append([list(row) for row in rows])
        y = _text(page, y, texts.pop(), random)
    return paper


def _text(page: Any, y: float, opening: str, random: Random) -> float:
    return write(page, MARGIN, y, wrapped(paragraph(opening, random), WIDTH - 2 * MARGIN)) + 12


def _over_two_pages(random: Random) -> Paper:
    """Return a ruled table that continues on the next page under a repeated header."""
    paper, texts = Paper("table-two-pages"), openings(random)
    rows = [
        (f"{number:02}", texts[number], random.choice("ABC"), str(random.randint(10, 999)))
        for number in range(1, 31)
    ]
    head, look = ("No.", "Observation", "Class", "Count"), Look((40, 270, 60, 70), ruled=True)
    for top, part in ((90, rows[:18]), (60, rows[18:])):
        page = paper.new_page()
        y = draw(page, MARGIN, top, [head, *part], look)
        _text(page, y + 14, texts[0], random)
        paper.tables[paper.page] = [[list(row) for row in (head, *part)]]
    return paper


def _lookalikes(random: Random) -> Paper:
    """Return lists, a form and a text in two columns, none of which is a table."""
    paper, texts = Paper("table-none"), openings(random)
    page = paper.new_page()
    write(page, MARGIN, 80, [f"{number}.  {texts[number]}" for number in range(1, 12)], size=10)
    paper.tables["1"] = []
    page = paper.new_page()
    for side in (0, 1):
        column = " ".join(paragraph(texts[12 + 4 * side + number], random) for number in range(4))
        write(page, MARGIN + side * 245, 80, wrapped(column, 225), size=10)
    paper.tables["2"] = []
    page = paper.new_page()
    for number in range(8):
        write(page, MARGIN + 14, 80 + 26 * number, [texts[20 + number]], size=10)
        page.draw_rect((MARGIN, 81 + 26 * number, MARGIN + 9, 90 + 26 * number), color=INK, width=0.6)
    paper.tables["3"] = []
    return paper
