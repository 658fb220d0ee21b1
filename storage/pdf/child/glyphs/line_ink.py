"""Finds words and raised digits in the ink of a line: OCR's models write these like any other digit."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Ink = NDArray[np.bool_]  # of each pixel, whether it is printed

# Share of a line's height at its top and bottom where the ink may be a neighbour's.
MARGIN = 0.15
# Shares of a line's height: how far a raised digit ends above the line at least, and how high it is at most.
RAISED, SMALL = 0.22, 0.85
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_ENDS_IN_DIGIT = re.compile(r"\d[.,;:)]*$")


def word_spans(ink: Ink, count: int) -> list[tuple[float, float]]:
    """Left and right of each of ``count`` words, as shares of the line's width; [] when nothing tells.

    Underlined text and text on a pattern have no white gaps; in widely spaced letters the widest gaps are
    not those between words, so whoever asks compares with what else is known.
    """
    height, width = ink.shape
    starts, ends = _inked_runs(ink[int(MARGIN * height) : height - int(MARGIN * height)])
    gaps = starts[1:] - ends[:-1]
    if not len(starts) or len(gaps) < count - 1:
        return []
    between = np.sort(np.argsort(gaps)[len(gaps) - count + 1 :])
    lefts, rights = starts[[0, *(between + 1)]], ends[[*between, len(ends) - 1]]
    return [(left / width, right / width) for left, right in zip(lefts, rights, strict=True)]


def with_raised_digits(words: Sequence[str], spans: Sequence[tuple[float, float]], ink: Ink) -> list[str]:
    """Return the words, those digits at their ends raised that stand above the line: 14¹, not 141.

    ``spans`` are the words' left and right sides, as shares of the width of the line's ``ink``.
    """
    if not any(_ENDS_IN_DIGIT.search(word) for word in words):
        return list(words)
    starts, ends = _inked_runs(ink)
    rows = [np.flatnonzero(ink[:, start:end].any(axis=1)) for start, end in zip(starts, ends, strict=True)]
    if not rows:
        return list(words)
    bottoms, heights = np.array([row[-1] for row in rows]), np.array([len(row) for row in rows])
    base, height = np.median(bottoms), np.percentile(heights, 75)
    is_raised = (bottoms < base - RAISED * height) & (heights < SMALL * height) & (heights > height / 3)
    middles = (starts + ends) / 2 / ink.shape[1]
    return [
        _raise(word, list(is_raised[(middles >= left) & (middles <= right)]), is_first=number == 0)
        for number, (word, (left, right)) in enumerate(zip(words, spans, strict=True))
    ]


def _raise(word: str, is_raised: list[np.bool_], *, is_first: bool) -> str:
    """Return the word, as many of its last digits raised as its last glyphs are."""
    bare = word.rstrip(".,;:)")
    glyphs = is_raised[: len(is_raised) - len(word) + len(bare)]
    count = 0
    while count < min(len(bare), len(glyphs)) and glyphs[-1 - count] and bare[-1 - count].isdecimal():
        count += 1
    if not count or (count == len(bare) and not is_first):  # a word of its own may be smaller print
        return word
    return bare[:-count] + bare[-count:].translate(_RAISED) + word[len(bare) :]


def _inked_runs(ink: Ink) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """First columns of runs with ink, and the first ones behind them."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], ink.any(axis=0), [False])).astype(np.int8)))
    return edges[0::2], edges[1::2]
