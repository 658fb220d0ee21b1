"""View model of a page: marks, search hits, invisible text layer and plain text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, pairwise

from bot.web.link_verification import AnswerQuote, VerifiedLink
from bot.web.viewer.document_search import SearchResult
from storage.models import Box, Page, VersionSource, metadata_line
from storage.text.word_boxes import bounding_boxes

# Search hits marked on a page.
MAX_HITS = 200

_PARAGRAPH = re.compile(r"\S(?:.|\n(?!\n))*")
# A line of at least this share of its paragraph's longest line continues on the next one.
_FULL_LINE = 0.7
# A4 in points, for pages that were never read.
UNREAD_SIZE = 595.0, 842.0

# Share of a line's height below its baseline.
_BELOW_BASELINE = 0.22


@dataclass(frozen=True, slots=True)
class MarkedBox:
    """Bounding box of a quote on the page."""

    box: Box
    # Belongs to the opened quote, which is marked strongest and scrolled to.
    is_current: bool


@dataclass(frozen=True, slots=True)
class MarginNumber:
    """Numbers of the quotes that begin in a line, shown beside it."""

    text: str
    # Start of the line, as a share of the page's width.
    x: float
    # Middle of the line, as a share of the page's height.
    y: float


@dataclass(frozen=True, slots=True)
class SearchHit:
    """Search hit on the page."""

    # Counted from 1, down the page.
    number: int
    boxes: tuple[Box, ...]


@dataclass(frozen=True, slots=True)
class TextSpan:
    """Word of the invisible text layer, in points."""

    text: str
    x: float
    length: float


@dataclass(frozen=True, slots=True)
class TextLine:
    """Line of the invisible text layer, in points."""

    y: float
    size: float
    spans: tuple[TextSpan, ...]


@dataclass(frozen=True, slots=True)
class TextRun:
    """Run of the page's text with the same marks."""

    text: str
    # Any of ``hit`` (opened quote), ``other`` (another quote) and ``searched``.
    marks: tuple[str, ...]
    # Number of the search hit; 0: none.
    place: int


@dataclass(frozen=True, slots=True)
class PageView:
    """View model of one page."""

    number: int
    pages: int
    # Printed page number; '' if it is the same or unknown.
    label: str
    is_cited: bool
    cited_page: int
    # The opened quote's come last, so that they lie on top.
    marks: tuple[MarkedBox, ...]
    # Empty if the page has only one quote.
    margin: tuple[MarginNumber, ...]
    # All quotes of the answer on this page.
    quotes: tuple[AnswerQuote, ...]
    found: tuple[SearchHit, ...]
    # Displayed size in points; A4 if the page was never read.
    width: float
    height: float
    lines: tuple[TextLine, ...]
    # Text for reading without the picture; empty if none was read.
    paragraphs: tuple[tuple[TextRun, ...], ...]


def make_page_view(
    link: VerifiedLink,
    number: int,
    page: Page | None,
    quotes: Sequence[AnswerQuote],
    found: SearchResult | None = None,
) -> PageView:
    """Return page ``number`` of the link's version; ``page`` is None if it was never read."""
    here = [
        one for one in quotes if (one.record.version_id, one.record.page) == (link.claims.version_id, number)
    ]
    margin = tuple(_margin(here, page)) if len(here) > 1 else ()
    marks = tuple(_marks(here))
    return _view(
        link.source,
        number,
        link.claims.page,
        page,
        marks=marks,
        margin=margin,
        quotes=tuple(here),
        found=found,
    )


def make_chunk_view(
    source: VersionSource,
    number: int,
    cited_page: int,
    page: Page | None,
    boxes: Sequence[Box],
    *,
    found: SearchResult | None = None,
) -> PageView:
    """Return page ``number`` of a version with a chunk's boxes marked; the chunk begins on ``cited_page``."""
    marks = tuple(MarkedBox(box, is_current=True) for box in boxes)
    return _view(source, number, cited_page, page, marks=marks, margin=(), quotes=(), found=found)


def _view(
    source: VersionSource,
    number: int,
    cited_page: int,
    page: Page | None,
    *,
    marks: tuple[MarkedBox, ...],
    margin: tuple[MarginNumber, ...],
    quotes: tuple[AnswerQuote, ...],
    found: SearchResult | None,
) -> PageView:
    spans = found.wording.spans(page.text)[:MAX_HITS] if page and found else []
    return PageView(
        number=number,
        pages=source.pages,
        label=page.label if page and page.label != str(number) else "",
        is_cited=number == cited_page,
        cited_page=cited_page,
        marks=marks,
        margin=margin,
        quotes=quotes,
        found=tuple(_found(page, spans)) if page else (),
        width=page.width if page else UNREAD_SIZE[0],
        height=page.height if page else UNREAD_SIZE[1],
        lines=tuple(_lines(page)) if page else (),
        paragraphs=tuple(_paragraphs(page, marks, spans)) if page else (),
    )


def _found(page: Page, spans: Iterable[tuple[int, int]]) -> Iterable[SearchHit]:
    for number, (start, end) in enumerate(spans, start=1):
        boxes = [box for group in bounding_boxes(page.words, start, end).values() for box in group]
        if boxes:
            yield SearchHit(number, tuple(boxes))


def _marks(quotes: Sequence[AnswerQuote]) -> Iterable[MarkedBox]:
    for one in sorted(quotes, key=lambda quote: quote.is_current):
        yield from (MarkedBox(box, one.is_current) for box in one.record.boxes)


def _margin(quotes: Sequence[AnswerQuote], page: Page | None) -> Iterable[MarginNumber]:
    """Return the quotes' numbers by line, placed beside the lines so that they cover no word."""
    numbers: dict[tuple[float, float], list[str]] = {}
    for one in quotes:
        if one.record.boxes:
            box = one.record.boxes[0]
            place = _line_start(box, page), round((box.y0 + box.y1) / 2, 3)
            numbers.setdefault(place, []).append(str(one.record.number))
    return [MarginNumber(" ".join(texts), *place) for place, texts in numbers.items()]


def _line_start(box: Box, page: Page | None) -> float:
    """Return the start of the line that a box begins in; the box's edge if the page was never read."""
    words = page.words if page else ()
    middle = (box.y0 + box.y1) / 2
    inside = [one for one in words if one.box.y0 <= middle <= one.box.y1 and one.box.x1 > box.x0]
    first = min(inside, key=lambda one: one.box.x0, default=None)
    return min((one.box.x0 for one in words if first and one.line == first.line), default=box.x0)


def _lines(page: Page) -> Iterable[TextLine]:
    for _, group in groupby(page.words, key=lambda word: word.line):
        words = list(group)
        top = min(word.box.y0 for word in words) * page.height
        bottom = max(word.box.y1 for word in words) * page.height
        height = bottom - top
        spans = []
        for word in words:
            x0, x1 = word.box.x0 * page.width, word.box.x1 * page.width
            text = page.text[word.start : word.end]
            spans.append(TextSpan(text, round(x0, 1), round(max(0.1, x1 - x0), 1)))
        yield TextLine(round(bottom - _BELOW_BASELINE * height, 1), round(0.85 * height, 1), tuple(spans))


def _paragraphs(
    page: Page, marks: Sequence[MarkedBox], spans: Sequence[tuple[int, int]]
) -> Iterable[tuple[TextRun, ...]]:
    """Yield the text's paragraphs as runs, with wrapped lines joined to reflow on the reader's screen."""
    marked = [*_quoted(page, marks), *((*span, "searched", place) for place, span in enumerate(spans, 1))]
    edges = sorted({edge for start, end, _, _ in marked for edge in (start, end)})
    for paragraph in _PARAGRAPH.finditer(page.text):
        start, end = paragraph.span()
        text, runs = _join_wrapped_lines(paragraph[0]), []
        within = [start, *(edge for edge in edges if start < edge < end), end]
        for first, last in pairwise(within):
            over = [one for one in marked if one[0] <= first and last <= one[1]]
            place = next((number for _, _, _, number in over if number), 0)
            runs.append(TextRun(text[first - start : last - start], tuple(one[2] for one in over), place))
        yield tuple(runs)


def _quoted(page: Page, marks: Sequence[MarkedBox]) -> Iterable[tuple[int, int, str, int]]:
    """Yield (start, end, mark, 0) of each run of words that lies in boxes of quotes."""
    for is_current, mark in ((True, "hit"), (False, "other")):
        boxes = [one.box for one in marks if one.is_current is is_current]
        for is_inside, group in groupby(page.words, key=lambda word: _lies_in(word.box, boxes)):
            if is_inside:
                words = list(group)
                yield words[0].start, words[-1].end, mark, 0


def _lies_in(word: Box, boxes: Iterable[Box]) -> bool:
    x, y = (word.x0 + word.x1) / 2, (word.y0 + word.y1) / 2
    return any(box.x0 <= x <= box.x1 and box.y0 <= y <= box.y1 for box in boxes)


def _join_wrapped_lines(paragraph: str) -> str:
    """Replace a line end by a space if its line is nearly as long as the longest: it was wrapped."""
    lines = paragraph.split("\n")
    full = _FULL_LINE * max(map(len, lines))
    ends = [" " if len(line) >= full else "\n" for line in lines[:-1]]
    return "".join(chain.from_iterable(zip(lines, [*ends, ""], strict=True)))


def citation_line(source: VersionSource, number: int, label: str) -> str:
    """Return the reference to a page of a version, for copying with a quote."""
    says = metadata_line(source.metadata)
    printed = f" (printed: {label})" if label else ""
    about = f"{source.title}. {says}." if says else f"{source.title}."
    return f"{about} File {source.file}, version {source.number}, page {number}{printed}."
