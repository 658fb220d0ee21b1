"""Rows of words from MuPDF's output, and the text of a page from them.

A page is read by words, which is several times faster, unless it shows signs of more (hidden or
struck-through text, raised digits, right-to-left letters): then it is read by characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Protocol

from storage.pdf.child.glyphs.characters import correct, needs_characters
from storage.pdf.child.glyphs.hidden_text import HiddenText, Ink, Rect, lines_of
from storage.pdf.child.glyphs.printed_gaps import has_invented_gaps, has_parted_numbers
from storage.pdf.child.glyphs.word_gaps import join_spaced_words, merge_vertical_text
from storage.pdf.child.page_text import COMPOUND, PageText, PageTransform, Row, write

_WORD = re.compile(r"[^\s\ufffd]+")  # U+FFFD: a glyph without a mapping is not text
_BOLD = re.compile(r"bold|black|heavy", re.IGNORECASE)
_UNMAPPED = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f\ue000-\uf0a6\uf0a8-\uf0b6\uf0b8-\uf8ff\ufffd]")


class TextPage(Protocol):
    """A page as MuPDF read it, in increasing detail; see PyMuPDF's class of this name."""

    def extractDICT(self) -> dict[str, Any]:
        """Return blocks, lines and spans."""

    def extractWORDS(self) -> list[tuple[Any, ...]]:
        """Return words as (x0, y0, x1, y1, text, block, line, number)."""

    def extractRAWDICT(self) -> dict[str, Any]:
        """Return blocks, lines, spans and characters."""


def read_page(
    printed: TextPage, number: int, matrix: PageTransform, ink: Ink, compounds: set[str]
) -> PageText:
    """Return the text of page ``number`` in file order, with form values beside their labels.

    MuPDF must have expanded ligatures. A word hyphenated at a line's end is joined: without its hyphen if
    both parts are letters of one word and ``compounds`` (the hyphenated words found in this document so far,
    extended here) does not contain it, else with it: ``SOP-IT-`` + ``04``.
    """
    page = PageText(number)
    rows = _merged(merge_vertical_text(_rows(printed, ink, page)), ink.fields)
    join_spaced_words(rows)
    for row in rows:
        for word in row.words[:-1]:
            if "-" in word[0]:
                compounds.update(COMPOUND.findall(word[0].lower()))
    write(rows, matrix, compounds, page)
    return page


def _rows(printed: TextPage, ink: Ink, page: PageText) -> list[Row]:
    """Return a row for each of MuPDF's lines that contains text."""
    shown = printed.extractDICT()
    lines = list(lines_of(shown))
    unseen = HiddenText(lines, ink)
    text = "\n".join([span["text"] for line in lines for span in line["spans"]])
    if not (
        unseen
        or needs_characters(lines, text)
        or (has_parted_numbers(text) and has_invented_gaps(lines_of(printed.extractRAWDICT())))
    ):
        rows = _rows_of_words(shown, printed.extractWORDS())
        if rows is not None:
            return rows
    raw = printed.extractRAWDICT()
    page.struck = unseen.erase(list(lines_of(raw)))
    correct(raw, ink)
    blocks = enumerate(raw["blocks"])
    rows = [_row(line, number, page) for number, block in blocks for line in block.get("lines", ())]
    return [row for row in rows if row.words]


def _rows_of_words(shown: dict[str, Any], words: Sequence[tuple[Any, ...]]) -> list[Row] | None:
    """Return rows from MuPDF's words, or None where it splits lines otherwise than at white space."""
    rows: list[Row] = []
    texts: list[str] = []
    placed = [[text, x0, y0, x1, y1] for x0, y0, x1, y1, text, _, _, _ in words]
    for number, block in enumerate(shown["blocks"]):
        for line in block.get("lines", ()):
            spans = line["spans"]
            parts = "".join([span["text"] for span in spans]).split()
            if not parts:
                continue
            row = Row(number, placed[len(texts) : len(texts) + len(parts)], is_level=_is_level(line))
            texts += parts
            for span in spans:
                if text := span["text"].strip():
                    _note_font(row, span, len(text))
            rows.append(row)
    return rows if texts == [word[0] for word in placed] else None


def _is_level(line: dict[str, Any]) -> bool:
    across, down = line["dir"]
    return bool(across > 0 and abs(down) < 0.01)


def _row(line: dict[str, Any], block: int, page: PageText) -> Row:
    """Return a row for one of MuPDF's lines; words continue across spans unless a space separates them."""
    row = Row(block, is_level=_is_level(line))
    is_open = False
    for span in line["spans"]:
        chars = span["chars"]
        text = "".join([char["c"] for char in chars])
        if not (text.isascii() and text.isprintable()):
            page.unmapped += len(_UNMAPPED.findall(text))
        for match in _WORD.finditer(text):
            start, end = match.span()
            word = [match.group(), *_box(chars, start, end, row.is_level)]
            if is_open and start == 0:
                _join(row.words[-1], word)
            else:
                row.words.append(word)
        if _WORD.search(text):
            _note_font(row, span, len(text.strip()))
        is_open = bool(row.words) and _WORD.match(text[-1:]) is not None
    return row


def _note_font(row: Row, span: dict[str, Any], length: int) -> None:
    size = round(span["size"], 1)
    row.sizes[size] = row.sizes.get(size, 0) + length
    row.is_bold &= bool(span["flags"] & 16) or _is_bold(span["font"])


@lru_cache(maxsize=64)
def _is_bold(font: str) -> bool:
    return _BOLD.search(font) is not None


def _box(chars: list[dict[str, Any]], start: int, end: int, is_level: bool) -> Rect:
    """Return the box of chars[start:end], ignoring further letters of a ligature, which have no width."""
    left, top, middle, bottom = chars[start]["bbox"]
    last_left, last_top, right, last_bottom = chars[end - 1]["bbox"]
    if is_level and left < middle <= right and last_left < right:
        return left, top if top < last_top else last_top, right, max(bottom, last_bottom)
    boxes = [char["bbox"] for char in chars[start:end]]
    boxes = [box for box in boxes if box[0] < box[2] and box[1] < box[3]] or boxes
    lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    return min(lefts), min(tops), max(rights), max(bottoms)


def _join(word: list[Any], more: list[Any]) -> None:
    """Append the part of a word that is in the next span."""
    word[0] += more[0]
    word[1:] = [*map(min, word[1:3], more[1:3]), *map(max, word[3:], more[3:])]


def _merged(rows: Sequence[Row], fields: Sequence[Rect]) -> list[Row]:
    """Return rows in file order, with lines side by side merged and field values beside their labels."""
    values = [row for row in rows if any(_is_in(row, field) for field in fields)]
    merged = list(_beside_each_other([row for row in rows if row not in values] if values else rows))
    for value in values:
        _insert_value(merged, value)
    return merged


def _beside_each_other(rows: Sequence[Row]) -> Iterator[Row]:
    row: Row | None = None
    for new in rows:
        if row and _is_beside(row, new):
            _extend(row, new)
            continue
        if row:
            yield row
        row = new
    if row:
        yield row


def _is_beside(row: Row, new: Row) -> bool:
    """True if the new line continues the row to the right on the same baseline."""
    _, _, top, right, bottom = row.words[-1]
    if not (row.is_level and new.is_level and new.words[0][1] >= right - 1):
        return False
    y0, y1 = min([word[2] for word in new.words]), max([word[4] for word in new.words])
    return bool(top < (y0 + y1) / 2 < bottom)


def _extend(row: Row, new: Row) -> None:
    row.gaps.add(len(row.words))
    row.words += new.words
    row.is_bold &= new.is_bold
    for size, count in new.sizes.items():
        row.sizes[size] = row.sizes.get(size, 0) + count


def _is_in(row: Row, field: Rect) -> bool:
    """True if the row begins inside the field."""
    _, x0, y0, x1, y1 = row.words[0]
    return bool(field[0] <= (x0 + x1) / 2 <= field[2] and field[1] <= (y0 + y1) / 2 <= field[3])


def _insert_value(rows: list[Row], value: Row) -> None:
    """Insert a value into the row on its height, or else below the nearest row above it."""
    _, left, top, _, bottom = value.words[0]
    middle = (top + bottom) / 2
    level = [row for row in rows if row.is_level and row.words[0][2] < middle < row.words[0][4]]
    if level and value.is_level:
        _weave(min(level, key=lambda row: _distance(row, left)), value)
        return
    above = [number for number, row in enumerate(rows) if row.words[0][4] <= middle]
    place = max(above, key=lambda number: (rows[number].words[0][4], number), default=-1)
    value.block = rows[place].block if above else value.block
    rows.insert(place + 1, value)


def _distance(row: Row, left: float) -> tuple[bool, float]:
    """Return a sort key: whether the label is to the right of ``left``, and its distance."""
    ends = [word[3] for word in row.words if word[1] <= left]
    return (False, left - max(ends)) if ends else (True, row.words[0][1] - left)


def _weave(row: Row, value: Row) -> None:
    """Insert a value into a row as a separate cell."""
    at = next((at for at, word in enumerate(row.words) if word[1] > value.words[0][1]), len(row.words))
    length = len(value.words)
    row.gaps = {gap if gap < at else gap + length for gap in row.gaps} | {at, at + length}
    row.gaps -= {0, len(row.words) + length}
    row.words[at:at] = value.words
    row.is_bold = False
