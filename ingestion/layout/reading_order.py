"""Reading order: combines the layout regions of a page with the words of its text layer.

Rewrites the page's text block by block in reading order, with tables as Markdown. No word is lost or changed,
and each keeps its box. A word belongs to the block that contains its centre.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise

from ingestion.layout.callouts import merge_callouts, split_label
from ingestion.layout.layout_fixes import correct_regions, is_middle_in, repeated_figures
from ingestion.layout.row_labels import ABOVE
from ingestion.layout.tables import Grid, Table
from storage.models import Box, Page, WordBox
from storage.pdf.models import BlockKind, Layout, Line, PdfText, Region
from storage.text.sentences import LIST_MARKER
from storage.text.word_boxes import WordMap

_MARKER = re.compile(LIST_MARKER)


@dataclass(frozen=True, slots=True)
class Block:
    """A block of a page's text, such as a paragraph, heading or table."""

    kind: BlockKind
    first_line: int
    # Exclusive; both are indices of the page's lines.
    end_line: int
    start: int
    # Exclusive; the block is Page.text[start:end].
    end: int
    # False for text outside of all layout regions.
    is_seen: bool = True
    # (start, end) of the Markdown of each table row.
    rows: tuple[tuple[int, int], ...] = ()
    columns: int = 0
    # True if the first row names the columns.
    has_header: bool = False
    # For each row, the indices of the rows with its group name and label.
    above: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class ArrangedPdf:
    """A read PDF with its pages' text in reading order."""

    pdf: PdfText
    # By page; empty where the layout is unknown.
    blocks: tuple[tuple[Block, ...], ...]
    # Page (1-based) -> its figures, without decoration.
    figures: Mapping[int, Sequence[Region]]

    @property
    def tables(self) -> int:
        """Number of tables; one that continues on the next page counts twice."""
        return sum(block.kind is BlockKind.TABLE for page in self.blocks for block in page)


def arrange(pdf: PdfText, layout: Layout) -> ArrangedPdf:
    """Return the PDF with the same words per page, in the order and blocks of the layout."""
    pages: list[Page] = []
    lines: list[tuple[Line, ...]] = []
    blocks: list[tuple[Block, ...]] = []
    figures: dict[int, list[Region]] = {}
    repeated = repeated_figures(layout)
    for page, printed in zip(pdf.pages, pdf.lines, strict=True):
        regions = layout.pages.get(page.number)
        if regions is None:
            pages.append(page)
            lines.append(printed)
            blocks.append(())
            continue
        turn = layout.turns.get(page.number, 0)
        upright, own = _turned_page(page, printed, turn)
        writer = _Writer(upright, own)
        sound = merge_callouts(
            upright,
            correct_regions(upright, own, regions, repeated),
            layout.frames.get(page.number, ()),
            continues=bool(blocks) and _ends_in_callout(blocks[-1]),
        )
        for owned in _owned(upright, sound):
            writer.write(owned)
        back, written = _turned_page(writer.page(), writer.lines, -turn)
        pages.append(back)
        lines.append(tuple(written))
        blocks.append(tuple(writer.blocks))
        drawn = [region for region in sound if region.kind is BlockKind.FIGURE]
        figures[page.number] = [replace(region, box=_turned(region.box, -turn)) for region in drawn]
    return ArrangedPdf(replace(pdf, pages=tuple(pages), lines=tuple(lines)), tuple(blocks), figures)


def _ends_in_callout(blocks: Sequence[Block]) -> bool:
    seen = [one.kind for one in blocks if one.kind not in {BlockKind.RUNNING, BlockKind.FOOTNOTE}]
    return seen[-1:] == [BlockKind.CALLOUT]


def _turned(box: Box, quarters: int) -> Box:
    """Return a box after ``quarters`` clockwise quarter turns of the page; negative: counterclockwise."""
    for _ in range(quarters % 4):
        box = Box(1 - box.y1, box.x0, 1 - box.y0, box.x1)
    return box


def _turned_page(page: Page, lines: Sequence[Line], quarters: int) -> tuple[Page, Sequence[Line]]:
    """Return a page and its lines after ``quarters`` quarter turns; the text does not change."""
    if not quarters % 4:
        return page, lines
    words = WordMap.pack([word._replace(box=_turned(word.box, quarters)) for word in page.words])
    width, height = (page.height, page.width) if quarters % 2 else (page.width, page.height)
    upright = replace(page, width=width, height=height, words=words)
    return upright, [replace(line, box=_turned(line.box, quarters)) for line in lines]


@dataclass(slots=True)
class _Owned:
    """A region with its words in file order; None: words outside of all regions."""

    region: Region | None
    words: list[WordBox] = field(default_factory=list)


def _owned(page: Page, regions: Sequence[Region]) -> list[_Owned]:
    """Assign every word of a page to a region, in reading order; stray words follow their neighbour."""
    words = list(page.words)
    owners = _owners(words, regions)
    ordered = [_Owned(region) for region in regions]
    strays: dict[int, _Owned] = {}
    last = -1
    for word, owner in zip(words, owners, strict=True):
        if owner is None:
            strays.setdefault(last, _Owned(None)).words.append(word)
        else:
            ordered[owner].words.append(word)
            last = owner
    found = [strays[-1]] if -1 in strays else []
    for index, owned in enumerate(ordered):
        found += [owned, strays[index]] if index in strays else [owned]
    return [owned for owned in found if owned.words]


def _owners(words: Sequence[WordBox], regions: Sequence[Region]) -> list[int | None]:
    """Return each word's region index: the smallest around its centre, else that of its line neighbour."""
    owners = [_around(word, regions) for word in words]
    for back, (before, word) in enumerate(pairwise(words)):
        joins = before.end == word.start
        if joins or (owners[back + 1] is None and before.line == word.line):
            owners[back + 1] = owners[back]
    for at in range(len(words) - 2, -1, -1):
        if owners[at] is None and words[at].line == words[at + 1].line:
            owners[at] = owners[at + 1]
    return owners


def _around(word: WordBox, regions: Sequence[Region]) -> int | None:
    around = [index for index, region in enumerate(regions) if is_middle_in(word.box, region.box)]
    return min(around, key=lambda index: _area(regions[index].box), default=None)


def _area(box: Box) -> float:
    return (box.x1 - box.x0) * (box.y1 - box.y0)


def _down_the_page(words: Sequence[WordBox]) -> Sequence[WordBox]:
    """Return a block's words in file order; sorted by line if that order jumps up within a column."""
    lines = [list(group) for _, group in groupby(words, key=lambda word: word.line)]
    if not any(_jumps_up(before, line) for before, line in pairwise(lines)):
        return words
    return [word for line in sorted(lines, key=lambda line: line[0].box.y0) for word in line]


def _jumps_up(before: Sequence[WordBox], line: Sequence[WordBox]) -> bool:
    is_above = line[0].box.y1 <= before[0].box.y0
    is_beside = line[0].box.x0 >= before[-1].box.x1 or line[-1].box.x1 <= before[0].box.x0
    return is_above and not is_beside


class _Writer:
    """Rewrites one page's text."""

    def __init__(self, page: Page, lines: Sequence[Line]) -> None:
        self._page = page
        self._old_lines = lines
        self._parts: list[str] = []
        self._length = 0
        self._words: list[WordBox] = []
        self.lines: list[Line] = []
        self.blocks: list[Block] = []

    def write(self, owned: _Owned) -> None:
        """Write one block, or one per table of the region."""
        grid = Grid.of(owned.region, owned.words, self._page) if owned.region else None
        if grid:
            for table in grid.tables(self._old_lines):
                self._write_table(table)
            return
        kind = owned.region.kind if owned.region else BlockKind.TEXT
        kind = BlockKind.TEXT if kind is BlockKind.TABLE else kind
        start, first_line = self._begin(goes_on=self._continues_list(kind, owned.words))
        label, words = (
            split_label(owned.words, self._page.text) if kind is BlockKind.CALLOUT else ((), owned.words)
        )
        if label:
            self._run(label, " ")
            self._put("\n" if words else "")
        self._run(_down_the_page(words), "\n")
        is_seen = owned.region is not None
        self.blocks.append(Block(kind, first_line, len(self.lines), start, self._length, is_seen=is_seen))

    def _continues_list(self, kind: BlockKind, words: Sequence[WordBox]) -> bool:
        """True for a list item without a marker, which stays with the list's lead-in sentence."""
        is_item = kind is BlockKind.ITEM and bool(self.blocks) and self.blocks[-1].kind is kind
        return is_item and not _MARKER.match(self._page.text, words[0].start)

    def _begin(self, *, goes_on: bool = False) -> tuple[int, int]:
        """Separate a block from the previous one; return its start and the index of its first line."""
        self._put("\n" if goes_on else "\n\n" if self._parts else "")
        return self._length, len(self.lines)

    def _write_table(self, table: Table) -> None:
        start, first_line = self._begin()
        rows = tuple(self._rows(table))
        self.blocks.append(
            Block(
                BlockKind.TABLE,
                first_line,
                len(self.lines),
                start,
                self._length,
                rows=rows,
                columns=len(table.rows[0]),
                has_header=table.has_header,
                above=tuple(map(table.above, range(len(rows)))),
            )
        )

    def _rows(self, table: Table) -> Iterator[tuple[int, int]]:
        """Write a table's rows as Markdown and yield their ranges; the header's includes the rule below."""
        for number, cells in enumerate(table.rows):
            self._put("\n" if number else "")
            start = self._length
            self._put("|")
            for column, words in enumerate(cells):
                label = ABOVE if column == 0 and number in table.repeats else ""
                self._put("" if number in table.groups and not words else f" {label}")
                self._run(words, " ")
                self._put(" |" if words or label else "|")
            if number == 0 and table.has_header:
                self._put("\n|" + " --- |" * len(cells))
            yield start, self._length

    def _run(self, words: Sequence[WordBox], between_lines: str) -> None:
        """Write consecutive words; each old line stays a line."""
        before: WordBox | None = None
        for old_line, group in groupby(words, key=lambda word: word.line):
            first = len(self._words)
            for word in group:
                if before:
                    self._put(self._gap(before, word, between_lines))
                start = self._length
                self._put(self._page.text[word.start : word.end])
                self._words.append(word._replace(start=start, end=self._length, line=len(self.lines)))
                before = word
            line = self._words[first:]
            lefts, tops, rights, bottoms = zip(*(word.box for word in line), strict=True)
            box = Box(min(lefts), min(tops), max(rights), max(bottoms))
            old = self._old_lines[old_line]
            self.lines.append(replace(old, start=line[0].start, end=line[-1].end, box=box))

    def _gap(self, before: WordBox, word: WordBox, between_lines: str) -> str:
        """Return the page's own space between neighbouring words; nothing inside a joined word."""
        gap = self._page.text[before.end : word.start] if before.end <= word.start else between_lines
        if before.line != word.line:
            return gap and between_lines
        return gap if gap.isspace() and between_lines == "\n" else gap and " "

    def _put(self, text: str) -> None:
        self._parts.append(text)
        self._length += len(text)

    def page(self) -> Page:
        """Return the page with its new text."""
        return replace(self._page, text="".join(self._parts), words=WordMap.pack(self._words))
