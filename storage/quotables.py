"""What may be quoted from a passage: sentences, rows, list items with their lead-in, whole short lists.

Reading gives each of these a vector, and the answerer that quotes looks it up by its place in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from storage.units import TextUnit, split_units

SPLITTER = "quotables-1"
"""Raise it when other parts of a text may be quoted: every reading is then made again. Until it is, what
has no vector gets one when a question comes upon it."""

MAX_LIST_WORDS = 80
"""Words of a list, or of an item with its lead-in, that are still quoted together."""

_EMPTY_LABELS = re.compile(r"(?:[^:\n]{1,60}:[_.…\s-]*)+")
_RUNNING_HEAD = re.compile(r"(?:page:? )?\d+ (?:of|/) \d+\b.{0,40}", re.IGNORECASE)
_CONTENTS_LINE = re.compile(r"(?:\. ?){4,}|^\d+(?:\.\d+)*\s+\D+\s{2}\d+$")


@dataclass(frozen=True, slots=True)
class Quotable:
    """text[start:end] can stand by itself as an answer."""

    start: int
    end: int
    text: str
    is_row: bool


def quotables(text: str) -> Iterator[Quotable]:
    """Everything quotable in order; empty fields, bare lead-ins and lines of a table of contents are not."""
    found = split_units(text)
    leads = {unit.lead for unit in found}
    for lead, units in groupby(found, key=lambda unit: unit.lead):
        items = list(units)
        if lead and (whole := _fitting(text, lead[0], items)):
            yield whole
        for unit in items:
            if (unit.start, unit.end) not in leads and _says_something(text[unit.start : unit.end]):
                yield _introduced(text, unit)


def _says_something(text: str) -> bool:
    is_frame = _EMPTY_LABELS.fullmatch(text) or _RUNNING_HEAD.fullmatch(text)
    return any(map(str.isalpha, text)) and not is_frame and not _CONTENTS_LINE.search(text)


def _fitting(text: str, start: int, items: list[TextUnit]) -> Quotable | None:
    """The list from its lead-in to the last item that still fits."""
    ends = [item.end for item in items if _is_short(text[start : item.end])]
    return Quotable(start, ends[-1], text[start : ends[-1]], is_row=False) if ends else None


def _introduced(text: str, unit: TextUnit) -> Quotable:
    """An item that follows its lead-in at a short distance is quoted with it."""
    start = unit.lead[0] if unit.lead and _is_short(text[unit.lead[0] : unit.end]) else unit.start
    return Quotable(start, unit.end, text[start : unit.end], unit.is_row and start == unit.start)


def _is_short(text: str) -> bool:
    return len(text.split()) <= MAX_LIST_WORDS
