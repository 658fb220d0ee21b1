"""Finds the words of a line in its ink: the white gaps between them are wider than those between letters."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

Picture = NDArray[np.uint8]
"""Rows of pixels, each (blue, green, red)."""

MARGIN = 0.15
"""Share of a line's height at its top and bottom where the ink may be a neighbour's."""


def word_spans(line: Picture, count: int) -> list[tuple[float, float]]:
    """Left and right of each of ``count`` words, as shares of the line's width; [] when nothing tells.

    Underlined text and text on a pattern have no white gaps; in widely spaced letters the widest gaps are
    not those between words, so whoever asks compares with what else is known.
    """
    height, width = line.shape[:2]
    inked = _inked_columns(line[int(MARGIN * height) : height - int(MARGIN * height)])
    if not inked.any():
        return []
    edges = np.flatnonzero(np.diff(np.concatenate(([False], inked, [False])).astype(np.int8)))
    starts, ends = edges[0::2], edges[1::2]
    gaps = starts[1:] - ends[:-1]
    if len(gaps) < count - 1:
        return []
    between = np.sort(np.argsort(gaps)[len(gaps) - count + 1 :])
    lefts, rights = starts[[0, *(between + 1)]], ends[[*between, len(ends) - 1]]
    return [(left / width, right / width) for left, right in zip(lefts, rights, strict=True)]


def _inked_columns(line: Picture) -> NDArray[np.bool_]:
    """Whether anything is printed in each column, on paper of any colour."""
    grey = cv2.cvtColor(line, cv2.COLOR_BGR2GRAY)
    _, light = cv2.threshold(grey, 0, 255, cv2.THRESH_BINARY | cv2.THRESH_OTSU)
    is_light_paper = np.mean(light) > 127
    ink = light == (0 if is_light_paper else 255)
    return np.asarray(ink.any(axis=0), np.bool_)
