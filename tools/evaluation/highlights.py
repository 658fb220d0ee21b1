"""Highlights: whether a citation's rectangles cover the words of its quote, checked with the PDF's words."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pymupdf

from tools.evaluation.golden import plain
from tools.evaluation.replies import Mark

# (x, y, word): centre of a word as fractions of the displayed page.
WordBox = tuple[float, float, str]


@dataclass(frozen=True, slots=True)
class Highlights:
    """Counts over citations whose page has a text layer (a scan has none)."""

    # Words in quotes.
    words: int
    # Of these, words under the quote's rectangles.
    covered: int
    citations: int
    # Citations whose rectangles cover more foreign words than words of the quote.
    misplaced: int
    # Citations without rectangles.
    unmarked: int
    # Citations of pages without a text layer.
    unknown: int

    @property
    def share(self) -> float:
        """Fraction of the words that are covered; NaN without quotes."""
        return self.covered / self.words if self.words else math.nan


def count_highlights(marks: Iterable[Mark], files: Mapping[str, Path]) -> Highlights:
    """Compare all marks with their pages."""
    words = covered = citations = misplaced = unmarked = unknown = 0
    for mark in marks:
        printed = page_words(files[mark.page[0]], mark.page[1])
        quoted = Counter(filter(None, map(plain, mark.quote.split())))
        if not printed:
            unknown += 1
            continue
        marked = Counter(word for x, y, word in printed if _is_inside(x, y, mark.boxes))
        citations, words = citations + 1, words + quoted.total()
        covered += _common(quoted, marked)
        unmarked += not mark.boxes
        misplaced += marked.total() > 2 * _common(quoted, marked)
    return Highlights(words, covered, citations, misplaced, unmarked, unknown)


@cache
def page_words(file: Path, page: int) -> tuple[WordBox, ...]:
    """Return the words printed on a page."""
    with pymupdf.open(file) as document:
        return tuple(_words(document[page - 1]))


def _words(page: pymupdf.Page) -> Iterator[WordBox]:
    for x0, y0, x1, y1, word, *_ in page.get_text("words"):
        middle = pymupdf.Point((x0 + x1) / 2, (y0 + y1) / 2) * page.rotation_matrix
        if text := plain(word):
            yield middle.x / page.rect.width, middle.y / page.rect.height, text


def _is_inside(x: float, y: float, boxes: Iterable[tuple[float, ...]]) -> bool:
    return any(x0 <= x <= x1 and y0 <= y <= y1 for x0, y0, x1, y1 in boxes)


def _common(quoted: Counter[str], marked: Counter[str]) -> int:
    """Return the number of quoted words under the rectangles.

    A word may be printed as two tokens, or two words as one, so the rest is compared by letters.
    """
    together = (quoted & marked).total()
    rest = plain("".join((marked - quoted).elements()))
    return together + sum(word in rest for word in (quoted - marked).elements())
