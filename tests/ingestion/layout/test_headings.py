"""Heading detection; running lines, boxes, labels and large paragraphs are no headings."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from samples.printed import BODY, HEADING, Row, read_pdf

from ingestion.layout.headings import HeadingDetector

TEXT: list[Row] = [(f"Line {number} of the text, as long as lines are.", BODY, False) for number in range(18)]


def headings(pages: Sequence[Sequence[Row]]) -> list[tuple[int, str]]:
    """Return page and text of every heading."""
    pdf = read_pdf(pages)
    detector = HeadingDetector(pdf)
    return [
        (page.number, page.text[line.start : line.end])
        for number, page in enumerate(pdf.pages)
        for line, rank in detector.lines(number)
        if rank
    ]


@pytest.mark.parametrize(
    ("line", "is_bold", "size", "foot"),
    [
        ("Chapter {}", True, HEADING, ""),
        ("Kapitel {}", True, BODY, ""),
        ("Lesson {}: On water", False, HEADING, ""),
        ("Experiment {}", True, HEADING, "Page {}"),
        ("Recipe No. {}", True, BODY, "{} / 40"),
    ],
)
def test_a_heading_may_be_numbered_like_pages(line: str, size: float, foot: str, *, is_bold: bool) -> None:
    """A chapter per page is a heading if another line has the page number."""
    pages = [
        [(line.format(number), size, is_bold), *TEXT, (foot.format(number), BODY, False)]
        for number in range(1, 40)
    ]
    assert headings(pages) == [(number, line.format(number)) for number in range(1, 40)]


@pytest.mark.parametrize(
    "row",
    [
        ("Page {} of 40", HEADING, True),
        ("Seite {}", HEADING, True),
        ("Staff handbook {}", BODY, True),
        ("Chapter {}", 8.0, False),
        ("Staff handbook", HEADING, True),
    ],
)
def test_a_running_line_is_no_heading(row: Row) -> None:
    """In any print: a page counter, or the same words on every page."""
    text, size, is_bold = row
    assert headings([[(text.format(number), size, is_bold), *TEXT] for number in range(1, 40)]) == []


def test_a_chapter_repeated_as_running_head_is_one_heading() -> None:
    """Small print that repeats the chapter on few pages is no heading either."""
    pages = []
    for chapter in range(1, 6):
        name = f"{chapter} Duties of the {chapter * 11} wardens"
        pages.append([(name, HEADING, True), *TEXT])
        pages += [[(name, BODY, True), *TEXT]] * 3
    assert [page for page, _ in headings(pages)] == [1, 5, 9, 13, 17]


@pytest.mark.parametrize(
    "stamp", ["10/25/24, 9:29 PM", "25.10.2024, 21:29", "https://intranet.example.com/travel"]
)
def test_browser_print_headers_are_no_headings(stamp: str) -> None:
    """Even on a single page: neither date and address nor the page name next to them."""
    pdf = read_pdf([[("Travel Expense Policy » Home", HEADING, True), (stamp, BODY, False), *TEXT]])
    (name, other, *rest) = pdf.lines[0]
    beside = (name, type(other)(other.start, other.end, other.size, other.is_bold, name.box), *rest)
    detector = HeadingDetector(type(pdf)(pdf.title, pdf.pages, (beside,), 0, False))
    assert [rank for _, rank in detector.lines(0) if rank] == []


@pytest.mark.parametrize(
    "text", ["WARNING", "Caution!", "Achtung", "ATTENTION :", "Nota", "NOTE: Keep the valve shut"]
)
def test_the_label_of_a_warning_box_is_no_heading(text: str) -> None:
    """Warnings and notes belong to the section around them."""
    rows = [*TEXT, (text, HEADING, True), *TEXT]
    assert headings([rows]) == []


def test_a_heading_may_begin_like_a_warning_box() -> None:
    """Such as ``Important dates``."""
    for text in ("Important dates", "Notice period", "7. Warnings and cautions"):
        assert headings([[*TEXT, (text, HEADING, True), *TEXT]]) == [(1, text)]


def test_a_paragraph_in_large_print_has_no_headings() -> None:
    """A report may print its text larger than its tables: names and addresses in that size are none."""
    story: list[Row] = [("The pilot landed on the grass beside the runway.", 13.0, False)] * 5
    rows = [("Analysis", HEADING, True), *story, ("Bureau d'Enquêtes", 13.0, False), *TEXT, *TEXT]
    assert headings([rows]) == [(1, "Analysis")]


def test_a_label_without_a_value_is_no_heading() -> None:
    """Applies next to rows of labels with values; elsewhere a bold line with a colon is a heading."""
    label: Row = ("Held:", BODY, True)
    assert headings([[*TEXT, ("Operator:  W. Forman  Rating:  none", BODY, False), label, *TEXT]]) == []
    assert headings([[*TEXT, label, *TEXT]]) == [(1, "Held:")]
