"""Segments of a page that should stay whole: sentences, steps, list items, table rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ingestion.layout.headings import MAX_HEADING_LINES, Rank, is_row
from storage.pdf.models import Line
from storage.text.sentences import BULLETS, marker_kind

_ITEM = re.compile(
    rf"(?:step\s+)?\(?(?:\d{{1,3}}(?:\.\d{{1,3}})*|[a-z]|[ivx]{{1,4}})[.):]\s|[{BULLETS}]\s", re.IGNORECASE
)
_END = re.compile(r"[.!?]['\"”’)\]]*(?=\s+['\"“‘(\[]*[A-Z0-9À-Þ])|[。！？؟]")
_END_MARKS = frozenset(".!?:;。！？؟")
_ABBREVIATION = re.compile(
    r"(?:\b(?:[A-Za-z]|no|nos|vs|etc|e\.g|i\.e|dr|mr|mrs|ms|st|inc|ltd|co|fig|figs|sec|rev|approx|dept|ref|vol|pp|art)"
    r"|^\s*\(?\d+(?:\.\d+)*)\.$",
    re.IGNORECASE,
)


class PageSpan(NamedTuple):
    """A range of the text of one page (0-based)."""

    page: int
    start: int
    end: int


class Segment(NamedTuple):
    """A range of a page's text that should stay whole."""

    start: int
    end: int
    # Heading rank; None for other text.
    rank: Rank | None
    # A table row never continues in the next line.
    is_row: bool
    # Stays with the next segment.
    keep_with_next: bool = False
    # Rows with the column names, group and label of a table row.
    headers: tuple[PageSpan, ...] = ()
    # Caption, footnote or text in a figure; the surrounding text continues after it.
    is_aside: bool = False
    # Whole warning, caution or note.
    is_callout: bool = False


def list_marker(text: str, start: int) -> str:
    """Return the kind of list marker at an offset, like "1.1" for 7.2 or "•"; '' if there is none."""
    marker = _ITEM.match(text, start)
    return marker_kind(marker[0]) if marker else ""


def segments_of(text: str, lines: Iterable[tuple[Line, Rank | None]]) -> Iterator[Segment]:
    """Yield the segments of a page in order; every character of the lines belongs to exactly one."""
    for paragraph in _paragraphs(text, lines):
        is_whole = paragraph.rank or paragraph.is_row or _ITEM.match(text, paragraph.start)
        if is_whole:
            yield paragraph
        else:
            yield from (
                Segment(start, end, None, False)
                for start, end in sentences(text, paragraph.start, paragraph.end)
            )


def _paragraphs(text: str, lines: Iterable[tuple[Line, Rank | None]]) -> Iterator[Segment]:
    """Yield paragraphs, joined from consecutive lines."""
    whole: Segment | None = None
    for line, rank in lines:
        new = Segment(line.start, line.end, rank, is_row(text[line.start : line.end]))
        if whole and _goes_on(text, whole, new):
            whole = Segment(whole.start, new.end, whole.rank, whole.is_row)
            continue
        if whole:
            yield _unranked(text, whole)
        whole = new
    if whole:
        yield _unranked(text, whole)


def _unranked(text: str, whole: Segment) -> Segment:
    """Return the paragraph; one with more lines than a heading can have loses its heading rank."""
    is_long = text.count("\n", whole.start, whole.end) >= MAX_HEADING_LINES
    return whole._replace(rank=None) if whole.rank and is_long else whole


def _goes_on(text: str, whole: Segment, new: Segment) -> bool:
    """True if the new line continues the paragraph or heading before it."""
    gap = text[whole.end : new.start]
    if gap.strip() or "\n\n" in gap or whole.is_row or new.is_row:
        return False
    if whole.rank or new.rank:
        return whole.rank is not None and new.rank is not None and whole.rank[:2] == new.rank[:2]
    return not _ITEM.match(text, new.start)


def sentences(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of each sentence in text[start:end], without the white space between them."""
    begin = start
    for stop in _END.finditer(text, start, end):
        if _ABBREVIATION.search(text[max(begin, stop.start() - 12) : stop.start() + 1]):
            continue
        yield begin, stop.end()
        begin = stop.end()
        while begin < end and text[begin].isspace():
            begin += 1
    if begin < end:
        yield begin, end


def is_open(text: str) -> bool:
    """True if a sentence has no end mark, as when the page's end cuts it off."""
    return text.rstrip("'\"”’)]")[-1:] not in _END_MARKS
