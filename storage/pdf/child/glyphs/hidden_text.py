"""Removal of text that is not visible: hidden, covered by a bar, or struck through."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, Protocol

Rect = tuple[float, float, float, float]
Span = dict[str, Any]

MIN_FONT_SIZE = 1.0  # points; smaller text is unreadable
MIN_ALPHA = 13  # of 255; less opaque text is invisible
PALE = 0xF0  # of 255; a colour lighter than this in all components is visible on dark background only

# Range of a strikethrough line above the baseline, as fractions of the font size.
STRUCK_FROM, STRUCK_TO = 0.12, 0.55

# Minimum share of such a line that lies on text: rules of tables and charts extend beyond it.
MIN_STRUCK = 0.4


class Ink(Protocol):
    """Visual tests of a page, made only if a text looks suspicious."""

    @property
    def fields(self) -> Sequence[Rect]:
        """Boxes of form values."""

    @property
    def rules(self) -> Sequence[Rect]:
        """Drawn straight lines, horizontal or vertical."""

    @property
    def bars(self) -> Sequence[Rect]:
        """Filled areas, whatever is above or below them."""

    @property
    def covering_bars(self) -> Sequence[Rect]:
        """Filled boxes drawn after a text that they touch."""

    @property
    def is_scan(self) -> bool:
        """True if one image covers the page: invisible text over it is an OCR layer."""

    def is_white(self, box: Rect) -> bool:
        """True if the box is white."""

    def is_plain(self, box: Rect) -> bool:
        """True if nothing is visible in the box, whatever its colour."""

    def is_dash(self, box: Rect) -> bool | None:
        """True if the box contains only a horizontal bar, None if it is empty."""


class HiddenText:
    """The invisible or struck-through text of a page."""

    def __init__(self, lines: Sequence[dict[str, Any]], ink: Ink) -> None:
        """Analyse ``lines`` of MuPDF's page dictionary, with or without characters."""
        self._ink = ink
        spans = [(line["dir"], span) for line in lines for span in line["spans"]]
        self._hidden = {number for number, (_, span) in enumerate(spans) if _is_hidden(span, ink)}
        self._bars = self._covering(spans)
        self._strikes = _strikes(spans, ink) if ink.rules else []

    def __bool__(self) -> bool:
        return bool(self._hidden or self._bars or self._strikes)

    def _covering(self, spans: Sequence[tuple[Any, Span]]) -> list[Rect]:
        bars = self._ink.bars
        is_touched = bars and any(touches(bar, span["bbox"]) for bar in bars for _, span in spans)
        if not is_touched or self._ink.is_scan:
            return []
        return list(self._ink.covering_bars)

    def erase(self, lines: Sequence[dict[str, Any]]) -> int:
        """Replace invisible characters by spaces; return the number of struck-through words."""
        struck = number = 0
        for line in lines:
            for span in line["spans"]:
                chars = span["chars"]
                if number in self._hidden:
                    _blank(chars)
                number += 1
                for bar in self._bars:
                    if _meets(bar, span["bbox"]):
                        self._erase_covered(chars, bar)
                for strike in self._strikes:
                    if _crosses(line["dir"], span, strike):
                        struck += _erase_struck(line["dir"], chars, strike)
        return struck

    def _erase_covered(self, chars: Sequence[dict[str, Any]], bar: Rect) -> None:
        under = [char for char in chars if char["c"] != " " and _holds_middle(bar, char["bbox"])]
        if under and self._ink.is_plain(_around(under)):
            _blank(under)


def _is_hidden(span: Span, ink: Ink) -> bool:
    """True if the text is tiny, transparent, invisible, or white on white."""
    if span["size"] < MIN_FONT_SIZE:
        return True
    if span["alpha"] < MIN_ALPHA:
        return not ink.is_scan
    color = span["color"]
    is_pale = min(color >> 16 & 255, color >> 8 & 255, color & 255) >= PALE
    return is_pale and ink.is_white(span["bbox"])


def _is_typed(span: Span, ink: Ink) -> bool:
    """True if it is a form value, which may lie across a line meant for writing."""
    return any(_holds_middle(field, span["bbox"]) for field in ink.fields)


def _strikes(spans: Sequence[tuple[Any, Span]], ink: Ink) -> list[Rect]:
    """Return the rules that cross text and little else."""
    level: defaultdict[int, list[Rect]] = defaultdict(list)
    upright: defaultdict[int, list[Rect]] = defaultdict(list)
    for rule in dict.fromkeys(ink.rules):
        is_level = rule[3] - rule[1] < 1
        (level if is_level else upright)[int(rule[1] if is_level else rule[0])].append(rule)
    crossed: defaultdict[Rect, float] = defaultdict(float)
    for direction, span in spans:
        if _is_typed(span, ink):
            continue
        is_level, low, high = _band(direction, span)
        places = level if is_level else upright
        for place in filter(places.__contains__, range(int(low), int(high) + 1)):
            for rule in places[place]:
                if _crosses(direction, span, rule):
                    crossed[rule] += _shared(is_level, span["bbox"], rule)
    return [rule for rule, length in crossed.items() if length >= MIN_STRUCK * _length(rule)]


def _band(direction: tuple[float, float], span: Span) -> tuple[bool, float, float]:
    """Return whether a span is horizontal, and the range of positions of a line through it."""
    across, down = direction
    x, y = span["origin"]
    is_level = abs(across) > abs(down)
    base, up = (y, -across) if is_level else (x, down)
    ends = base + up * STRUCK_FROM * span["size"], base + up * STRUCK_TO * span["size"]
    return is_level, min(ends), max(ends)


def _crosses(direction: tuple[float, float], span: Span, rule: Rect) -> bool:
    is_level, low, high = _band(direction, span)
    is_along = (rule[3] - rule[1] < 1) == is_level
    at = rule[1] if is_level else rule[0]
    return is_along and low <= at <= high and _shared(is_level, span["bbox"], rule) > 0


def _shared(is_level: bool, box: Rect, rule: Rect) -> float:
    """Return the length of the overlap of a rule and a box along the text, in points."""
    side = 0 if is_level else 1
    return min(box[side + 2], rule[side + 2]) - max(box[side], rule[side])


def _length(rule: Rect) -> float:
    return max(rule[2] - rule[0], rule[3] - rule[1])


def _erase_struck(direction: tuple[float, float], chars: Sequence[dict[str, Any]], strike: Rect) -> int:
    """Blank the characters whose centre the line crosses; return the number of words."""
    side = 0 if abs(direction[0]) > abs(direction[1]) else 1
    words = 0
    is_under: list[bool] = []
    for char in chars:
        middle = (char["bbox"][side] + char["bbox"][side + 2]) / 2
        is_under.append(char["c"] != " " and strike[side] <= middle <= strike[side + 2])
    for (is_struck, is_gap), run in groupby(
        zip(is_under, chars, strict=True), key=lambda one: (one[0], one[1]["c"] == " ")
    ):
        if is_struck and not is_gap:
            words += 1
            _blank([char for _, char in run])
    return words


def _blank(chars: Sequence[dict[str, Any]]) -> None:
    for char in chars:
        char["c"] = " "


def _holds_middle(bar: Rect, box: Rect) -> bool:
    return bar[0] <= (box[0] + box[2]) / 2 <= bar[2] and bar[1] <= (box[1] + box[3]) / 2 <= bar[3]


def _meets(one: Rect, other: Rect) -> bool:
    """True if the rectangles overlap or have an edge or corner in common."""
    return one[0] <= other[2] and other[0] <= one[2] and one[1] <= other[3] and other[1] <= one[3]


def touches(one: Rect, other: Rect) -> bool:
    """True if the rectangles overlap."""
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _around(chars: Sequence[dict[str, Any]]) -> Rect:
    lefts, tops, rights, bottoms = zip(*(char["bbox"] for char in chars), strict=True)
    return min(lefts), min(tops), max(rights), max(bottoms)


def lines_of(page: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the lines of all blocks in MuPDF's page dictionary."""
    for block in page["blocks"]:
        yield from block.get("lines", ())
