"""Finds headings, running lines and the title by the fonts and places of a document's lines."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import takewhile
from typing import NamedTuple

from storage.pdf.models import Line, ReadPdf
from storage.text.sentences import BULLETS

MIN_SIZE_RATIO = 1.15
"""A line this many times the body's size is a heading."""

MAX_HEADING_CHARS = 120
MAX_TITLE_LINES = 3

EDGE = 0.12
"""Share of the page's height at its top and bottom where running lines stand."""

RUNNING_SHARE = 0.4
"""A line at the edge of this share of the pages (left and right ones may differ) is a running line."""

_DIGITS = re.compile(r"\d+")
_NUMBER = re.compile(r"(\d+(?:\.\d+)*)\.?\s")
_CONTENTS = re.compile(r"(table of )?contents|index|inhalt(sverzeichnis)?|sommaire|índice", re.IGNORECASE)
_LABEL = re.compile(rf"(?:(?:\(?\w{{1,3}}(?:\.\d{{1,3}})*[.):]?|[{BULLETS}])\s+)?")
_LEADER = re.compile(r"\.{4,}|(?: \.){3,}")


class Rank(NamedTuple):
    """Place of a heading among the others: a smaller rank stands above."""

    smallness: float
    is_plain: bool
    depth: int


class HeadingDetector:
    """What the fonts and places of a document's lines say about it."""

    def __init__(self, pdf: ReadPdf) -> None:
        self._pdf = pdf
        self._body = _body_size(pdf)
        self._running = _running_lines(pdf)

    def lines(self, page: int) -> Iterator[tuple[Line, Rank | None]]:
        """The lines of a page (from 0), each with its rank when it is a heading.

        A running line comes only where it stands first, and is never a heading.
        """
        for line in self._pdf.lines[page]:
            text = self._pdf.pages[page].text[line.start : line.end]
            first = self._running.get(_pattern(text)) if _is_at_edge(line) else None
            if first is None:
                yield line, self._rank(text, line)
            elif first == page:
                yield line, None

    def first_heading(self) -> str:
        """The largest heading of the first page, with the lines of its size that follow it, or ''."""
        own = list(self.lines(0)) if self._pdf.pages else []
        text = self._pdf.pages[0].text if own else ""
        headings = [
            line
            for line, rank in own
            if rank and (line.size > self._body or line is own[0][0])
            if not _CONTENTS.fullmatch(text[line.start : line.end])
        ]
        if not headings:
            return ""
        largest = max(headings, key=lambda line: line.size)
        following = [line for line, _ in own if line.start >= largest.start]
        same = takewhile(lambda line: line.size == largest.size, following)
        texts = [text[line.start : line.end] for line in same]
        return " ".join(" ".join(texts[:MAX_TITLE_LINES]).split())

    def is_large(self, line: Line) -> bool:
        """Whether it is printed larger than the body of the document."""
        return line.size >= self._body * MIN_SIZE_RATIO

    def rank_of_heading(self, text: str, line: Line) -> Rank | None:
        """The rank of a line that is known as a heading; None when its text could be none."""
        if sum(map(str.isalpha, text)) < 3 or len(text) > MAX_HEADING_CHARS:
            return None
        if is_row(text) or _LEADER.search(text):
            return None
        number = _NUMBER.match(text)
        return Rank(-line.size, not line.is_bold, number[1].count(".") if number else 0)

    def _rank(self, text: str, line: Line) -> Rank | None:
        """The rank of a heading; None for a line that is none."""
        is_label = line.is_bold and line.size >= self._body and text[-1:] not in ".,;"
        return self.rank_of_heading(text, line) if self.is_large(line) or is_label else None


def is_row(text: str) -> bool:
    """A line of several cells; a number or bullet set apart from its text is no cell."""
    label = _LABEL.match(text)
    return "  " in text[label.end() if label else 0 :]


def _body_size(pdf: ReadPdf) -> float:
    """Font size of most characters of the document, in points."""
    sizes: Counter[float] = Counter()
    for lines in pdf.lines:
        for line in lines:
            sizes[line.size] += line.end - line.start
    return max(sizes, key=lambda size: (sizes[size], size), default=0.0)


def _running_lines(pdf: ReadPdf) -> dict[str, int]:
    """Headers, footers and page numbers: lines that return at the edge of many pages.

    Returns:
        Each line's pattern and the page where it stands first: there it may say what stands nowhere else.
    """
    seen: dict[str, dict[int, list[str]]] = {}
    for number, (page, lines) in enumerate(zip(pdf.pages, pdf.lines, strict=True)):
        for line in filter(_is_at_edge, lines):
            text = page.text[line.start : line.end]
            seen.setdefault(_pattern(text), {}).setdefault(number, _DIGITS.findall(text))
    least = max(3, RUNNING_SHARE * len(pdf.pages))
    return {
        pattern: min(pages) for pattern, pages in seen.items() if len(pages) >= least and _counts_pages(pages)
    }


def _counts_pages(pages: dict[int, list[str]]) -> bool:
    """Whether nothing changes in a line from page to page but one number, and that with the page.

    Lines that differ otherwise, such as the load on each sheet of a catalogue, say something.
    """
    changing = [column for column in zip(*pages.values(), strict=True) if len(set(column)) > 1]
    if len(changing) != 1:
        return not changing
    steps = Counter(int(number) - page for page, number in zip(pages, changing[0], strict=True))
    return max(steps.values()) > len(pages) / 2


def _is_at_edge(line: Line) -> bool:
    return line.box.y1 < EDGE or line.box.y0 > 1 - EDGE


def _pattern(text: str) -> str:
    """A line without what changes from page to page."""
    return _DIGITS.sub("#", " ".join(text.casefold().split()))
