"""Corrections of gaps between words that MuPDF overlooks, or invents within a number."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

Char = dict[str, Any]
Span = dict[str, Any]
Direction = tuple[float, float]

# Minimum gap between words as a fraction of the smaller font size; MuPDF uses that of the following text.
GAP = 0.15
# Maximum width of a point in font sizes, which looks like a gap if its font gives it no width.
POINT_WIDTH = 0.4

# MuPDF adds spaces for gaps after these characters only; gaps in Chinese and Japanese separate no words.
_SPACED = r"\s\x00-\u06ff\u2000-\u20cf"
_IDEOGRAPHIC = r"\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\ufe30-\ufe4f\uff01-\uff60"
_UNSPACED = re.compile(rf"[^{_SPACED}{_IDEOGRAPHIC}](?=\S)|[{_IDEOGRAPHIC}](?=[^\s{_IDEOGRAPHIC}])")
_PARTED_NUMBER = re.compile(r"[0-9](?:\.|,(?! [0-9]{4})) [0-9]")  # except a day and its year


def has_parted_numbers(text: str) -> bool:
    """True if a text in one font may have a space within a number; most follow the number of a step."""
    return (". " in text or ", " in text) and _PARTED_NUMBER.search(text) is not None


def has_doubtful_gaps(text: str) -> bool:
    """True if a text in one font may lack a space."""
    return not text.isascii() and _UNSPACED.search(text) is not None


def has_invented_gaps(lines: Iterable[dict[str, Any]]) -> bool:
    """True if MuPDF added a space within a number; ``lines`` are those of its rawdict."""
    spans = (span for line in lines if _PARTED_NUMBER.search(_text(line)) for span in line["spans"])
    return any(
        len(list(_without_invented(span["chars"], span["size"]))) < len(span["chars"]) for span in spans
    )


def has_overlooked_gaps(spans: Sequence[Span], direction: Direction) -> bool:
    """True if two neighbouring spans of a line are printed apart without a space."""
    for before, after in pairwise(spans):
        size, next_size = before["size"], after["size"]
        if next_size <= size and before["text"][-1:].isascii():
            continue  # the common case, checked cheaply
        if _is_overlooked(before["text"][-1:], size, after["text"][:1], next_size):
            gap = _along(after["bbox"], direction)[0] - _along(before["bbox"], direction)[1]
            if gap >= GAP * min(size, next_size):
                return True
    return False


def correct_gaps(line: dict[str, Any]) -> None:
    """Add the spaces that are printed in a line, and remove those within a number, at its point."""
    spans = line["spans"]
    text = _text(line)
    if _PARTED_NUMBER.search(text):
        for span in spans:
            span["chars"] = list(_without_invented(span["chars"], span["size"]))
    if _UNSPACED.search(text) or len({span["size"] for span in spans}) > 1:
        _add_overlooked(spans, line["dir"])


def _text(line: dict[str, Any]) -> str:
    return "".join([char["c"] for span in line["spans"] for char in span["chars"]])


def _without_invented(chars: Sequence[Char], size: float) -> Iterator[Char]:
    """Yield the characters without spaces that MuPDF adds after a point of zero width."""
    for number, char in enumerate(chars):
        if char.get("synthetic") and 1 < number < len(chars) - 1:
            point, after = chars[number - 1], chars[number + 1]
            left, _, right, _ = point["bbox"]
            is_number = chars[number - 2]["c"].isdigit() and point["c"] in ".," and after["c"].isdigit()
            if is_number and right - left < 0.01 and after["bbox"][0] - right < POINT_WIDTH * size:
                continue
        yield char


def _add_overlooked(spans: Sequence[Span], direction: Direction) -> None:
    before, size, reach = "", 0.0, 0.0
    for span in spans:
        found: list[Char] = []
        for char in span["chars"]:
            start, end = _along(char["bbox"], direction)
            gap = start - reach
            is_apart = before and gap >= GAP * min(size, span["size"])
            if is_apart and _is_overlooked(before, size, char["c"], span["size"]):
                found.append({**char, "c": " "})
            found.append(char)
            # A vowel sign may end before the letter that carries it.
            reach = max(reach, end) if before else end
            before, size = char["c"], span["size"]
        span["chars"] = found


def _is_overlooked(before: str, size: float, after: str, next_size: float) -> bool:
    """True if MuPDF overlooks a gap between these two characters, or all but a wide one."""
    if next_size > size and before.isalnum() and after.isalnum():
        return True
    return _UNSPACED.match(before + after) is not None


def _along(box: Sequence[float], direction: Direction) -> tuple[float, float]:
    """Return start and end of a box in the direction of its text."""
    across, down = direction
    start, end = (box[0], box[2]) if abs(across) >= abs(down) else (box[1], box[3])
    return (start, end) if across + down > 0 else (-end, -start)
