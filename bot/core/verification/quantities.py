"""Numbers with their units as texts write them: "1,000", "five days", "$1.5 million", "-5 °C", "10-15 %"."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from decimal import Decimal

from bot.core.verification.number_lexicon import CARDINALS, MAGNITUDES, SPELLED, UNITS

_NUMBER = re.compile(r"(?<!\d[.,])\d{1,3}(?:[ ']\d{3})+(?!\d)(?:[.,]\d{1,2}(?!\d))?|\d+(?:[.,:/-]\d+)*")
_PARTS = re.compile(r"[:/ -]|\.(?=\d+\.)|(?<=\.\d\d)\.|(?<=\.\d)\.")
_COMPOSED = re.compile(r"[:/ -]|\..+\.")
_BEFORE = re.compile(r"(\b(?:EUR|USD|GBP|CHF)|[$€£])\s?-?$", re.IGNORECASE)
_BETWEEN = frozenset(
    "working business calendar consecutive full whole paid unpaid additional further more".split()
)
"""Words between a number and its unit."""
_AFTER = re.compile(r"\s?-?(?P<first>%|°\s?[CF]\b|[$€£]|[^\W\d_]+)(?:\s(?P<second>[^\W\d_]+))?")
_MINUS = re.compile(r"(?:(?<![\w)\]])-|\bminus\s|\()$", re.IGNORECASE)
_WORD = re.compile(
    r"(?:twen|thir|for|fif|six|seven|eigh|nine)ty-(?:one|two|three|four|five|six|seven|eight|nine)\b"
    r"|[^\W\d_]+",
    re.IGNORECASE,
)
_ARTICLES = frozenset("a an ein eine einer eines einem einen un une una uno um uma een".split())


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number in a text."""

    text: str
    values: frozenset[str]
    """What it may mean, without separators, leading zeros and zero decimals."""
    parts: frozenset[str]
    """Those of a date, a time or a range, where it may be one."""
    unit: str | None
    magnitude: int
    is_negative: bool


def find_quantities(text: str) -> list[Quantity]:
    """Every number in digits."""
    return [_in_digits(text, match) for match in _NUMBER.finditer(text)]


def find_spelled(text: str, *, is_source: bool = False) -> list[Quantity]:
    """Every number in words; in a source also those that may be none: "first", "a year"."""
    words = SPELLED if is_source else CARDINALS
    found = [_in_words(text, match, words) for match in _WORD.finditer(text) if match[0].lower() in words]
    if not is_source:
        return found
    articles = (match for match in _WORD.finditer(text) if match[0].lower() in _ARTICLES)
    return found + [one for match in articles if (one := _in_words(text, match, {})).unit]


class StatedNumbers:
    """All numbers of a source."""

    def __init__(self, source: str, more: Collection[str] = ()) -> None:
        """``more``: numbers that it states in other ways."""
        self._found = find_quantities(source) + find_spelled(source, is_source=True)
        self._values = {value for one in self._found for value in (*one.values, *one.parts)} | {"0", *more}
        self._products = {value for one in self._found for value in _products(one)}
        words = re.findall(r"[^\W\d_]+", source.lower())
        self._magnitudes = {1, *(MAGNITUDES[word] for word in words if word in MAGNITUDES)}

    def holds(self, one: Quantity) -> bool:
        """Whether the source states a number of a claim, in its unit and with its sign."""
        return self._has_value(one) and self._has_unit(one) and self._has_sign(one)

    def has_any(self, values: Collection[str]) -> bool:
        """Whether it states one of these numbers, or none is asked for."""
        return not values or not self._values.isdisjoint(values)

    def _has_value(self, one: Quantity) -> bool:
        if not self._products.isdisjoint(_products(one)):
            return True
        is_there = bool(one.values & self._values) or bool(one.parts and one.parts <= self._values)
        return is_there and one.magnitude in self._magnitudes

    def _has_unit(self, one: Quantity) -> bool:
        """Whether the number occurs somewhere in the claim's unit, or in none that we know."""
        same = [other.unit for other in self._found if one.values & (other.values | other.parts)]
        return one.unit is None or not same or one.unit in same or None in same

    def _has_sign(self, one: Quantity) -> bool:
        return not one.is_negative or any(
            other.is_negative for other in self._found if one.values & other.values
        )


def _in_digits(text: str, match: re.Match[str]) -> Quantity:
    number = match[0]
    parts = _PARTS.split(number) if _COMPOSED.search(number) else []
    is_negative = _MINUS.search(text[max(match.start() - 7, 0) : match.start()]) is not None
    return _quantity(text, match, _values(number), frozenset(map(_plain, parts)), is_negative=is_negative)


def _in_words(text: str, match: re.Match[str], words: dict[str, str]) -> Quantity:
    return _quantity(text, match, frozenset({words.get(match[0].lower(), "1")}), frozenset())


def _quantity(
    text: str,
    match: re.Match[str],
    values: frozenset[str],
    parts: frozenset[str],
    *,
    is_negative: bool = False,
) -> Quantity:
    after = _AFTER.match(text, match.end())
    size = MAGNITUDES.get(after["first"].lower(), 1) if after else 1
    if after and size > 1:
        after = _AFTER.match(text, after.end("first"))
    before = _BEFORE.search(text[max(match.start() - 6, 0) : match.start()])
    unit = UNITS.get(before[1].lower()) if before else _unit(after)
    return Quantity(match[0], values, parts, unit, size, is_negative)


def _unit(after: re.Match[str] | None) -> str | None:
    """The unit behind a number, if there is one."""
    if after is None:
        return None
    first, second = after["first"].replace(" ", "").lower(), (after["second"] or "").lower()
    if first in {"per", "pour", "por"} and second in {"cent", "ciento"}:
        return "percent"
    return UNITS.get(second if first in _BETWEEN else first)


def _products(one: Quantity) -> Iterator[str]:
    """Its values with the magnitude: "1.5 million" is "1500000"."""
    for value in one.values:
        if re.fullmatch(r"\d+(?:\.\d+)?", value):
            yield f"{(Decimal(value) * one.magnitude).normalize():f}"


def _values(number: str) -> frozenset[str]:
    """What it may mean: "1.200" may be 1200 or a version; "12,5" is "12.5", and may be two numbers."""
    bare = re.sub(r"[ ']", "", number)
    found = {bare, re.sub(r",(?=\d{3}(?!\d))", "", bare)}
    if re.fullmatch(r"\d{1,3}(?:\.\d{3})+(?:,\d+)?", bare):
        found.add(bare.replace(".", "").replace(",", "."))
    if re.fullmatch(r"\d+,\d{1,2}", bare):
        found.add(bare.replace(",", "."))
    return frozenset(map(_plain, found))


def _plain(number: str) -> str:
    """Without leading zeros and zero decimals: '007' is '7', '5.00' is '5', '0.50' is '0.5'."""
    bare = re.sub(r"\.0+$", "", re.sub(r"^0+(?=\d)", "", number))
    return re.sub(r"(?<=^0\.\d)0+$", "", bare)
