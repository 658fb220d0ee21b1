"""Parser of printed dates; an ambiguous date keeps only its printed form."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date

from storage.text.months import MONTHS

# Metadata fields that contain dates.
FIELDS = ("effective", "last_updated")

_MONTH = rf"(?:{'|'.join(sorted(MONTHS, key=len, reverse=True))})\b\.?"
_PRINTED = rf"""(?<![\w/.-])(?:
      (?P<iso>\d{{4}}(?P<dash>[-/.])\d{{1,2}}(?P=dash)\d{{1,2}})
    | (?P<day_first>\d{{1,2}}(?:st|nd|rd|th|er|º|°)?[\s.-]+(?:d[ei]\s|of\s)?(?P<month_2>{_MONTH})
        ,?[\s.-]+(?:del?\s)?\d{{2,4}})
    | (?P<month_first>(?P<month_1>{_MONTH})\s+\d{{1,2}}(?:st|nd|rd|th)?,?\s+\d{{4}})
    | (?P<month_only>(?P<month_0>{_MONTH}),?\s+(?:de\s)?\d{{4}})
    | (?P<figures>\d{{1,2}}(?P<between>[/.-])\d{{1,2}}(?P=between)(?:\d{{4}}|\d{{2}}))
    )(?![\w/-])"""
_DATE = re.compile(_PRINTED, re.VERBOSE | re.IGNORECASE)
# Matches a date directly after a label.
AFTER_LABEL = re.compile(rf"[ ]?{_PRINTED}", re.VERBOSE | re.IGNORECASE)
# Two-digit years from here on belong to the 20th century.
_PIVOT = 70


@dataclass(frozen=True, slots=True)
class PrintedDate:
    """A date in a text."""

    # As printed.
    text: str
    # None if the date is ambiguous or names no day.
    day: date | None


def find_date(text: str, *, is_day_first: bool | None = None) -> PrintedDate | None:
    """Return the date at the start of a text.

    Args:
        is_day_first: result of ``detect_day_first`` for the document's other dates.
    """
    found = _DATE.match(text.strip())
    if found is None:
        return None
    return PrintedDate(" ".join(found.group().split()), _day(found, is_day_first))


def detect_day_first(texts: Iterable[str]) -> bool | None:
    """True if numeric dates put the day first, as any part above 12 shows; None if ambiguous."""
    found = (one for text in texts for one in _DATE.finditer(text) if one["figures"])
    clear = (one for one in (_numbers(one["figures"]) for one in found) if max(one[:2]) > 12 >= min(one[:2]))
    first = next(clear, None)
    return None if first is None else first[0] > 12


def _day(found: re.Match[str], is_day_first: bool | None) -> date | None:
    numbers = _numbers(found.group())
    try:
        if found["iso"]:
            return date(*numbers)
        if found["day_first"]:
            return date(_year(numbers[1]), _month(found["month_2"]), numbers[0])
        if found["month_first"]:
            return date(numbers[1], _month(found["month_1"]), numbers[0])
        return _of_figures(*numbers, is_day_first=is_day_first) if found["figures"] else None
    except ValueError:  # e.g. 31 February
        return None


def _of_figures(first: int, second: int, year: int, *, is_day_first: bool | None) -> date | None:
    if is_day_first is None and first != second and max(first, second) <= 12:
        return None
    if is_day_first is None:
        is_day_first = first > 12
    return date(_year(year), *((second, first) if is_day_first else (first, second)))


def _numbers(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", text)]


def _month(name: str) -> int:
    return MONTHS[name.rstrip(".").casefold()]


def _year(number: int) -> int:
    if number >= 100:
        return number
    return number + (1900 if number >= _PIVOT else 2000)
