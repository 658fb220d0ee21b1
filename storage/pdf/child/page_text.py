"""Turns MuPDF's characters of one page into text in which every word knows its place; cleans the /Title.

Runs in the limited child, works on plain dictionaries and never imports PyMuPDF itself. Places go from
MuPDF's unrotated page space to whole numbers of the displayed page.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, NamedTuple, Protocol

from storage.text.word_boxes import SCALE, WIDTH, WordMap

MAX_TITLE_CHARS = 200

_JUNK = re.compile(
    r"""(?ix)
    untitled.* | no\ title | title | \(anonymous\) | unknown | none | null | default | test
    | (new\ )?(document|presentation|slide|page|sheet|book|workbook|folie|template)[\s_-]*\d*
    | powerpoint[\s-]presentation | slide\s\d+
    | (microsoft\s(word|powerpoint|excel)|word|print)\s*-.*
    | .*\.(docx?|dotx?|pptx?|xlsx?|odt|odp|rtf|tex|dvi|html?|indd|qxd|pdf|ps|txt|tmp|md)
    | (https?|file):.* | about:blank
    | [{(]?[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}[)}]?
    | (scan|img|image|doc)[\s_-]*\d+
    """
)

MIN_FONT_SIZE = 1.0
"""Text smaller than this many points is read by nobody."""

MIN_ALPHA = 13
"""Text with less opacity than this (of 255) is seen by nobody."""

_WORD = re.compile(r"[^\s\ufffd]+")  # a glyph that the font maps to nothing is no text
_BOLD = re.compile(r"bold|black|heavy", re.IGNORECASE)
_COMPOUND = re.compile(r"[^\W\d_]+-[^\W\d_]+")
_PART_BEFORE = re.compile(r"[^\w-]*([^\W\d_]+)")
_PART_AFTER = re.compile(r"([^\W\d_]+)(?![\w-])")
_UNMAPPED = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f\ue000-\uf0a6\uf0a8-\uf0b6\uf0b8-\uf8ff\ufffd]")
_CELL_GAP = "  "
_HYPHENS = "-\u2010\u2011\xad"
_CLEANED = str.maketrans(
    {
        **dict.fromkeys([*range(0x20), *range(0x7F, 0xA0)]),  # control characters, NUL among them
        **dict.fromkeys([0xAD, *range(0x200B, 0x2010), *range(0x2060, 0x2065), 0xFEFF]),  # without width
        **dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A)]),  # turns of direction
        **dict.fromkeys(range(0xE0000, 0xE0080)),  # tags: text for machines that nobody sees
        **dict.fromkeys(range(0xD800, 0xE000)),  # halves of a pair are no text
        **dict.fromkeys([0xF0A7, 0xF0B7], "•"),  # the bullets of two symbol fonts
        **dict.fromkeys([0x2010, 0x2011], "-"),
    }
)


class PageTransform(NamedTuple):
    """Maps MuPDF's unrotated page space to SCALE-ths of the displayed page."""

    a: float
    b: float
    c: float
    d: float
    e: float
    f: float

    def place(self, x0: float, y0: float, x1: float, y1: float) -> tuple[int, int, int, int]:
        """The displayed box of a box: turned by right angles it stays one."""
        a, b, c, d, e, f = self
        left, right = a * x0 + c * y0 + e, a * x1 + c * y1 + e
        top, bottom = b * x0 + d * y0 + f, b * x1 + d * y1 + f
        if left > right:
            left, right = right, left
        if top > bottom:
            top, bottom = bottom, top
        if left < 0 or top < 0 or right > SCALE or bottom > SCALE:
            left, top, right, bottom = (min(max(side, 0), SCALE) for side in (left, top, right, bottom))
        return round(left), round(top), round(right), round(bottom)

    def place_all(self, boxes: Sequence[float]) -> Sequence[int]:
        """The same for many boxes, four numbers each; on an upright page all at once."""
        a, b, c, d, e, f = self
        lefts, tops, rights, bottoms = (boxes[side::4] for side in range(4))
        is_inside = (
            (b, c) == (0, 0)
            and a > 0
            and d > 0
            and a * min(lefts) + e >= 0
            and d * min(tops) + f >= 0
            and a * max(rights) + e <= SCALE
            and d * max(bottoms) + f <= SCALE
        )
        if not is_inside:
            return [
                side for box in zip(lefts, tops, rights, bottoms, strict=True) for side in self.place(*box)
            ]
        placed = [0] * len(boxes)
        placed[0::4], placed[2::4] = ([round(a * x + e) for x in side] for side in (lefts, rights))
        placed[1::4], placed[3::4] = ([round(d * y + f) for y in side] for side in (tops, bottoms))
        return placed


def placed(page: int, words: Sequence[tuple[int, int, int]], boxes: Sequence[int]) -> WordMap:
    """The words of page ``page``, each (start, end, line), with their boxes, four numbers each."""
    starts, ends, lines = zip(*words, strict=True)
    flat = [page] * (WIDTH * len(words))
    flat[0::WIDTH], flat[1::WIDTH], flat[3::WIDTH] = starts, ends, lines
    for side in range(4):
        flat[4 + side :: WIDTH] = boxes[side::4]
    return WordMap(array("i", flat))


def sane_title(raw: str | None) -> str:
    """The title if a person wrote it, else ''; never a control character in it, never long."""
    text = unicodedata.normalize("NFKC", (raw or "").replace("\x00", ""))
    text = "".join(char if char.isprintable() else " " for char in text)
    title = " ".join(text.replace("\ufffd", " ").split())
    letters = sum(char.isalpha() for char in title)
    if letters < 3 or _JUNK.fullmatch(title):
        return ""
    return title[:MAX_TITLE_CHARS].rstrip()


class PageInk(Protocol):
    """What has to be asked of the page itself, and only when a text looks hidden."""

    def is_white(self, box: tuple[float, float, float, float]) -> bool:
        """Nothing but white is printed in this box."""

    def is_scan(self) -> bool:
        """One picture covers the page: unseen text over it is what OCR read there."""


@dataclass(slots=True)
class PageText:
    """One page's text with its words, and its lines as whole numbers, ready to travel."""

    number: int
    """Counted from 1."""
    text: str = ""
    words: WordMap = field(default_factory=WordMap)
    lines: list[int] = field(default_factory=list)
    """Eight per line: start, end, size in tenths of a point, bold, x0, y0, x1, y1."""
    hidden: int = 0
    unmapped: int = 0
    """Characters whose font does not say what they are."""


@dataclass(slots=True)
class Row:
    """The words on one baseline, in unrotated page space."""

    block: int
    """Rows of one block follow each other closely; an empty line stands between blocks."""
    words: list[list[Any]] = field(default_factory=list)
    """Each is [text, x0, y0, x1, y1]."""
    gaps: set[int] = field(default_factory=set)
    """Numbers of the words that open a further cell of the row."""
    sizes: dict[float, int] = field(default_factory=dict)
    is_bold: bool = True
    is_level: bool = True


def read_page(
    raw: dict[str, Any], number: int, matrix: PageTransform, ink: PageInk, compounds: set[str]
) -> PageText:
    """Text of page ``number`` in file order.

    Ligatures must have been expanded by MuPDF. A word cut at a line's end is joined again: without
    its hyphen when both parts are letters of one word and ``compounds`` (the hyphenated words met so
    far in this document, added to here) does not hold it, else with it: ``SOP-IT-`` + ``04``.
    """
    page = PageText(number)
    rows = list(_rows(raw, ink, page))
    for row in rows:
        for word in row.words[:-1]:
            if "-" in word[0]:
                compounds.update(_COMPOUND.findall(word[0].lower()))
    write(rows, matrix, compounds, page)
    return page


def _rows(raw: dict[str, Any], ink: PageInk, page: PageText) -> Iterator[Row]:
    """Rows in file order; lines that stand beside each other become one."""
    row: Row | None = None
    for number, block in enumerate(raw["blocks"]):
        for line in block.get("lines", ()):
            new = _row(line, number, ink, page)
            if not new.words:
                continue
            if row and _is_beside(row, new):
                _extend(row, new)
                continue
            if row:
                yield row
            row = new
    if row:
        yield row


def _is_beside(row: Row, new: Row) -> bool:
    """The new line goes on to the right, on the same baseline."""
    _, _, top, right, bottom = row.words[-1]
    _, left, y0, _, y1 = new.words[0]
    return row.is_level and new.is_level and left >= right - 1 and top < (y0 + y1) / 2 < bottom


def _extend(row: Row, new: Row) -> None:
    row.gaps.add(len(row.words))
    row.words += new.words
    row.is_bold &= new.is_bold
    for size, count in new.sizes.items():
        row.sizes[size] = row.sizes.get(size, 0) + count


def _row(line: dict[str, Any], block: int, ink: PageInk, page: PageText) -> Row:
    """One of MuPDF's lines; words go on from span to span unless a space stands between."""
    across, down = line["dir"]
    row = Row(block, is_level=across > 0 and abs(down) < 0.01)
    is_open = False
    for span in line["spans"]:
        chars = span["chars"]
        text = "".join([char["c"] for char in chars])
        if _is_hidden(span, ink):
            page.hidden += len(text.split())
            is_open = False
            continue
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
            _note_font(row, span, len(text))
        is_open = bool(row.words) and _WORD.match(text[-1:]) is not None
    return row


def _note_font(row: Row, span: dict[str, Any], length: int) -> None:
    size = round(span["size"], 1)
    row.sizes[size] = row.sizes.get(size, 0) + length
    row.is_bold &= bool(span["flags"] & 16) or _BOLD.search(span["font"]) is not None


def _box(
    chars: list[dict[str, Any]], start: int, end: int, is_level: bool
) -> tuple[float, float, float, float]:
    """Box around chars[start:end]; the further letters of a ligature have no width and do not count."""
    left, top, middle, bottom = chars[start]["bbox"]
    last_left, last_top, right, last_bottom = chars[end - 1]["bbox"]
    if is_level and left < middle <= right and last_left < right:
        return left, top if top < last_top else last_top, right, max(bottom, last_bottom)
    boxes = [char["bbox"] for char in chars[start:end]]
    boxes = [box for box in boxes if box[0] < box[2] and box[1] < box[3]] or boxes
    lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    return min(lefts), min(tops), max(rights), max(bottoms)


def _join(word: list[Any], more: list[Any]) -> None:
    """Let a word go on in the next span."""
    word[0] += more[0]
    word[1:] = [*map(min, word[1:3], more[1:3]), *map(max, word[3:], more[3:])]


def _is_hidden(span: dict[str, Any], ink: PageInk) -> bool:
    """Nobody can see this text: tiny, transparent or invisible, or white on white."""
    if span["size"] < MIN_FONT_SIZE:
        return True
    if span["alpha"] < MIN_ALPHA:
        return not ink.is_scan()
    color = span["color"]
    is_pale = min(color >> 16 & 255, color >> 8 & 255, color & 255) >= 0xF0
    return is_pale and ink.is_white(span["bbox"])


def write(rows: list[Row], matrix: PageTransform, compounds: set[str], page: PageText) -> None:
    """Lay the rows out as the text of ``page`` and note where each word and line begins and ends."""
    script = _TextWriter(page)
    for row, following in zip_longest(rows, rows[1:]):
        cut = _cut_word(row, following, compounds)
        if cut == "drop":
            row.words[-1][0] = row.words[-1][0][:-1]
        if script.add(row, matrix):
            is_same_block = following is not None and following.block == row.block
            script.gap = "" if cut else "\n" if is_same_block else "\n\n"
    page.text = "".join(script.parts)
    if script.words:
        page.words = placed(page.number, script.words, matrix.place_all(script.boxes))


@dataclass(slots=True)
class _TextWriter:
    """A page's text as it grows, row by row."""

    page: PageText
    parts: list[str] = field(default_factory=list)
    words: list[tuple[int, int, int]] = field(default_factory=list)
    """Each is (start, end, line)."""
    boxes: list[float] = field(default_factory=list)
    position: int = 0
    gap: str = ""
    """What stands before the next word."""

    def add(self, row: Row, matrix: PageTransform) -> bool:
        """Write a row; returns whether anything was left of it to write."""
        first, line = len(self.words), len(self.page.lines) // 8
        for index, word in enumerate(row.words):
            text = word[0]
            if not (text.isascii() and text.isprintable()):
                text = _clean(text)
            if text:
                gap = _CELL_GAP if index in row.gaps else self.gap
                start = self.position + len(gap)
                self.parts += (gap, text)
                self.position = start + len(text)
                self.words.append((start, self.position, line))
                self.boxes += word[1:]
                self.gap = " "
        if first == len(self.words):
            return False
        size = max(row.sizes, key=row.sizes.__getitem__)
        own = self.boxes[4 * first :]
        box = matrix.place(min(own[0::4]), min(own[1::4]), max(own[2::4]), max(own[3::4]))
        self.page.lines += (self.words[first][0], self.position, round(size * 10), row.is_bold, *box)
        return True


def _cut_word(row: Row, following: Row | None, compounds: set[str]) -> str:
    """How a row's last word goes on in the next: 'drop' its hyphen, 'keep' it, or '' for not at all."""
    if following is None or following.block != row.block or row.gaps or following.gaps:
        return ""
    head, tail = row.words[-1][0], following.words[0][0]
    if len(head) < 2 or head[-1] not in _HYPHENS or not head[-2].isalnum() or not tail[0].isalnum():
        return ""
    if head[-1] == "\xad":
        return "drop"
    before, after = _PART_BEFORE.fullmatch(head[:-1]), _PART_AFTER.match(tail)
    if not before or not after or not _is_part(before[1]) or not after[1].islower():
        return "keep"
    return "keep" if f"{before[1]}-{after[1]}".lower() in compounds else "drop"


def _is_part(text: str) -> bool:
    """Lower-case letters, the first of which a sentence may have made large: no ``X-`` of X-rays."""
    return text.islower() or text[1:].islower()


def _clean(word: str) -> str:
    """NFKC (ligatures, presentation forms, wide letters), without what has no width."""
    normal = unicodedata.normalize("NFKC", word.translate(_CLEANED)).translate(_CLEANED)
    return "".join(normal.split())
