"""Whether the rectangles of a citation cover the quote's own words, told from the PDF's own words."""

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

# (x, y, word): the middle of a word as shares of the displayed page.
WordBox = tuple[float, float, str]


@dataclass(frozen=True, slots=True)
class Highlights:
    """Counted over citations whose page holds words of its own (a scan's does not)."""

    # Words of quotes.
    words: int
    # Those under the quote's rectangles.
    covered: int
    citations: int
    # Citations whose rectangles hold more foreign words than words of the quote.
    misplaced: int
    # Citations without a rectangle.
    unmarked: int
    # Citations of pages without words of their own.
    unknown: int

    @property
    def share(self) -> float:
        """Of the words that are covered; nan when nothing was quoted."""
        return self.covered / self.words if self.words else math.nan


def count_highlights(marks: Iterable[Mark], files: Mapping[str, Path]) -> Highlights:
    """Hold every mark against its page."""
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
    """Words of the quote that are under the rectangles.

    A word may be printed in two pieces, and two in one: letters decide where words do not.
    """
    together = (quoted & marked).total()
    rest = plain("".join((marked - quoted).elements()))
    return together + sum(word in rest for word in (quoted - marked).elements())
