"""Word boxes: the packed offset -> bounding box map of a text, and the rectangles that a range covers.

The packed map is half of a stored reading; unpacked it would be most of it.
"""

from __future__ import annotations

import base64
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import overload

from storage.models import Box, WordBox

# Boxes are stored as integer fractions of the displayed page, times this.
SCALE = 10_000
# Integers per word: start, end, page, line, x0, y0, x1, y1.
WIDTH = 8


def bounding_boxes(words: Sequence[WordBox], start: int, end: int) -> dict[int, list[Box]]:
    """Return page -> one bounding box per line of the words that text[start:end] touches, in text order."""
    boxes: dict[int, list[Box]] = {}
    for (page, _), line in groupby(_within(words, start, end), key=lambda word: (word.page, word.line)):
        boxes.setdefault(page, []).append(_around([word.box for word in line]))
    return boxes


def main_page(words: Sequence[WordBox], start: int, end: int) -> int:
    """Return the page with most of the characters of text[start:end]; of two equals the earlier one.

    Raises:
        ValueError: no word lies in that range.
    """
    shares: dict[int, int] = {}
    for word in _within(words, start, end):
        shares[word.page] = shares.get(word.page, 0) + min(end, word.end) - max(start, word.start)
    if not shares:
        raise ValueError("no word in that range")
    return max(shares, key=lambda page: (shares[page], -page))


def _within(words: Sequence[WordBox], start: int, end: int) -> list[WordBox]:
    """Return the words with at least one character in [start, end); ``words`` is in text order."""
    first = bisect_right(words, start, key=attrgetter("end"))
    last = bisect_left(words, end, lo=first, key=attrgetter("start"))
    return list(words[first:last])


def _around(boxes: Sequence[Box]) -> Box:
    """Return the union of boxes."""
    lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    return Box(min(lefts), min(tops), max(rights), max(bottoms))


class WordMap(Sequence[WordBox]):
    """The words of a text in order, packed; equal to any sequence of the same words."""

    __slots__ = ("_flat", "_offsets")

    def __init__(self, flat: array[int] | None = None) -> None:
        """Wrap ``flat``, which holds ``WIDTH`` integers per word.

        Raises:
            ValueError: it ends in the middle of a word.
        """
        self._flat = array("i") if flat is None else flat
        if len(self._flat) % WIDTH:
            raise ValueError("a word map ends in the middle of a word")
        self._offsets: tuple[array[int], array[int]] | None = None

    @classmethod
    def pack(cls, words: Iterable[WordBox]) -> WordMap:
        """Pack words; boxes are rounded to a ten-thousandth of the page."""
        if isinstance(words, cls):
            return words
        flat = array("i")
        for start, end, page, line, box in words:
            flat.extend((start, end, page, line, *(round(side * SCALE) for side in box)))
        return cls(flat)

    @classmethod
    def from_base64(cls, text: str) -> WordMap:
        """Parse ``to_base64``.

        Raises:
            ValueError: the text is malformed.
        """
        flat = array("i")
        flat.frombytes(base64.b64decode(text, validate=True))
        return cls(flat)

    def to_base64(self) -> str:
        """Return the map as base64, in this machine's byte order."""
        return base64.b64encode(self._flat.tobytes()).decode()

    def offsets(self) -> Iterator[tuple[int, int]]:
        """Return (start, end) of each word."""
        return zip(self._flat[0::WIDTH], self._flat[1::WIDTH], strict=True)

    def clip(self, start: int, end: int, shift: int = 0) -> WordMap:
        """Return the words that text[start:end] touches, clipped to it; offsets are moved by ``shift``."""
        if self._offsets is None:
            self._offsets = self._flat[0::WIDTH], self._flat[1::WIDTH]
        starts, ends = self._offsets
        flat = self._flat[bisect_right(ends, start) * WIDTH : bisect_left(starts, end) * WIDTH]
        if flat:
            flat[0], flat[1 - WIDTH] = max(flat[0], start), min(flat[1 - WIDTH], end)
        if shift:
            for column in (0, 1):
                flat[column::WIDTH] = array("i", [offset + shift for offset in flat[column::WIDTH]])
        return WordMap(flat)

    @classmethod
    def concat(cls, maps: Iterable[WordMap]) -> WordMap:
        """Concatenate maps."""
        flat = array("i")
        for one in maps:
            flat.extend(one._flat)
        return cls(flat)

    def __len__(self) -> int:
        return len(self._flat) // WIDTH

    def __iter__(self) -> Iterator[WordBox]:
        for start, end, page, line, x0, y0, x1, y1 in zip(*[iter(self._flat)] * WIDTH, strict=True):
            yield WordBox(start, end, page, line, Box(x0 / SCALE, y0 / SCALE, x1 / SCALE, y1 / SCALE))

    @overload
    def __getitem__(self, index: int) -> WordBox: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[WordBox]: ...

    def __getitem__(self, index: int | slice) -> WordBox | Sequence[WordBox]:
        if isinstance(index, slice):
            rows = range(len(self))[index]
            is_run = rows.step == 1
            return (
                WordMap(self._flat[rows.start * WIDTH : rows.stop * WIDTH]) if is_run else tuple(self)[index]
            )
        at = range(len(self))[index] * WIDTH
        (word,) = WordMap(self._flat[at : at + WIDTH])
        return word

    __hash__ = None  # type: ignore[assignment]  # equal to tuples, which have a hash of their own

    def __eq__(self, other: object) -> bool:
        if isinstance(other, WordMap):
            return self._flat == other._flat
        return isinstance(other, Sequence) and tuple(self) == tuple(other)
