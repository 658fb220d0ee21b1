"""From a range of a text to the rectangles it covers on paper, through the text's own offset -> box map."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter

from storage.models import Box, PlacedWord


def rectangles(words: Sequence[PlacedWord], start: int, end: int) -> dict[int, list[Box]]:
    """The words that text[start:end] touches, page -> one box per line, in the order of the text."""
    boxes: dict[int, list[Box]] = {}
    for (page, _), line in groupby(_within(words, start, end), key=lambda word: (word.page, word.line)):
        boxes.setdefault(page, []).append(_around([word.box for word in line]))
    return boxes


def main_page(words: Sequence[PlacedWord], start: int, end: int) -> int:
    """The page that holds most of the characters of text[start:end]; the earlier one of two equals.

    Raises:
        ValueError: no word stands in that range.
    """
    shares: dict[int, int] = {}
    for word in _within(words, start, end):
        shares[word.page] = shares.get(word.page, 0) + min(end, word.end) - max(start, word.start)
    if not shares:
        raise ValueError("no word stands in that range")
    return max(shares, key=lambda page: (shares[page], -page))


def _within(words: Sequence[PlacedWord], start: int, end: int) -> list[PlacedWord]:
    """Words, which are in the order of the text, of which at least one character lies in [start, end)."""
    first = bisect_right(words, start, key=attrgetter("end"))
    last = bisect_left(words, end, lo=first, key=attrgetter("start"))
    return list(words[first:last])


def _around(boxes: Sequence[Box]) -> Box:
    """The smallest box that holds them all."""
    lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    return Box(min(lefts), min(tops), max(rights), max(bottoms))
