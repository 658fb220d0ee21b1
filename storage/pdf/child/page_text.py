"""Text of a page, composed from rows of words, with each word's box; clean-up of the /Title.

Runs in the sandboxed child and does not import PyMuPDF itself. Boxes are converted from MuPDF's unrotated
page space to integer fractions of the displayed page.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate, zip_longest
from math import trunc
from typing import Any, NamedTuple

from storage.text.word_boxes import SCALE, WIDTH, WordMap

MAX_TITLE_CHARS = 200

# Largest distance between lines of a paragraph, in font sizes.
MAX_LINE_STEP = 3.2

# Largest indent or outdent of a paragraph's first line, in font sizes.
MAX_INDENT = 3

COMPOUND = re.compile(r"[^\W\d_]+-[^\W\d_]+")
_PART_BEFORE = re.compile(r"[^\w-]*([^\W\d_]+)")
_PART_AFTER = re.compile(r"([^\W\d_]+)(?![\w-])")
# Input of NFKC: all but characters that it would turn into plain digits (10⁵ into 105, 2½ into 21⁄2), or move
# as an accent to the letter before (5´).
_CHANGEABLE = re.compile(
    "[^\u00aa\u00b2\u00b3\u00b9-\u00be\u2070-\u209f\u2120\u2122\u2150-\u215f\u2189"
    "\u00a8\u00af\u00b4\u00b8\u02d8-\u02dd\u037a\u0384\u0385\u1fbd\u1fbf-\u1fc1\u1fcd-\u1fcf\u1fdd-\u1fdf"
    "\u1fed-\u1fef\u1ffd\u1ffe\u2017\u203e\u309b\u309c\uffe3]+"
)
_CELL_GAP = "  "
_HYPHENS = "-\u2010\u2011\u2212\xad"
_CLEANED = str.maketrans(
    {
        **dict.fromkeys([*range(0x20), *range(0x7F, 0xA0)]),  # control characters, including NUL
        **dict.fromkeys([0xAD, *range(0x200B, 0x2010), *range(0x2060, 0x2065), 0xFEFF]),  # zero-width
        **dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A)]),  # direction controls
        **dict.fromkeys(range(0xE0000, 0xE0080)),  # tags: invisible text for machines
        **dict.fromkeys(range(0xD800, 0xE000)),  # unpaired surrogates
        **dict.fromkeys([0xF0A7, 0xF0B7], "•"),  # bullets of two symbol fonts
        **dict.fromkeys([0x2010, 0x2011], "-"),
    }
)


class PageTransform(NamedTuple):
    """Affine map from MuPDF's unrotated page space to SCALE-ths of the displayed page."""

    a: float
    b: float
    c: float
    d: float
    e: float
    f: float

    def place(self, x0: float, y0: float, x1: float, y1: float) -> tuple[int, int, int, int]:
        """Return the displayed box of a box; pages are rotated by right angles only."""
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

    def place_all(self, sides: Sequence[Sequence[float]]) -> Sequence[Sequence[int]]:
        """Transform many boxes at once, given and returned as lefts, tops, rights and bottoms."""
        a, b, c, d, e, f = self
        lefts, tops, rights, bottoms = sides
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
            return list(zip(*(self.place(*box) for box in zip(*sides, strict=True)), strict=True))
        e, f = e + 0.5, f + 0.5  # nothing is negative, so truncating rounds, and is faster
        x0, x1 = ([trunc(a * x + e) for x in side] for side in (lefts, rights))
        y0, y1 = ([trunc(d * y + f) for y in side] for side in (tops, bottoms))
        return x0, y0, x1, y1


def printable_title(raw: str | None) -> str:
    """Return the /Title without control characters, at most two blanks in a row."""
    text = unicodedata.normalize("NFKC", (raw or "").replace("\x00", ""))
    text = "".join(char if char.isprintable() else " " for char in text)
    return re.sub(r"\s{2,}", "  ", text.replace("\ufffd", " ").strip())[:MAX_TITLE_CHARS].rstrip()


@dataclass(slots=True)
class PageText:
    """Text of a page with its words and lines, in serialisable form."""

    # From 1.
    number: int
    text: str = ""
    words: WordMap = field(default_factory=WordMap)
    # Eight integers per line: start, end, size in tenths of a point, bold, x0, y0, x1, y1.
    lines: list[int] = field(default_factory=list)
    # Struck-through words, which are left out.
    struck: int = 0
    # Characters whose font does not map them to Unicode.
    unmapped: int = 0


@dataclass(slots=True)
class Row:
    """The words on one baseline, in unrotated page space."""

    # Rows of a block follow each other closely; blocks are separated by an empty line.
    block: int
    # Each is [text, x0, y0, x1, y1].
    words: list[list[Any]] = field(default_factory=list)
    # Indexes of words that begin another cell of the row.
    gaps: set[int] = field(default_factory=set)
    sizes: dict[float, int] = field(default_factory=dict)
    is_bold: bool = True
    is_level: bool = True

    @property
    def size(self) -> float:
        """The most frequent font size."""
        if len(self.sizes) == 1:
            return next(iter(self.sizes))
        return max(self.sizes, key=self.sizes.__getitem__)


def write(rows: list[Row], matrix: PageTransform, compounds: set[str], page: PageText) -> None:
    """Compose the text of ``page`` from rows, with the offsets of each word and line."""
    script = _TextWriter()
    for row, following in zip_longest(rows, rows[1:]):
        is_cut = following is not None and row.words[-1][0][-1] in _HYPHENS
        cut = _cut_word(row, following, compounds) if is_cut else ""
        if cut == "drop":
            row.words[-1][0] = row.words[-1][0][:-1]
        if script.add(row):
            is_same_block = following is not None and following.block == row.block
            script.gap = "" if cut else "\n" if is_same_block else "\n\n"
    if script.words:
        script.finish(matrix, page)


class _TextWriter:
    """Collects the rows of a page, then composes its text and places all words at once."""

    def __init__(self) -> None:
        # Each is [text, x0, y0, x1, y1], with its cleaned text and the separator before it.
        self.words: list[list[Any]] = []
        self._texts: list[str] = []
        self._gaps: list[str] = []
        # (number of words, font size in tenths of a point, bold).
        self._lines: list[tuple[int, int, bool]] = []
        # Separator before the next row.
        self.gap = ""

    def add(self, row: Row) -> bool:
        """Append a row; return False if none of its text is left after cleaning."""
        words, texts = row.words, [word[0] for word in row.words]
        gaps = [" "] * len(words)
        for number in row.gaps:
            gaps[number] = _CELL_GAP
        whole = "".join(texts)
        if not (whole.isascii() and whole.isprintable()):
            cleaned = list(zip(map(_clean, texts), gaps, words, strict=True))
            cleaned = [one for one in cleaned if one[0]]
            if not cleaned:
                return False
            texts, gaps, words = map(list, zip(*cleaned, strict=True))
        gaps[0], self.gap = self.gap, " "
        self.words += words
        self._texts += texts
        self._gaps += gaps
        self._lines.append((len(words), round(row.size * 10), row.is_bold))
        return True

    def finish(self, matrix: PageTransform, page: PageText) -> None:
        """Set the text, words and lines of ``page``."""
        count = len(self.words)
        parts = [""] * (2 * count)
        parts[0::2], parts[1::2] = self._gaps, self._texts
        page.text = "".join(parts)
        offsets = list(accumulate(map(len, parts)))
        starts, ends = offsets[0::2], offsets[1::2]
        _, *sides = zip(*self.words, strict=True)
        x0, y0, x1, y1 = matrix.place_all(sides)
        lines: list[int] = []
        first = 0
        for number, (length, size, is_bold) in enumerate(self._lines):
            end = first + length
            box = min(x0[first:end]), min(y0[first:end]), max(x1[first:end]), max(y1[first:end])
            page.lines += (starts[first], ends[end - 1], size, is_bold, *box)
            lines += [number] * length
            first = end
        flat = [page.number] * (WIDTH * count)
        for column, values in zip((0, 1, 3, 4, 5, 6, 7), (starts, ends, lines, x0, y0, x1, y1), strict=True):
            flat[column::WIDTH] = values
        page.words = WordMap(array("i", flat))


def _cut_word(row: Row, following: Row, compounds: set[str]) -> str:
    """Return what happens to the hyphen at the row's end: 'drop' or 'keep' it and join, or '' for no join."""
    head, tail = row.words[-1][0], following.words[0][0]
    if len(head) < 2 or not head[-2].isalnum() or not tail[0].isalnum():
        return ""
    if not _is_below(row, following) or not _continues_cell(row, following):
        return ""
    before, after = _PART_BEFORE.fullmatch(head[:-1]), _PART_AFTER.match(tail)
    if not before or not after or not _is_part(before[1]) or not after[1].islower():
        return "keep"
    return "keep" if f"{before[1]}-{after[1]}".lower() in compounds else "drop"


def _is_below(row: Row, following: Row) -> bool:
    """True if ``following`` is the next line of the same paragraph, whatever the line spacing."""
    if row.block == following.block:
        return True
    size = row.size
    down = following.words[0][2] - row.words[0][2]
    is_same_print = size == following.size and row.is_level and following.is_level
    begins_there = following.words[0][1] <= row.words[0][1] + size
    return is_same_print and begins_there and 0 < down <= MAX_LINE_STEP * size


def _continues_cell(row: Row, following: Row) -> bool:
    """True if the next row begins where the last cell of a row continues.

    Justified lines in a narrow column have gaps as wide as those between cells. There the next row begins
    below the row's beginning, with nothing below its last cell.
    """
    if not row.gaps and not following.gaps:
        return True
    size, begin = row.size, following.words[0][1]
    last = row.words[max(row.gaps, default=0)][1]
    if abs(begin - last) <= size:
        return True
    is_one_column = not any(abs(following.words[gap][1] - last) <= size for gap in following.gaps)
    is_word = not row.gaps or following.words[0][0].islower()
    return is_one_column and is_word and bool(abs(begin - row.words[0][1]) <= MAX_INDENT * size)


def _is_part(text: str) -> bool:
    """True if all letters after the first are lower case: a word part, unlike the ``X-`` of X-rays."""
    return text.islower() or text[1:].islower()


def _clean(word: str) -> str:
    """Apply NFKC (ligatures, wide letters), except to raised digits; drop invisible characters."""
    if word.isascii() and word.isprintable():
        return word
    bare = word.translate(_CLEANED)
    normal = _CHANGEABLE.sub(lambda part: unicodedata.normalize("NFKC", part[0]), bare).translate(_CLEANED)
    return "".join(normal.split())
