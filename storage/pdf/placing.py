"""Places words: from MuPDF's unrotated page space to whole numbers of the displayed page."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import NamedTuple

from storage.word_map import SCALE, WIDTH, WordMap


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
