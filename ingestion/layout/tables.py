"""Tables: assigns the words of a table region to cells.

The layout model says where cells are. Where it merged two columns, the white strip between them gives them
away: no word crosses it in any row, and several rows have words on both sides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

from ingestion.layout.row_labels import find_groups, find_repeats
from ingestion.layout.table_headers import find_headers
from storage.models import Box, Page, WordBox
from storage.pdf.models import BlockKind, Line, Region

# Gaps as multiples of the word height: seldom, and never, between words of one cell.
WIDE_GAP, VERY_WIDE_GAP = 1.2, 3.0
# Words closer than this are one phrase, whatever column they are in.
NO_GAP = 0.4
# Minimum number of rows, and at least half of those with words, that a strip must split.
MIN_ROWS = 2

# Fraction of the rows that may cross the strip, such as a remark over both columns.
MAX_SPANNING_SHARE = 0.25

# A column with more words than any printed page is not split: the time grows quadratically.
MAX_WORDS = 1500

MAX_DOTS_SHARE = 0.25
# Maximum words before the colon of a label.
MAX_LABEL_WORDS = 6

Cell = list[WordBox]
Rows = list[list[Cell]]
Gap = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells of words, with the structure of header, groups and labels."""

    rows: Rows
    has_header: bool  # the first row is a header
    groups: frozenset[int]  # rows with a group name
    repeats: Mapping[int, int]  # row whose first cell repeats a label -> row with that label

    def above(self, number: int) -> tuple[int, ...]:
        """Return the rows with the group name and the label of a row."""
        group = max((one for one in self.groups if one < number), default=None)
        found = (None if number in self.groups else group, self.repeats.get(number))
        return tuple(one for one in found if one is not None)


@dataclass(frozen=True, slots=True)
class Grid:
    """Rows of cells of words, all of the same length, without empty rows and columns."""

    rows: Rows
    page: Page

    @classmethod
    def of(cls, region: Region, words: Sequence[WordBox], page: Page) -> Grid | None:
        """Return the cells of a table region; None if it is no table, with a single row or column."""
        has_cells = any(cell for row in region.cells for cell in row)
        if region.kind is not BlockKind.TABLE or not has_cells:
            return None
        aspect = page.width / page.height if page.height else 1
        rows = _without_empty(_split_columns(_assign_words(region.cells, words, aspect), aspect))
        rows = _merge_rows(rows, page.text)
        rows = _split_labels(rows, page.text) if rows else rows
        is_table = len(rows) > 1 and len(rows[0]) > 1
        return cls(rows, page) if is_table and not _is_contents(words, page) else None

    def tables(self, lines: Sequence[Line]) -> Iterator[Table]:
        """Yield the table, split at further headers, with its groups and labels.

        A form has no header: its first row is like the others.
        """
        text = self.page.text
        texts = [
            [" ".join(text[word.start : word.end] for word in cell) for cell in row] for row in self.rows
        ]
        own = [{word.line for cell in row for word in cell} for row in self.rows]
        bold = [all(lines[line].is_bold for line in row) for row in own]
        sizes = [max(lines[line].size for line in row) for row in own]
        is_form = any(_is_label(row[0], text) for row in self.rows)
        headers = [] if is_form else find_headers(texts, bold=bold, sizes=sizes)
        for first, end in pairwise([0, *(number for number in headers if number), len(texts)]):
            has_header = first in headers
            groups = find_groups(texts[first:end], bold[first:end], has_header=has_header)
            repeats = find_repeats(texts[first:end], groups, has_header=has_header)
            yield Table(self.rows[first:end], has_header, groups, repeats)


def _is_contents(words: Sequence[WordBox], page: Page) -> bool:
    """True for a table of contents, with dots before its page numbers."""
    dots = sum(not page.text[word.start : word.end].strip(".…·") for word in words)
    return dots > MAX_DOTS_SHARE * len(words)


def _assign_words(cells: Sequence[Sequence[Box | None]], words: Sequence[WordBox], aspect: float) -> Rows:
    """Return the words in their nearest cells; words close to the previous one stay in its cell."""
    width = max(map(len, cells))
    rows: Rows = [[[] for _ in range(width)] for _ in cells]
    places = [
        (row, column, box)
        for row, own in enumerate(cells)
        for column, box in enumerate(own)
        if box is not None
    ]
    before: WordBox | None = None
    row = column = 0
    for word in words:
        if before is None or not _goes_on(before, word, aspect):
            row, column, _ = min(places, key=lambda place: _distance(word.box, place[2]))
        rows[row][column].append(word)
        before = word
    return rows


def _goes_on(before: WordBox, word: WordBox, aspect: float) -> bool:
    gap = (word.box.x0 - before.box.x1) * aspect
    return before.line == word.line and gap < NO_GAP * (before.box.y1 - before.box.y0)


def _distance(word: Box, cell: Box) -> float:
    """Return the distance of a word's centre from a cell; 0 inside."""
    x, y = (word.x0 + word.x1) / 2, (word.y0 + word.y1) / 2
    return max(cell.x0 - x, 0, x - cell.x1) + max(cell.y0 - y, 0, y - cell.y1)


def _split_columns(rows: Rows, aspect: float) -> Rows:
    """Return the rows with columns split at the white strips inside them."""
    column = 0
    while column < len(rows[0]):
        cells = [row[column] for row in rows]
        if sum(map(len, cells)) > MAX_WORDS:
            column += 1
            continue
        gaps = [list(_gaps(cell, aspect, WIDE_GAP)) for cell in cells]
        # No strip: split at a gap in a single row that is too wide for one cell.
        lone = ((x0 + x1) / 2 for cell in cells for x0, x1 in _gaps(cell, aspect, VERY_WIDE_GAP))
        at = _strip(cells, gaps) or next(lone, None)
        if at is None:
            column += 1
            continue
        for row, cell, own in zip(rows, cells, gaps, strict=True):
            row[column : column + 1] = _sides(cell, own, at)
    return rows


def _strip(cells: Sequence[Cell], gaps: Sequence[Sequence[Gap]]) -> float | None:
    """Return the position of the widest white strip that splits a column in most rows, or None."""
    filled = sum(map(bool, cells))
    found: dict[float, float] = {}
    for x0, x1 in chain(*gaps):
        at = (x0 + x1) / 2
        parted = sum(_parts(own, at) for own in gaps)
        spanning = sum(
            not _parts(own, at) and _spans(cell, at) for cell, own in zip(cells, gaps, strict=True)
        )
        if parted >= max(MIN_ROWS, filled / 2) and spanning <= MAX_SPANNING_SHARE * filled:
            found[at] = x1 - x0
    return max(found, key=found.__getitem__, default=None)


def _sides(cell: Cell, gaps: Sequence[Gap], at: float) -> list[Cell]:
    """Return a cell's words left and right of a strip; a cell that crosses it stays whole."""
    if not _parts(gaps, at) and _spans(cell, at):
        return [cell, []]
    return [[word for word in cell if word.box.x0 < at], [word for word in cell if word.box.x0 >= at]]


def _parts(gaps: Sequence[Gap], at: float) -> bool:
    return any(left < at < right for left, right in gaps)


def _spans(cell: Cell, at: float) -> bool:
    return any(word.box.x0 < at for word in cell) and any(word.box.x1 > at for word in cell)


def _gaps(cell: Cell, aspect: float, least: float) -> Iterator[Gap]:
    """Yield the (left, right) of wide gaps between neighbours on one line."""
    for word in cell:
        _, top, edge, bottom = word.box
        level = [other.box for other in cell if top < (other.box.y0 + other.box.y1) / 2 < bottom]
        right = min((box.x0 for box in level if box.x0 >= edge), default=edge)
        if (right - edge) * aspect > least * (bottom - top):
            yield edge, right


def _merge_rows(rows: Rows, text: str) -> Rows:
    """Merge rows that are lines of one row: a word or a bracket continues in the next line."""
    joined = rows[:1]
    for row in rows[1:]:
        pairs = list(zip(joined[-1], row, strict=True))
        if any(above and below and _goes_below(above, below, text) for above, below in pairs):
            joined[-1] = [above + below for above, below in pairs]
        else:
            joined.append(row)
    return joined


def _goes_below(above: Cell, below: Cell, text: str) -> bool:
    """True if a word is split between two cells, with or without its hyphen, or a bracket is still open."""
    end, start = above[-1].end, below[0].start
    begun = text[max(end - 2, 0) : end].removesuffix("-")[-1:]
    is_cut = begun.isalpha() and text[start].islower() and (end == start or text[end - 1] == "-")
    return is_cut or (_open_brackets(above, text) > 0 and _open_brackets(below, text) < 0)


def _open_brackets(cell: Cell, text: str) -> int:
    signs = "".join(text[word.start : word.end] for word in cell)
    return signs.count("(") - signs.count(")")


def _split_labels(rows: Rows, text: str) -> Rows:
    """Split label columns of a form, so that each has a value column next to it."""
    if not _holds_labels(rows, 0, text):
        return rows
    column = 0
    while column < len(rows[0]):
        is_alone = column + 1 == len(rows[0]) or _holds_labels(rows, column + 1, text)
        if _holds_labels(rows, column, text) and is_alone:
            for row in rows:
                row[column : column + 1] = _label_and_value(row[column], text)
        column += 1
    return rows


def _holds_labels(rows: Rows, column: int, text: str) -> bool:
    """True if most of a column's cells end in a colon, or have one after their first words."""
    filled = [row[column] for row in rows if row[column]]
    return sum(_is_label(_label_and_value(cell, text)[0], text) for cell in filled) > 0.6 * len(filled)


def _label_and_value(cell: Cell, text: str) -> list[Cell]:
    for number, word in enumerate(cell[:MAX_LABEL_WORDS], start=1):
        if text[word.end - 1] == ":":
            return [cell[:number], cell[number:]]
    return [cell, []]


def _is_label(cell: Cell, text: str) -> bool:
    return bool(cell) and text[cell[-1].end - 1] == ":"


def _without_empty(rows: Rows) -> Rows:
    rows = [row for row in rows if any(row)]
    used = [column for column in range(len(rows[0]) if rows else 0) if any(row[column] for row in rows)]
    return [[row[column] for column in used] for row in rows]
