"""Document structure: splits a document into chunk units by its layout, or by fonts if none is known.

Parts that belong together are bound: a caption to its table or figure, a warning to its step, a list's first
item to its lead-in sentence, a header row to the first row under it. Each unit carries its heading path, and
a unit that runs over a page break stays whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ingestion.chunking.segments import PageSpan, Segment, is_open, list_marker, segments_of
from ingestion.layout.headings import MAX_HEADING_LINES, HeadingDetector, Rank
from ingestion.layout.reading_order import Block
from ingestion.layout.titles import choose_title
from storage.models import Page
from storage.pdf.models import BlockKind, Line, PdfText
from storage.text.sentences import ListStack, is_callout

_WARNING = re.compile(r"\W*(?:warning|caution|danger|important|attention|notice|note)\b", re.IGNORECASE)
_PAGE_NUMBER = re.compile(r"(?:page|seite|p\.)?\s*[\divxl]+(?:\s*(?:of|/|von|de)\s*\d+)?", re.IGNORECASE)

# A longer lead-in sentence is not repeated where its list is split.
MAX_LEAD_CHARS = 300

_BODY = {BlockKind.TEXT, BlockKind.ITEM}
# Blocks that interrupt a sentence or list, which continues after them.
_ASIDES = {BlockKind.FIGURE, BlockKind.CAPTION, BlockKind.FOOTNOTE, BlockKind.RUNNING}


class Structure:
    """Title and segments of a document."""

    def __init__(self, pdf: PdfText, blocks: Sequence[Sequence[Block]] = ()) -> None:
        """Use layout ``blocks``, by page, from ``reading_order.py``; without them, fonts only."""
        self._pdf = pdf
        self._blocks = blocks or [()] * len(pdf.pages)
        self._outline = HeadingDetector(pdf)

    def title(self) -> str:
        """Return the title; '' if neither page 1 nor the PDF's /Title has one."""
        return choose_title(self._outline.largest_print(), self._pdf.title)

    def segments(self, page: int) -> Iterator[Segment]:
        """Yield the segments of a page (0-based), each marked if it is bound to the next one."""
        text = self._pdf.pages[page].text
        by_font = segments_of(text, self._outline.lines(page))
        found = list(self._of_blocks(page) if self._blocks[page] else by_font)
        for number, piece in enumerate(found):
            after = found[number + 1] if number + 1 < len(found) else None
            before = found[number - 1] if number else None
            is_bound = not piece.keep_with_next and _keeps_with_next(text, before, piece, after)
            yield piece._replace(keep_with_next=True) if is_bound else piece

    def _of_blocks(self, page: int) -> Iterator[Segment]:
        text, lines = self._pdf.pages[page].text, self._pdf.lines[page]
        kept = {line.start: rank for line, rank in self._outline.lines(page)}
        blocks = [block for block in self._blocks[page] if not _is_page_number(block, text)]
        for number, block in enumerate(blocks):
            own = [line for line in lines[block.first_line : block.end_line] if line.start in kept]
            if block.kind is BlockKind.TABLE:
                yield from self._rows(page, block, is_first=number == 0)
                continue
            is_aside = block.kind in _ASIDES
            stays = block.kind is BlockKind.CAPTION and _is_above_its_figure(blocks, number)
            for piece in segments_of(text, self._ranked(page, block, own, kept)):
                yield piece._replace(is_aside=is_aside, keep_with_next=stays)

    def _ranked(
        self, page: int, block: Block, lines: Sequence[Line], by_font: Mapping[int, Rank | None]
    ) -> Iterator[tuple[Line, Rank | None]]:
        """Return lines with heading ranks: from the layout, except for short lines in large or bold print."""
        ranks, text = [by_font[line.start] for line in lines], self._pdf.pages[page].text
        if block.kind is BlockKind.HEADING:
            ranks = [self._outline.heading_rank(page, line) for line in lines]
        elif block.is_seen:
            is_heading = block.kind in _BODY and len(lines) <= MAX_HEADING_LINES and all(ranks)
            ranks = ranks if is_heading and text[block.end - 1] not in ".:" else [None] * len(lines)
        return zip(lines, ranks, strict=True)

    def _rows(self, page: int, table: Block, *, is_first: bool) -> Iterator[Segment]:
        """Yield table rows, each with its column header (maybe from the page before), group and label."""
        header = self._continued(page, table) if is_first and not table.has_header else None
        names = {row for above in table.above for row in above}
        for number, (start, end) in enumerate(table.rows):
            if number == 0 and table.has_header:
                header = PageSpan(page, start, end)
                yield Segment(start, end, None, is_row=True, keep_with_next=True)
                continue
            above = table.above[number] if table.above else ()
            labels = [PageSpan(page, *table.rows[row]) for row in above]
            headers = (header, *labels) if header else tuple(labels)
            yield Segment(start, end, None, is_row=True, keep_with_next=number in names, headers=headers)

    def _continued(self, page: int, table: Block) -> PageSpan | None:
        """Return the header row of the table that ends the previous page, if this table continues it."""
        before = self._last_block(page - 1) if page else None
        if before is None or before.kind is not BlockKind.TABLE or before.columns != table.columns:
            return None
        return PageSpan(page - 1, *before.rows[0]) if before.has_header else None

    def _last_block(self, page: int) -> Block | None:
        seen = [one for one in self._blocks[page] if one.kind not in {BlockKind.RUNNING, BlockKind.FOOTNOTE}]
        return seen[-1] if seen else None


def _is_page_number(block: Block, text: str) -> bool:
    printed = text[block.start : block.end].strip()
    return block.kind is BlockKind.RUNNING and _PAGE_NUMBER.fullmatch(printed) is not None


def _is_above_its_figure(blocks: Sequence[Block], number: int) -> bool:
    """True if a caption is above its table or figure; one below is bound by that block."""
    after = blocks[number + 1] if number + 1 < len(blocks) else None
    return after is not None and after.kind in {BlockKind.TABLE, BlockKind.FIGURE}


def _keeps_with_next(text: str, before: Segment | None, piece: Segment, after: Segment | None) -> bool:
    """True if a segment stays with the next one."""
    if after is None or after.rank:
        return False
    if _WARNING.match(text, after.start) and not piece.rank:
        return True
    said = text[piece.start : piece.end]
    opens = _WARNING.match(said) is not None and (
        before is None or before.rank is not None or is_callout(said)
    )
    return opens or (said.endswith(":") and not piece.is_row and not piece.rank)


@dataclass(slots=True)
class ChunkUnit:
    """Smallest unit of packing: sentence, step, row or heading; two spans if a page break cuts it."""

    spans: list[PageSpan]
    path: tuple[str, ...]
    is_heading: bool
    is_open: bool = False
    # Stays with the next unit.
    keep_with_next: bool = False
    is_aside: bool = False
    # Rows that name a table row's columns, or lead-ins of a list item, outermost first; repeated when a chunk
    # begins with this unit.
    headers: tuple[PageSpan, ...] = ()
    # Fraction of a full chunk that it fills, in the scarcer of the two units of size.
    size: float = 0.0
    tokens: int = 0


def units_of(pdf: PdfText, structure: Structure, title: str) -> list[ChunkUnit]:
    """Return a document's units in reading order; a sentence over a page break is one unit."""
    return _joined(_headed(pdf, structure, title), pdf.pages)


def _headed(pdf: PdfText, structure: Structure, title: str) -> Iterator[ChunkUnit]:
    """Yield the document's segments with their heading paths; the title is not part of a path."""
    open_headings: list[tuple[Rank, str]] = []
    leads: ListStack[PageSpan] = ListStack()
    for number, page in enumerate(pdf.pages):
        for piece in structure.segments(number):
            text = " ".join(page.text[piece.start : piece.end].split())
            is_title = text == title or (number == 0 and text in title)
            if piece.rank and not is_title:
                open_headings = [one for one in open_headings if one[0] < piece.rank]
                open_headings.append((piece.rank, text))
            path = tuple(heading for _, heading in open_headings)
            is_text = not piece.rank and not piece.is_row and not piece.is_aside
            yield ChunkUnit(
                [PageSpan(number, piece.start, piece.end)],
                path,
                is_heading=piece.rank is not None,
                is_open=is_text and is_open(text),
                keep_with_next=piece.keep_with_next,
                is_aside=piece.is_aside,
                headers=piece.headers or _introduced(leads, page.text, number, piece),
            )


def _introduced(leads: ListStack[PageSpan], text: str, page: int, piece: Segment) -> tuple[PageSpan, ...]:
    """Return the lead-ins of a list item; () for other segments. Must see all segments in reading order."""
    is_body = not piece.rank and not piece.is_row
    marker = list_marker(text, piece.start) if is_body else ""
    if piece.is_aside or (is_body and not marker and text[piece.start].islower()):
        return ()
    found = leads.close_to(marker)
    if is_body and text[piece.start : piece.end].endswith(":") and piece.end - piece.start <= MAX_LEAD_CHARS:
        leads.open(marker, PageSpan(page, piece.start, piece.end))
    return found


def _joined(units: Iterable[ChunkUnit], pages: Sequence[Page]) -> list[ChunkUnit]:
    """Join sentences that a page break cuts, skipping captions, footnotes and other asides in between."""
    found: list[ChunkUnit] = []
    last: ChunkUnit | None = None
    for unit in units:
        if last and _continues(last, unit, pages):
            last.spans += unit.spans
            last.is_open = unit.is_open
            continue
        found.append(unit)
        if not unit.is_aside:
            last = unit
    return found


def _continues(last: ChunkUnit, unit: ChunkUnit, pages: Sequence[Page]) -> bool:
    page, start, _ = unit.spans[0]
    is_next_page = page == last.spans[-1].page + 1
    is_body = not unit.is_heading and not unit.is_aside and not unit.headers
    return last.is_open and is_next_page and is_body and pages[page].text[start].islower()
