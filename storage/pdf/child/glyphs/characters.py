"""Corrections of characters by their appearance: raised digits, dashes, accents, gaps, Arabic ligatures."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise
from operator import itemgetter
from typing import Any

from storage.pdf.child.glyphs import accents, printed_gaps
from storage.pdf.child.glyphs.hidden_text import Ink, Rect, Span, lines_of

Char = dict[str, Any]
Line = dict[str, Any]

# Maximum ratio of a raised or lowered digit's size to its neighbour's; digits of equal size must be shifted
# further.
SMALL = 0.88
TINY = 0.42  # smaller text is next to a drop cap
# Minimum baseline shift as a fraction of the neighbour's size.
RAISED, LOWERED = 0.1, -0.04
RAISED_UNSHRUNK = 0.25
MAX_SHIFT = 0.75
# Range of a fraction bar below the baseline of the numerator, and above that of the denominator, as fractions
# of their size; and the distance, as a fraction of a text's size, that counts as none.
OVER_BAR, UNDER_BAR = (0.0, 0.7), (0.6, 1.5)
NEAR_BAR = 0.3

_TOP = itemgetter(1)
_RAISED = str.maketrans("0123456789+-\u2212\u2013=()", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁻⁼⁽⁾")
_LOWERED = str.maketrans("0123456789+-\u2212\u2013=()", "₀₁₂₃₄₅₆₇₈₉₊₋₋₋₌₍₎")
_DIGIT = re.compile(r"\d")
# Digits of a numerator are raised already when its denominator is examined.
_FEW_DIGITS = re.compile("[\\d⁰¹²³⁴⁵⁶⁷⁸⁹]{1,2}")
_SHIFTABLE = re.compile(r"\d|^[+\u2212\u2013-]$")
# Characters without a glyph of their own: any of them may be a hyphen.
_VEILED = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f\xad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufffd"
    "\ue000-\uf0a6\uf0a8-\uf0b6\uf0b8-\uf8ff]"
)
_NEVER_PRINTED = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\xad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]")
_ALEFS, _LAM = "\u0622\u0623\u0625\u0627\u0671", "\u0644"
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_DINGBATS = "Dingbats"
_MARKS = str.maketrans("345678lmnuH", "✓✔✕✖✗✘●❍■◆★")
_NO_CHARACTER = "\ufffd"


def needs_characters(lines: Sequence[Line], text: str) -> bool:
    """True if this page has to be read by characters, because its words are not enough; cheap to compute.

    Args:
        lines: lines of MuPDF's page dictionary.
        text: the text of their spans, each on a line of its own; no pattern matches across the break.
    """
    if printed_gaps.has_doubtful_gaps(text) or accents.has_parts(text):
        return True
    is_plain = text.isascii() and text.replace("\n", " ").isprintable()
    if not is_plain and (_VEILED.search(text) or _RIGHT_TO_LEFT.search(text)):
        return True
    last: Line | None = None
    for line in lines:
        spans = line["spans"]
        if len(spans) > 1 and _is_of_parts(spans, line["dir"]):
            return True
        if last is not None and _goes_on(last, line):
            return True
        last = line
    return any(_is_dingbats(span) for line in lines for span in line["spans"])


def _is_dingbats(span: dict[str, Any]) -> bool:
    return _DINGBATS in span["font"] and span["text"].isascii() and span["text"].isprintable()


def _is_of_parts(spans: Sequence[dict[str, Any]], direction: tuple[float, float]) -> bool:
    """True if spans of the line are raised or lowered, or are set apart without a space."""
    return _may_be_shifted(spans) or printed_gaps.has_overlooked_gaps(spans, direction)


def _may_be_shifted(spans: Sequence[dict[str, Any]]) -> bool:
    largest = max(span["size"] for span in spans)
    return any(
        (span["flags"] & 1 or span["size"] < SMALL * largest) and _DIGIT.search(span["text"])
        for span in spans
    )


def correct(raw: dict[str, Any], ink: Ink) -> None:
    """Correct the characters of a page in place; ``raw`` is MuPDF's rawdict of it."""
    _join_marks(raw)
    fractions = _Fractions(raw, ink)
    dashes: dict[tuple[str, str], str] = {}
    for line in lines_of(raw):
        _mark_shifted(line, fractions)
        for span in line["spans"]:
            text = _text(span)
            if _DINGBATS in span["font"]:
                _name_dingbats(span["chars"])
            if _VEILED.search(text):
                _unveil(span, ink, dashes)
            if _LAM in text:
                _turn_ligatures(span["chars"])
        accents.compose(line)
        printed_gaps.correct_gaps(line)


def _join_marks(raw: dict[str, Any]) -> None:
    """Join lines that MuPDF splits at a raised or lowered mark."""
    last: Line | None = None
    for line in lines_of(raw):
        if last is not None and _goes_on(last, line):
            last["spans"] = [*last["spans"], *line["spans"]]
            line["spans"] = []
        else:
            last = line


def _goes_on(line: Line, following: Line) -> bool:
    if line["dir"] != following["dir"] or line["dir"][0] < 0.99 or not (line["spans"] and following["spans"]):
        return False
    before, after = line["spans"][-1], following["spans"][0]
    small, large = (before, after) if before["size"] < after["size"] else (after, before)
    if small["size"] > SMALL * large["size"] or not _DIGIT.search(_text(small)):
        return False
    gap = after["bbox"][0] - before["bbox"][2]
    shared = min(before["bbox"][3], after["bbox"][3]) - max(before["bbox"][1], after["bbox"][1])
    return bool(abs(gap) < 0.3 * large["size"] and shared > 0.4 * small["size"])


def _text(span: dict[str, Any]) -> str:
    return str(span["text"]) if "text" in span else "".join([char["c"] for char in span["chars"]])


class _Fractions:
    """The fractions of a page that are printed with a bar, except mixed numbers and those such as ½.

    Their digits stay raised and lowered: 2½ would become 21 and 2.
    """

    def __init__(self, raw: dict[str, Any], ink: Ink) -> None:
        level = (rule for rule in ink.rules if rule[3] - rule[1] < 1 < rule[2] - rule[0])
        self._bars = sorted(level, key=_TOP)
        self._raw = raw

    def has_part(self, span: Span, beside: Span) -> bool:
        """True if a span is a numerator or denominator; its bar does not extend to ``beside``."""
        base, size = span["origin"][1], span["size"]
        first = bisect_left(self._bars, base - UNDER_BAR[1] * size - 1, key=_TOP)
        end = bisect_right(self._bars, base + OVER_BAR[1] * size, key=_TOP)
        return any(
            self._is_fraction(bar)
            for bar in self._bars[first:end]
            if (_is_over(span, bar) or _is_under(span, bar)) and not _is_along(beside, bar)
        )

    def _is_fraction(self, bar: Rect) -> bool:
        spans = [span for line in lines_of(self._raw) for span in line["spans"] if _text(span).strip()]
        if any(_ends_in_number_at(span, bar) for span in spans):
            return False
        parts = [
            " ".join(_text(span).strip() for span in spans if is_part(span, bar))
            for is_part in (_is_over, _is_under)
        ]
        return all(parts) and not all(map(_FEW_DIGITS.fullmatch, parts))


def _is_over(span: Span, bar: Rect) -> bool:
    least, most = OVER_BAR
    return _is_inside(span, bar) and least <= (bar[1] - span["origin"][1]) / span["size"] <= most


def _is_under(span: Span, bar: Rect) -> bool:
    least, most = UNDER_BAR
    return _is_inside(span, bar) and least <= (span["origin"][1] - bar[3]) / span["size"] <= most


def _is_inside(span: Span, bar: Rect) -> bool:
    near = NEAR_BAR * span["size"]
    return bool(bar[0] - near <= span["bbox"][0] and span["bbox"][2] <= bar[2] + near)


def _is_along(span: Span, bar: Rect) -> bool:
    """True if the bar is above or below text of the span."""
    return bool(min(bar[2], span["bbox"][2]) - max(bar[0], span["bbox"][0]) > NEAR_BAR * span["size"])


def _ends_in_number_at(span: Span, bar: Rect) -> bool:
    _, top, right, bottom = span["bbox"]
    is_before = top < bar[1] < bottom and abs(bar[0] - right) < NEAR_BAR * span["size"]
    return bool(is_before and _text(span)[-1:].isdigit())


def _mark_shifted(line: Line, fractions: _Fractions) -> None:
    """Replace digits above or below the baseline by their raised or lowered characters.

    The parts of a fraction have baselines of their own, and an index there is beside its letter or number:
    V₁ above the bar, 10⁻³ below it.
    """
    spans = [span for span in line["spans"] if _text(span).strip()]
    base: Span | None = None
    part: Span | None = None
    for number, span in enumerate(spans):
        beside = base or next((one for one in spans[number:] if one["size"] * SMALL > span["size"]), None)
        before = spans[number - 1] if number else None
        if before and before is not base and before["size"] * SMALL > span["size"]:
            beside = before if before is part or _text(before)[-1:].isalpha() else beside
        table = _shifted(span, beside, line["dir"]) if beside else None
        if table and beside and beside is not part and fractions.has_part(span, beside):
            part = span
        elif not table:
            base = span
        elif _SHIFTABLE.search(_text(span)):
            for char in span["chars"]:
                char["c"] = char["c"].translate(table)


def _shifted(span: Span, beside: Span, direction: tuple[float, float]) -> dict[int, int] | None:
    """Return the translation table for a span: raised, lowered, or None for neither."""
    across, down = direction
    (x, y), (base_x, base_y) = (one["origin"] for one in (span, beside))
    up = (base_y - y) * across - (base_x - x) * down
    shift, size = up / beside["size"], span["size"] / beside["size"]
    if not TINY <= size or abs(shift) > MAX_SHIFT:
        return None
    if size <= SMALL:
        return _RAISED if shift >= RAISED else _LOWERED if shift <= LOWERED else None
    is_next = abs(span["bbox"][0] - beside["bbox"][2]) < 0.2 * beside["size"]
    return _RAISED if size <= 1 / SMALL and shift >= RAISED_UNSHRUNK and is_next else None


def _unveil(span: dict[str, Any], ink: Ink, dashes: dict[tuple[str, str], str]) -> None:
    """Identify characters by their ink, each glyph of a font once."""
    for char in span["chars"]:
        if not _VEILED.match(char["c"]) or not _has_width(char["bbox"]):
            continue
        glyph = span["font"], char["c"]
        if glyph not in dashes:
            dashes[glyph] = _printed(char["c"], ink.is_dash(char["bbox"]))
        char["c"] = dashes[glyph]


def _name_dingbats(chars: Sequence[Char]) -> None:
    """Replace ZapfDingbats codes by the marks they print: its tick has the code of a 4."""
    for char in chars:
        char["c"] = char["c"].translate(_MARKS)


def _printed(char: str, is_dash: bool | None) -> str:
    if is_dash:
        return "-"
    is_other = is_dash is False and _NEVER_PRINTED.match(char)
    return _NO_CHARACTER if is_other else char


def _has_width(box: Rect) -> bool:
    return box[2] - box[0] > 0.2 and box[3] - box[1] > 0.2


def _turn_ligatures(chars: list[Char]) -> None:
    """Put lam before alef again: in right-to-left text MuPDF reverses the letters of a ligature, too.

    The letters of a ligature have the same position, and all but the first have no width.
    """
    for first, second in pairwise(chars):
        left, _, right, _ = first["bbox"]
        if first["c"] in _ALEFS and second["c"] == _LAM and right - left < 0.01:
            first["c"], second["c"] = second["c"], first["c"]
