"""Words and raised digits located in the ink of a line; OCR models do not distinguish raised digits."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Ink = NDArray[np.bool_]  # mask of printed pixels

# Fraction of a line's height at top and bottom where the ink may be a neighbour's.
MARGIN = 0.15
# Fractions of a line's height: minimum shift of a raised digit above the baseline, and its maximum height.
RAISED, SMALL = 0.22, 0.85
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_ENDS_IN_DIGIT = re.compile(r"\d[.,;:)]*$")


def word_spans(ink: Ink, count: int) -> list[tuple[float, float]]:
    """Return left and right of each of ``count`` words, as fractions of the line's width; [] if unclear.

    Underlined text and text on a pattern have no white gaps, and in widely spaced letters the widest gaps are
    not those between words, so callers compare the result with other evidence.
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
    """Return the words with final digits raised if they are printed above the baseline: 14¹, not 141.

    ``spans`` are the words' left and right sides, as fractions of the width of the line's ``ink``.
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
    """Return the word with as many of its last digits raised as its last glyphs are."""
    bare = word.rstrip(".,;:)")
    glyphs = is_raised[: len(is_raised) - len(word) + len(bare)]
    count = 0
    while count < min(len(bare), len(glyphs)) and glyphs[-1 - count] and bare[-1 - count].isdecimal():
        count += 1
    if not count or (count == len(bare) and not is_first):  # a whole word may be smaller print
        return word
    return bare[:-count] + bare[-count:].translate(_RAISED) + word[len(bare) :]


def _inked_runs(ink: Ink) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the first column of each run with ink, and the first column after it."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], ink.any(axis=0), [False])).astype(np.int8)))
    return edges[0::2], edges[1::2]
