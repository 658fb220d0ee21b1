"""What the viewer shows of one page: its number, its marks, and its words where they stand on paper."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

from bot.web.opening import OpenLink
from storage.models import Box, Page, PlacedWord

_BASELINE = 0.22
"""Share of a word's box that hangs below its base line."""


@dataclass(frozen=True, slots=True)
class TextSpan:
    """A word of the invisible text layer, in points."""

    text: str
    x: float
    length: float


@dataclass(frozen=True, slots=True)
class TextLine:
    """A line of the invisible text layer, in points."""

    y: float
    size: float
    spans: tuple[TextSpan, ...]


@dataclass(frozen=True, slots=True)
class Mark:
    """A marked rectangle, in percent of the page."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class PageView:
    """One page as the viewer shows it."""

    number: int
    pages: int
    label: str
    """The printed page number, or '' when it is the same or unknown."""
    is_cited: bool
    cited_page: int
    marks: tuple[Mark, ...]
    width: float
    height: float
    """Displayed size in points; those of A4 when the page was never read."""
    lines: tuple[TextLine, ...]
    text: str


def make_page_view(link: OpenLink, number: int, page: Page | None) -> PageView:
    """The page ``number`` of the link's version; ``page`` is None when it was never read."""
    is_cited = number == link.claims.page
    label = page.label if page and page.label != str(number) else ""
    return PageView(
        number=number,
        pages=link.source.pages,
        label=label,
        is_cited=is_cited,
        cited_page=link.claims.page,
        marks=tuple(map(_mark, link.citation.boxes)) if is_cited else (),
        width=page.width if page else 595.0,
        height=page.height if page else 842.0,
        lines=tuple(_lines(page)) if page else (),
        text=page.text if page else "",
    )


def _mark(box: Box) -> Mark:
    return Mark(*(round(100 * share, 3) for share in (box.x0, box.y0, box.x1 - box.x0, box.y1 - box.y0)))


def _lines(page: Page) -> Iterable[TextLine]:
    for _, group in groupby(page.words, key=lambda word: word.line):
        words = list(group)
        top = min(word.box.y0 for word in words) * page.height
        bottom = max(word.box.y1 for word in words) * page.height
        height = bottom - top
        spans = tuple(_span(page, word) for word in words)
        yield TextLine(round(bottom - _BASELINE * height, 1), round(0.85 * height, 1), spans)


def _span(page: Page, word: PlacedWord) -> TextSpan:
    x0, x1 = word.box.x0 * page.width, word.box.x1 * page.width
    return TextSpan(page.text[word.start : word.end], round(x0, 1), round(max(0.1, x1 - x0), 1))
