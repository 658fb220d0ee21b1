"""Document structure: splits a document into chunk units by its layout, or by fonts if none is known.

Parts that belong together are bound: a caption to its table or figure, a callout to its step, a list's first
item to its lead-in sentence, a header row to the first row under it. Each unit carries its heading path, and
a unit that runs over a page break stays whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ingestion.chunking.segments import PageSpan, Segment, is_open, list_marker, segments_of
from ingestion.layout.headings import ALIGNED, FULL_LINE_CHARS, MAX_HEADING_LINES, HeadingDetector, Rank
from ingestion.layout.reading_order import Block
from ingestion.layout.titles import choose_title
from storage.models import Page
from storage.pdf.models import BlockKind, Line, PdfText
from storage.text.callouts import is_callout, opens_callout
from storage.text.contents import is_contents_title
from storage.text.sentences import ListStack

_WARNING = re.compile(r"\W*(?:warning|caution|danger|important|attention|notice|note)\b", re.IGNORECASE)
_PAGE_NUMBER = re.compile(r"(?:page|seite|p\.)?\s*[\divxl]+(?:\s*(?:of|/|von|de)\s*\d+)?", re.IGNORECASE)

# A callout without a frame ends before it gets longer.
MAX_CALLOUT_CHARS = 1200
# Distance of a line's end from the right edge of the page's text if it is not full; in page widths.
MIN_RIGHT_GAP = 0.1

# Maximum words of a heading in body print that only its place shows.
MAX_SIBLING_WORDS = 6

# A longer lead-in sentence is not repeated where its list is split.
MAX_LEAD_CHARS = 300

# A segment with the index of its page.
PageSegment = tuple[int, Segment]

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
        found = list(_with_callouts(text, found, self._pdf.lines[page]))
        for number, piece in enumerate(found):
            after = found[number + 1] if number + 1 < len(found) else None
            before = found[number - 1] if number else None
            is_bound = not piece.keep_with_next and _keeps_with_next(text, before, piece, after)
            yield piece._replace(keep_with_next=True) if is_bound else piece

    def is_entry(self, open_heading: str, below: PageSegment) -> bool:
        """True if a heading is an entry of a table of contents: its page number follows as a segment."""
        page, piece = below
        first_line = self._pdf.pages[page].text[piece.start : piece.end].partition("\n")[0]
        return is_contents_title(open_heading) and first_line.isdecimal()

    def is_sibling(self, rank: Rank, heading: str, here: PageSegment, below: PageSegment) -> bool:
        """True if a segment is a heading like the open one, in body print: the layout model misses some.

        It is a line of its own above a paragraph, maybe of the next page, as short as headings are.
        """
        (page, piece), (page_below, after) = here, below
        text, text_below = self._pdf.pages[page].text, self._pdf.pages[page_below].text
        is_body = not (piece.rank or piece.is_row or piece.is_aside or piece.is_callout)
        if not is_body or not self._outline.is_in_body_print(rank):
            return False
        said = text[piece.start : piece.end]
        is_apart = text.startswith("\n\n", piece.end) or page < page_below
        is_alone = text.endswith("\n\n", 0, piece.start) and is_apart
        is_short = len(said.split()) <= MAX_SIBLING_WORDS and "\n" not in said and "," not in said
        is_alike = (said[-1] == ":") == (heading[-1] == ":") and said[0].isupper() and said[-1] not in ".;?!"
        is_item = list_marker(text, piece.start) or list_marker(text_below, after.start)
        is_long = not (after.rank or after.is_row) and after.end - after.start >= FULL_LINE_CHARS
        return bool(is_alone and is_short and is_alike and is_long and not is_item)

    def _of_blocks(self, page: int) -> Iterator[Segment]:
        text, lines = self._pdf.pages[page].text, self._pdf.lines[page]
        kept = {line.start: rank for line, rank in self._outline.lines(page)}
        blocks = [block for block in self._blocks[page] if not _is_page_number(block, text)]
        for number, block in enumerate(blocks):
            own = [line for line in lines[block.first_line : block.end_line] if line.start in kept]
            if block.kind is BlockKind.TABLE:
                yield from self._rows(page, block, is_first=number == 0)
                continue
            if block.kind is BlockKind.CALLOUT:
                yield Segment(block.start, block.end, None, is_row=False, is_callout=True)
                continue
            is_aside = block.kind in _ASIDES
            stays = block.kind is BlockKind.CAPTION and _is_above_its_figure(blocks, number)
            for piece in segments_of(text, self._ranked(page, block, own, kept)):
                yield piece._replace(is_aside=is_aside, keep_with_next=stays)

    def _ranked(
        self, page: int, block: Block, lines: Sequence[Line], by_font: Mapping[int, Rank | None]
    ) -> Iterator[tuple[Line, Rank | None]]:
        """Return lines with heading ranks: from the layout, except for short lines in large or bold print."""
        ranks = [by_font[line.start] for line in lines]
        if block.kind is BlockKind.HEADING:
            is_text = self._outline.is_plain_text(page, lines)
            ranks = [None if is_text else self._outline.heading_rank(page, line) for line in lines]
        elif block.is_seen:
            count = self._headings_at_start(page, lines, ranks) if block.kind in _BODY else 0
            ranks = [*ranks[:count], *[None] * (len(lines) - count)]
        return zip(lines, ranks, strict=True)

    def _headings_at_start(self, page: int, lines: Sequence[Line], ranks: Sequence[Rank | None]) -> int:
        """Return the number of lines in large or bold print at the start of a block that are its heading.

        The layout model sometimes joins a heading and the paragraph below it. In the bold beginning of a
        paragraph, the last line is full, or its sentence goes on in lower case.
        """
        text = self._pdf.pages[page].text
        count = next((number for number, rank in enumerate(ranks) if rank is None), len(ranks))
        if not 0 < count <= MAX_HEADING_LINES or text[lines[count - 1].end - 1] in ".:":
            return 0
        if count == len(lines):
            return count
        right = max(line.box.x1 for line in self._pdf.lines[page])
        is_short = lines[count - 1].box.x1 < right - MIN_RIGHT_GAP
        return count if is_short and not text[lines[count].start].islower() else 0

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
    opens = _WARNING.match(said) is not None and (before is None or before.rank is not None)
    return opens or (said.endswith(":") and not piece.is_row and not piece.rank)


def _with_callouts(text: str, pieces: Sequence[Segment], lines: Sequence[Line]) -> Iterator[Segment]:
    """Yield the segments of a page, with one for each callout that has no frame.

    In a list, a label before text ("Note: ...") is about the item above, which it stays with.
    """
    number = 0
    while number < len(pieces):
        piece, after = pieces[number], number + 1
        if _opens_callout(text, piece):
            after = _callout_end(text, pieces, number, lines)
            is_below_item = number > 0 and list_marker(text, pieces[number - 1].start) != ""
            is_next = is_callout(text[piece.start : piece.end]) or not is_below_item
            piece = piece._replace(end=pieces[after - 1].end, is_row=False, is_callout=is_next)
        yield piece
        number = after


def _opens_callout(text: str, piece: Segment) -> bool:
    """True if a segment and its line begin with the label of a callout, maybe as the first cell of a row."""
    first = text[piece.start : piece.end].partition("\n")[0]
    begins_line = text[max(piece.start - 1, 0) : piece.start] in ("", "\n")
    is_other = piece.rank or piece.is_aside or piece.is_callout
    return not is_other and begins_line and opens_callout(first)


def _callout_end(text: str, pieces: Sequence[Segment], first: int, lines: Sequence[Line]) -> int:
    """Return the index after the last segment of a callout.

    It has one paragraph below its label, and more of its indentation if the text before it is less indented.
    """
    label, end = pieces[first], first + 1
    needs_text = is_callout(text[label.start : label.end])
    stops = (number for number in range(end, len(pieces)) if not _is_prose(text, label, pieces[number]))
    stop = next(stops, len(pieces))
    left = _left(lines, label)
    bodies = (one for one in (*reversed(pieces[:first]), *pieces[stop:]) if not (one.rank or one.is_aside))
    body = next((one for one in bodies if not _opens_callout(text, one)), label)
    is_indented = _left(lines, body) < left - ALIGNED
    while end < stop:
        is_apart = "\n\n" in text[pieces[end - 1].end : pieces[end].start]
        is_aligned = is_indented and _left(lines, pieces[end]) >= left - ALIGNED
        if is_apart and not needs_text and not is_aligned:
            break
        needs_text &= not is_apart
        end += 1
    return end


def _is_prose(text: str, label: Segment, piece: Segment) -> bool:
    """True if a segment may belong to the callout of a label."""
    is_other = piece.rank or piece.is_row or piece.is_aside or piece.is_callout or _opens_callout(text, piece)
    is_step = list_marker(text, piece.start)[:1].isalnum()
    return not is_other and not is_step and piece.end - label.start <= MAX_CALLOUT_CHARS


def _left(lines: Sequence[Line], piece: Segment) -> float:
    """Return the left edge of the line in which a segment begins."""
    return next((line.box.x0 for line in lines if line.start <= piece.start < line.end), 0.0)


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
    is_callout: bool = False
    # Rows that name a table row's columns, or lead-ins of a list item, outermost first; repeated when a chunk
    # begins with this unit.
    headers: tuple[PageSpan, ...] = ()
    # Fraction of a full chunk that it fills, in the scarcer of the two units of size.
    size: float = 0.0
    tokens: int = 0


def units_of(pdf: PdfText, structure: Structure, title: str) -> list[ChunkUnit]:
    """Return a document's units in reading order; a sentence over a page break is one unit."""
    units = _joined(_headed(pdf, structure, title), pdf.pages)
    _bind_callouts(units)
    return units


def _bind_callouts(units: Sequence[ChunkUnit]) -> None:
    """Keep each callout with the next unit, on the next page, too; a heading of another section follows none.

    Below the heading of its section, a callout also stays with the first subsection.
    """
    for number, unit in enumerate(units):
        after = next((n for n in range(number + 1, len(units)) if not units[n].is_aside), None)
        if not unit.is_callout or after is None:
            continue
        follower = units[after]
        above = next((one for one in reversed(units[:number]) if not one.is_callout), unit)
        is_below = above.is_heading and follower.path[: len(unit.path)] == unit.path
        if is_below or not follower.is_heading:
            for one in units[number:after]:
                one.keep_with_next = True


def _headed(pdf: PdfText, structure: Structure, title: str) -> Iterator[ChunkUnit]:
    """Yield the document's segments with their heading paths; the title is not part of a path."""
    open_headings: list[tuple[Rank, str]] = []
    leads: ListStack[PageSpan] = ListStack()
    pieces = [(number, one) for number in range(len(pdf.pages)) for one in structure.segments(number)]
    for here, below in zip(pieces, _bodies_below(pieces), strict=True):
        number, piece = here
        page = pdf.pages[number]
        text = " ".join(page.text[piece.start : piece.end].split())
        rank = piece.rank
        if open_headings and below and structure.is_sibling(*open_headings[-1], here, below):
            rank = open_headings[-1][0]
        if rank and open_headings and below and structure.is_entry(open_headings[-1][1], below):
            rank = None
        is_title = text == title or (number == 0 and text in title)
        if rank and not is_title:
            same = next((at for at, one in enumerate(open_headings) if one[1] == text), None)
            if same is None:
                open_headings = [one for one in open_headings if one[0] < rank]
                open_headings.append((rank, text))
            elif rank == open_headings[same][0]:
                open_headings = open_headings[: same + 1]
            # else the heading is repeated in other print, above its text
        path = tuple(heading for _, heading in open_headings)
        is_text = not rank and not piece.is_row and not piece.is_aside
        yield ChunkUnit(
            [PageSpan(number, piece.start, piece.end)],
            path,
            is_heading=rank is not None,
            is_open=is_text and is_open(text),
            keep_with_next=piece.keep_with_next,
            is_aside=piece.is_aside,
            is_callout=piece.is_callout,
            headers=piece.headers or _introduced(leads, page.text, number, piece),
        )


def _bodies_below(pieces: Sequence[PageSegment]) -> list[PageSegment | None]:
    """Return for each segment the next one that is no aside."""
    found: list[PageSegment | None] = []
    below: PageSegment | None = None
    for one in reversed(pieces):
        found.append(below)
        below = below if one[1].is_aside else one
    return found[::-1]


def _introduced(leads: ListStack[PageSpan], text: str, page: int, piece: Segment) -> tuple[PageSpan, ...]:
    """Return the lead-ins of a list item; () for other segments. Must see all segments in reading order."""
    is_body = not piece.rank and not piece.is_row
    marker = list_marker(text, piece.start) if is_body else ""
    if piece.is_aside or piece.is_callout or (is_body and not marker and text[piece.start].islower()):
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
