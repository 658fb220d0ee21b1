"""Headings of blocks that the layout model found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from samples.printed import BODY, HEADING, Row, read_pdf

from ingestion.chunking.structure import Structure, units_of
from ingestion.layout.reading_order import Block
from storage.models import Page
from storage.pdf.models import BlockKind, Line

LONG = "Employees are insured against injuries and illnesses that their work causes, from the first day."


def headings(kind: BlockKind, *rows: Row) -> list[str]:
    """Return the headings of a page with one block, whose lines are as wide as their text is long."""
    pdf = read_pdf([rows])
    (page,), (lines,) = pdf.pages, pdf.lines
    printed = [
        replace(line, box=line.box._replace(x1=0.1 + 0.8 * (line.end - line.start) / len(LONG)))
        for line in lines
    ]
    block = Block(kind, 0, len(lines), 0, len(page.text))
    found = Structure(replace(pdf, lines=(tuple(printed),)), [[block]]).segments(0)
    return [page.text[one.start : one.end] for one in found if one.rank]


def typewritten(page: Page, lines: Sequence[Line]) -> tuple[Line, ...]:
    """Return lines at the height that the newlines of their page's text give them."""
    rows = [page.text.count("\n", 0, line.start) for line in lines]
    return tuple(
        replace(line, box=line.box._replace(y0=0.012 * row, y1=0.012 * row + 0.01))
        for line, row in zip(lines, rows, strict=True)
    )


def sections(*pages: Sequence[str], named: str = "") -> list[str]:
    """Return the deepest heading of each part of a text; the layout found the first line and ``named``."""
    pdf = read_pdf([plain(*rows) for rows in pages])
    pdf = replace(pdf, lines=tuple(map(typewritten, pdf.pages, pdf.lines)))
    headings = {pages[0][0], named}
    found = [
        [
            Block(
                BlockKind.HEADING if page.text[line.start : line.end] in headings else BlockKind.TEXT,
                number,
                number + 1,
                line.start,
                line.end,
            )
            for number, line in enumerate(lines)
        ]
        for page, lines in zip(pdf.pages, pdf.lines, strict=True)
    ]
    units = [one for one in units_of(pdf, Structure(pdf, found), "") if not one.is_heading]
    return [
        f"{one.path[-1]} | {pdf.pages[one.spans[0].page].text[one.spans[0].start :][:9]}" for one in units
    ]


def test_a_heading_like_the_open_one_needs_no_layout() -> None:
    """Shows a short line above a paragraph; one above a list stays text."""
    page = [
        "Definition:",
        "",
        LONG,
        "",
        "Reporting:",
        "",
        LONG,
        "",
        "You need:",
        "",
        "1. A form.",
        "2. A pen.",
    ]
    assert sections(page) == [
        f"Definition: | {LONG[:9]}",
        f"Reporting: | {LONG[:9]}",
        "Reporting: | You need:",
        "Reporting: | 1. A form",
        "Reporting: | 2. A pen.",
    ]


def test_a_heading_like_the_open_one_may_end_its_page() -> None:
    """Shows a heading whose paragraph is on the next page, and the first line of a list, which is none."""
    first = ["Definition:", "", LONG, "", "Reporting:"]
    assert sections(first, [LONG])[-1] == f"Reporting: | {LONG[:9]}"
    assert sections(first, ["1. A form."])[-1] == "Definition: | 1. A form"


@pytest.mark.parametrize(("gap", "deepest"), [([], "Risks"), ([""], "Anywhere")])
def test_a_line_amid_a_paragraph_is_no_heading(gap: list[str], deepest: str) -> None:
    """Shows that the layout model is not trusted where no gap sets a line in body print apart."""
    assert sections(["Risks", "", LONG, *gap, "Anywhere", LONG], named="Anywhere")[-1].startswith(deepest)


def test_an_entry_of_a_table_of_contents_is_no_heading() -> None:
    """Shows an entry whose page number is another block, and that the same line is one above its text."""
    entry = "1 Scope and Application"
    assert sections(["Contents", "", entry, "", "1"], named=entry)[-1] == "Contents | 1"
    assert sections(["Contents", "", entry, "", LONG], named=entry)[-1] == f"{entry} | {LONG[:9]}"


def test_a_heading_printed_twice_is_one() -> None:
    """Shows a heading in large print that the first line of its text, or of a subsection, repeats in bold."""
    above, again = ("Claims", HEADING, True), ("Claims", BODY, True)
    for rows, path in (([], ("Claims",)), ([("Terms", 14.0, True)], ("Claims", "Terms"))):
        pdf = read_pdf([[above, *rows, again, (LONG, BODY, False)]])
        assert units_of(pdf, Structure(pdf), "Plan")[-1].path == path


def plain(*texts: str) -> Sequence[Row]:
    return [(text, BODY, False) for text in texts]


def test_a_heading_joined_with_its_paragraph_is_found() -> None:
    """Shows a short bold line, and that the layout model need not separate it from the text below."""
    joined = [("Accident Insurance", BODY, True), *plain("OTHER INFORMATION:", LONG)]
    assert headings(BlockKind.TEXT, *joined) == ["Accident Insurance"]


@pytest.mark.parametrize(
    ("first", "second"),
    [(LONG[:-1], "Ask the office."), ("Remote work", "is allowed on three days a week."), ("Note:", LONG)],
    ids=["full line", "sentence goes on", "label"],
)
def test_the_bold_beginning_of_a_paragraph_is_no_heading(first: str, second: str) -> None:
    assert headings(BlockKind.TEXT, (first, BODY, True), *plain(second)) == []


@pytest.mark.parametrize(
    ("text", "is_heading"),
    [
        ("Reporting Procedures:", True),
        ("Part 2: Scope", True),
        ("COVERED SERVICES: Foot Care", True),
        ("Location: Anywhere, USA", False),
        ("3. What happened.", False),
        ("and within budget", False),
    ],
)
def test_a_plain_sentence_or_field_is_no_heading(text: str, is_heading: bool) -> None:
    """Shows that the layout model is not trusted where the text contradicts it."""
    assert headings(BlockKind.HEADING, *plain(text)) == [text] * is_heading
