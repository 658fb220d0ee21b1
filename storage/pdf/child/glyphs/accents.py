"""Composition of characters printed in two parts: an accent and its letter, a slash and a negated sign."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Any

from storage.pdf.child.glyphs.hidden_text import Rect

Char = dict[str, Any]

SLASH = "\u0338"
_ACCENTS = {
    "`": "\u0300", "¨": "\u0308", "¯": "\u0304", "´": "\u0301", "¸": "\u0327", "ˆ": "\u0302", "ˇ": "\u030c",
    "˘": "\u0306", "˙": "\u0307", "˚": "\u030a", "˛": "\u0328", "˜": "\u0303", "˝": "\u030b", "/": SLASH,
}  # fmt: skip
_DOTLESS = {"ı": "i", "ȷ": "j"}
_PARTS = frozenset((SLASH, *_ACCENTS))
_UNUSUAL_PARTS = re.compile(f"[{''.join(sorted(part for part in _PARTS if not part.isascii()))}]")


def has_parts(text: str) -> bool:
    """True if the text may contain an accent or slash that belongs to a neighbouring character."""
    if "`" in text or "/=" in text or "=/" in text:
        return True
    return not text.isascii() and _UNUSUAL_PARTS.search(text) is not None


def compose(line: dict[str, Any]) -> None:
    """Merge each accent with its letter, and each slash with its sign.

    An accent that is printed apart from letters stays as it is: ``5´``.
    """
    chars = [char for span in line["spans"] for char in span["chars"] if char["c"] != " "]
    marks = [number for number, char in enumerate(chars) if char["c"] in _PARTS]
    gone = {id(chars[number]) for number in marks if _join(chars[number], _beside(chars, number))}
    if gone:
        for span in line["spans"]:
            span["chars"] = [char for char in span["chars"] if id(char) not in gone]
        line["spans"] = [span for span in line["spans"] if span["chars"]]


def _join(mark: Char, bases: Sequence[Char]) -> bool:
    """Merge a mark with the first of these characters that has a composed form; False if there is none."""
    accent = _ACCENTS.get(mark["c"], SLASH)
    for base in bases:
        if whole := _composed(base["c"], accent):
            base["c"], base["bbox"] = whole, _around(base["bbox"], mark["bbox"])
            return True
    return False


def _beside(chars: Sequence[Char], number: int) -> Sequence[Char]:
    """Return the characters that an accent or slash may belong to, most likely first."""
    mark = chars[number]
    following, before = chars[number + 1 : number + 2], chars[max(0, number - 1) : number]
    if mark["c"] == SLASH:  # MuPDF always puts it after the previous character
        return [*before, *following]
    left, _, right, _ = mark["bbox"]
    return [one for one in (*following, *before) if one["bbox"][0] < (left + right) / 2 < one["bbox"][2]]


def _around(*boxes: Rect) -> Rect:
    lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    return min(lefts), min(tops), max(rights), max(bottoms)


def _composed(base: str, mark: str) -> str:
    """Compose both into one character; "" if there is none."""
    whole = unicodedata.normalize("NFC", _DOTLESS.get(base, base) + mark)
    return whole if len(whole) == 1 else ""
