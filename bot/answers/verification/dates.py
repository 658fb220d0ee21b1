"""Dates, times of day and frequencies in texts, parsed for comparison.

"3 March 2024" is 2024-03-03, 2 pm is 14:00, "daily" is "once a day".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bot.answers.verification.number_lexicon import CARDINALS, MONTHS, PERIODS, UNITS

_MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))
_DAY = r"\d{1,2}(?:st|nd|rd|th|er|\.)?(?![\d:])"
_DAYS = rf"{_DAY}(?:\s*(?:,|-|to|and|or|&|through|und|bis|et|au|y|al|e|en|tot|a)\s*{_DAY})*"
_NAMED = re.compile(
    rf"(?:(?P<before>{_DAYS})\s*(?:of|de|di)?\s*)?(?<![^\W\d_])(?P<month>{_MONTH})\b\.?"
    rf"(?:\s+(?P<after>{_DAYS}))?(?P<year>,?\s*(?:de\s+)?\d{{4}})?",
    re.IGNORECASE,
)
_ISO = re.compile(r"(?<!\d)(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?!\d)")
_LOCAL = re.compile(r"(?<![\d.])(\d{1,2})([-/.])(\d{1,2})\2(\d{4}|\d{2})(?![\d.]*\d)")
_OF_YEAR = re.compile(r"(?<![\d/.-])(\d{1,2})[/.-](\d{4})(?![\d/-])")
_IN_MONTH = re.compile(r"\b(?:in|each|every|since|until|by|from|im|seit|ab|en|depuis|desde|dal|dans)\s+$")
_CLOCK = re.compile(
    r"(?<![\d.:])(\d{1,2})(?:[:.h](\d\d))?\s*([ap])\.?\s?m\b\.?|(?<![\d.:])(\d{1,2})[:h](\d\d)(?![\d:])", re.I
)
_MILITARY = re.compile(
    r"(?<![\d.:])([01]\d|2[0-3])([0-5]\d)(?=\s?(?:[A-Z]{1,3}T|UTC|Z|local|hrs?|hours|[ap]\.?m)\b)", re.I
)
_TIMES = frozenset({"hour", "day", "week", "month", "quarter", "year"})
_UNITS = {word: unit for word, unit in UNITS.items() if unit in _TIMES}
_UNITS |= dict.fromkeys("quarter quarters quartal trimestre kwartaal".split(), "quarter")
_UNIT = "|".join(sorted(_UNITS, key=len, reverse=True))
_COUNT = rf"(?:(?P<count>\d+|{'|'.join(CARDINALS)})[\s-])?"
_SURE = (
    r"per|every|each|pro|je|jede[nmrs]?|par|chaque|tou(?:te)?s\sles|por|cada|tod[oa]s\sl[oa]s|todos\sos|ogni|elke|"
    r"iedere"
)
_EACH_MONTH = re.compile(rf"\b(?:{_SURE})\s(?:{_MONTH})\b")
_ADVERB = re.compile(rf"\b(?:{'|'.join(PERIODS)})(?:e[nmrs]?)?\b")
_EACH = re.compile(rf"\b(?:{_SURE})\s{_COUNT}(?:[^\W\d_]+\s)?(?P<unit>{_UNIT})\b")
_COUNTED = re.compile(
    rf"\b(?:once|twice|times|\d+(?:\s[^\W\d_]+)?|einmal|zweimal|mal|fois|vez|veces|volta|volte|vezes|keer)"
    rf"\s(?P<each>an?|im|in\sde[rm]|am|al|à\sl[ea]|all['’]|a|ao)\s?(?P<unit>{_UNIT})\b"
)
_PERHAPS = re.compile(rf"(?:\ban?\s|/\s?)(?P<unit>{_UNIT})\b")


@dataclass(frozen=True, slots=True)
class Mention:
    """A date mentioned in a text."""

    text: str
    # Possible readings as (month, day, year); without a day it is 0, without a year None.
    days: frozenset[tuple[int, int, int | None]]

    def agrees(self, other: Mention) -> bool:
        """True if both may mean the same date; a month without a day agrees with each of its days."""
        return any(_agree(one, another) for one in self.days for another in other.days)

    def contradicts(self, others: Sequence[Mention]) -> bool:
        """True if the others give other days of its month, or swap day and month, but never the date."""
        if not self.days or any(self.agrees(other) for other in others):
            return False
        said = {day for other in others for day in other.days}
        months = {month for month, _, _ in self.days}
        is_swapped = any((day, month, year) in said for month, day, year in self.days)
        return is_swapped or any(month in months for month, _, _ in said)


def _agree(one: tuple[int, int, int | None], other: tuple[int, int, int | None]) -> bool:
    is_same_day = one[1] == other[1] or 0 in (one[1], other[1])
    is_same_year = one[2] == other[2] or None in (one[2], other[2])
    return one[0] == other[0] and is_same_day and is_same_year


def find_dates(text: str) -> list[Mention]:
    """Return the dates and months in a text; words like "may" count only next to a number, or after "in"."""
    return [*_numeric(text), *_named(text)]


def _numeric(text: str) -> Iterator[Mention]:
    for one in _ISO.finditer(text):
        yield Mention(one[0], _possible([(int(one[2]), int(one[3]))], int(one[1])))
    for one in _LOCAL.finditer(text):
        first, second, year = int(one[1]), int(one[3]), int(one[4])
        orders = [(second, first)] if one[2] == "." else [(first, second), (second, first)]
        yield Mention(one[0], _possible(orders, year + 2000 * (year < 100)))
    for one in _OF_YEAR.finditer(text):
        yield Mention(one[0], _possible([(int(one[1]), 0)], int(one[2])))


def _possible(orders: list[tuple[int, int]], year: int) -> frozenset[tuple[int, int, int | None]]:
    return frozenset((month, day, year) for month, day in orders if 1 <= month <= 12 and day <= 31)


def _named(text: str) -> Iterator[Mention]:
    for one in _NAMED.finditer(text):
        days = one["before"] or one["after"] or ""
        is_meant = (
            days or one["year"] or (one["month"][0].isupper() and _IN_MONTH.search(text[: one.start()]))
        )
        if not is_meant:
            continue
        year = int(one["year"][-4:]) if one["year"] else None
        found = [int(day) for day in re.findall(r"\d+", days)] or [0]
        month = MONTHS[one["month"].lower()]
        yield from (Mention(one[0].strip(" .,"), frozenset({(month, day, year)})) for day in found)


@dataclass(frozen=True, slots=True)
class Time:
    """A time of day in a text."""

    text: str
    # Minutes since midnight; two values if "2:00" may be in the afternoon.
    minutes: frozenset[int]

    def contradicts(self, others: Sequence[Time]) -> bool:
        """True if the others give the same time in the other half of the day, and never the time itself."""
        said = frozenset(minute for other in others for minute in other.minutes)
        return not self.minutes & said and any((minute + 720) % 1440 in said for minute in self.minutes)


def find_times(text: str) -> list[Time]:
    """Return every time of day in a text."""
    found = [Time(one[0].strip(), frozenset(_minutes(one))) for one in _CLOCK.finditer(text)]
    military = (Time(one[0], frozenset({60 * int(one[1]) + int(one[2])})) for one in _MILITARY.finditer(text))
    return [*found, *military]


def _minutes(one: re.Match[str]) -> Iterator[int]:
    hour, minute = int(one[1] or one[4]), int(one[2] or one[5] or 0)
    if one[3]:
        yield 60 * (hour % 12 + 12 * (one[3].lower() == "p")) + minute
        return
    yield 60 * hour + minute
    if hour < 13:
        yield 60 * ((hour + 12) % 24) + minute


@dataclass(frozen=True, slots=True)
class Frequency:
    """A frequency: once every ``count`` units of time."""

    text: str
    count: str
    unit: str


def find_frequencies(text: str, *, is_source: bool = False) -> list[Frequency]:
    """Return every frequency in a folded text; for a source also doubtful ones: "5 EUR a day", "a year"."""
    low = text.lower()
    found = [Frequency(one[0], "1", _period(one[0])) for one in _ADVERB.finditer(low)]
    for one in _EACH.finditer(low):
        count = CARDINALS.get(one["count"] or "one", one["count"])
        found.append(Frequency(one[0], count, _UNITS[one["unit"]]))
    found += [Frequency(one[0], "1", "year") for one in _EACH_MONTH.finditer(low)]
    patterns = (_COUNTED, _PERHAPS) if is_source else (_COUNTED,)
    found += [
        Frequency(one[0], "1", _UNITS[one["unit"]]) for pattern in patterns for one in pattern.finditer(low)
    ]
    return found


def _period(word: str) -> str:
    return next(PERIODS[word[:end]] for end in range(len(word), 0, -1) if word[:end] in PERIODS)
