"""Facts of a sentence: numbers, dates, frequencies, codes and addresses; and what it asks of its reader.

All of them must occur in its sources.

Spelling makes no difference, meaning does: "3 March 2024" is 2024-03-03 and not 2024-04-03, "five days" are 5
days and not 5 %. Numbers are parsed with their units as texts write them: "1,000", "$1.5 million", "-5 °C",
"10-15 %".
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import lru_cache

from bot.answers.verification.dates import Mention, find_dates, find_frequencies, find_times
from bot.answers.verification.number_lexicon import CARDINALS, FACTORS, MAGNITUDES, SPELLED, UNITS
from storage.text.analyzer import analyze, fold

_URL = re.compile(r"(?:https?://|www\.)[^\s<>()\[\]\"']+|[\w.+-]+@[\w-]+(?:\.[\w-]+)+", re.IGNORECASE)
_CODE = re.compile(r"[^\W_]+(?:[-_./][^\W_]+)*")
_CODE_PART = re.compile(r"\d+|[^\W\d_]+")
_FRACTION = re.compile(r"(?:(?<![\d.,])(?P<whole>\d{1,4}) )?(?P<part>\d{1,2})⁄(?P<of>[1-9]\d?)")
_POWER = re.compile(r"(?<![\d.,])10\^(-?)(?=\d)")
_FOOTNOTE = re.compile(r"(?<=\d)\^-?\d+")
_LIST_MARK = re.compile(r"^\s*(?:\d{1,2}[.)]|[-•*])\s+")
_NUMBER = re.compile(r"(?<!\d[.,])\d{1,3}(?:[ ']\d{3})+(?!\d)(?:[.,]\d{1,2}(?!\d))?|\d+(?:[.,:/-]\d+)*")
_PARTS = re.compile(r"[:/ -]|\.(?=\d+\.)|(?<=\.\d\d)\.|(?<=\.\d)\.")
_COMPOSED = re.compile(r"[:/ -]|\..+\.")
_BEFORE = re.compile(r"(\b(?:EUR|USD|GBP|CHF)|[$€£])\s?-?$", re.IGNORECASE)
# Words that may come between a number and its unit.
_BETWEEN = frozenset(
    "working business calendar consecutive full whole paid unpaid additional further more".split()
)
_AFTER = re.compile(r"\s?-?(?P<first>%|°\s?[CF]\b|[$€£]|[^\W\d_]+)(?:\s(?P<second>[^\W\d_]+))?")
_MINUS = re.compile(r"(?:(?<![\w)\]])-|\bminus\s)$", re.IGNORECASE)
_ROUGHLY = re.compile(
    r"\b(?:about|approximately|roughly|around|nearly|almost|some|circa|ca\.?|just\s(?:under|over)|under|over"
    r"|more\sthan|less\sthan|rund|etwa|ungefahr|knapp|fast|environ|pres\sde|unos|unas|cerca\sde|circa|quase|ongeveer"
    r"|bijna)\W+$",
    re.IGNORECASE,
)
# Maximum relative error of a rounded number.
ROUNDED = Decimal("0.05")
_SPELLED_WORD = re.compile(
    r"(?:twen|thir|for|fif|six|seven|eigh|nine)ty-(?:one|two|three|four|five|six|seven|eight|nine)\b"
    r"|[^\W\d_]+",
    re.IGNORECASE,
)
_COUNTING = CARDINALS.keys() | UNITS.keys() | MAGNITUDES.keys()
_ARTICLES = frozenset("a an ein eine einer eines einem einen un une una uno um uma een".split())

# Requests that an instruction in a document may have a model make of its reader (prompt injection), in
# English; after them, words that may support them in a source: "email it" is supported by "contact us at
# a@b.org".
_REQUESTS = (
    ("call phone contact notify email mail send submit forward reply respond post share upload", "tell inform"
     " ask write fax report text message dial telephone publish"),
    ("click visit browse download install", "open"),
    ("pay wire transfer buy donate", "cost price fee"),
    ("delete erase", "remove"),
)  # fmt: skip
_SAID_FOR = {
    verb: frozenset(analyze(f"{verbs} {others}")) for verbs, others in _REQUESTS for verb in verbs.split()
}
_REQUEST = re.compile(
    r"(?:^|[,;:.!–—(]\s*|\b(?:please|and|or|then|just|now|first|but)\s)"
    rf"(?P<verb>{'|'.join(_SAID_FOR)})\b",
    re.IGNORECASE,
)
_YOURS = re.compile(r"\byour\s(?P<thing>[^,;:.!]*?)(?=[,;:.!]|\b(?:to|for|in|at|so|by|from|with|on)\b|$)")
_THIS_CHAT = re.compile(
    r"\b(?:this (?:thread|channel|chat|conversation|message)|reply(?:ing)? (?:here|with))\b", re.IGNORECASE
)
_JOINTS = frozenset(analyze("and or own"))


def unsupported(claim: str, sources: Iterable[str]) -> list[str]:
    """Return the facts of a claim that none of its sources states, as written in the claim."""
    claim, source = _folded(_LIST_MARK.sub("", claim)), _folded("\n".join(sources))
    missing = [url for url in _URL.findall(claim) if url.casefold() not in source.casefold()]
    bare = _URL.sub(" ", claim)
    missing += [code for code in _CODE.findall(bare) if _is_code(code) and not _holds_code(source, code)]
    known, plain = _source(_without_codes(source)), _without_codes(bare)
    missing += [one.text for one in find_frequencies(plain) if not known.recurs(one.count, one.unit)]
    return list(dict.fromkeys((*missing, *known.moments_denied(plain), *known.numbers_missing(plain))))


def makes_unsupported_request(sentence: str, source: str, question: str) -> bool:
    """True if a sentence asks the reader for something that neither source nor question mentions."""
    said, held = fold(sentence), frozenset(analyze(source))
    if any(one[0].lower() not in fold(source).lower() for one in _THIS_CHAT.finditer(said)):
        return True
    verbs = [one["verb"].lower() for one in _REQUEST.finditer(said)]
    if any(held.isdisjoint(_SAID_FOR[verb]) for verb in verbs):
        return True
    known = held.union(analyze(question), _JOINTS)
    return bool(verbs) and any(not known.issuperset(analyze(one["thing"])) for one in _YOURS.finditer(said))


def without_facts(text: str) -> str:
    """Return a text without the facts that ``unsupported`` checks, except for codes and plain numbers."""
    bare = _folded(_URL.sub(" ", text))
    found = {one.text for find in (find_dates, find_times, find_frequencies) for one in find(bare)}
    for fact in sorted(found, key=len, reverse=True):
        bare = re.sub(re.escape(fact), " ", bare, flags=re.IGNORECASE)
    return _SPELLED_WORD.sub(lambda word: " " if word[0].lower() in _COUNTING else word[0], bare)


class _Source:
    """Dates, times and numbers that a source states."""

    def __init__(self, text: str) -> None:
        self._dates, self._times = find_dates(text), find_times(text)
        self._frequencies = {(one.count, one.unit) for one in find_frequencies(text, is_source=True)}
        days = [day for one in self._dates for day in one.days]
        years = {str(form) for _, _, year in days if year for form in (year, year % 100)}
        self._stated = StatedNumbers(text, {*years, *(str(month) for month, _, _ in days)})
        self._stated.add_spans(days)
        for one in self._dates:
            text = text.replace(one.text, " ")
        self._undated = StatedNumbers(text)

    def recurs(self, count: str, unit: str) -> bool:
        """True if the source states that something happens once every ``count`` units of time."""
        return (count, unit) in self._frequencies

    def moments_denied(self, claim: str) -> Iterator[str]:
        """Yield the dates and times of a claim that the source contradicts."""
        yield from (one.text for one in find_dates(claim) if one.contradicts(self._dates))
        yield from (time.text for time in find_times(claim) if time.contradicts(self._times))

    def numbers_missing(self, claim: str) -> Iterator[str]:
        """Yield the numbers of a claim that the source does not state.

        Number words count only with a unit, because "the two plans" are merely counted; times are compared by
        meaning.
        """
        for time in find_times(claim):
            if any(time.minutes & other.minutes for other in self._times):
                claim = claim.replace(time.text, " ")
        numbers = [*find_quantities(claim), *(one for one in find_spelled(claim) if one.unit)]
        yield from (one.text for one in numbers if not self._stated.holds(one))
        yield from (one.text for one in find_dates(claim) if not self._has_month(one))

    def _has_month(self, one: Mention) -> bool:
        """True if the source states its month, as part of a date or as a number outside any date: "08"."""
        months = {month for month, _, _ in one.days}
        said = {month for other in self._dates for month, _, _ in other.days}
        return not months or bool(months & said) or self._undated.has_any({str(month) for month in months})


# Cached, because several sentences of an answer cite the same passages.
_source = lru_cache(maxsize=64)(_Source)


def _folded(text: str) -> str:
    """Return the text folded: 2½ as a decimal, a power of ten as a code, footnote marks removed."""
    folded = _POWER.sub(lambda power: "10em" if power[1] else "10e", _FRACTION.sub(_as_decimal, fold(text)))
    return _FOOTNOTE.sub("", folded)


def _as_decimal(fraction: re.Match[str]) -> str:
    return str(round(int(fraction["whole"] or 0) + int(fraction["part"]) / int(fraction["of"]), 3))


def _without_codes(text: str) -> str:
    """Blank out codes: the '04' of 'SOP-IT-04' is not a number."""
    return _CODE.sub(lambda code: " " if _is_code(code[0]) else code[0], text)


def _holds_code(source: str, code: str) -> bool:
    """True if a text contains a code, whatever separates its parts: 'SOP IT 04' is 'SOP-IT-04'."""
    parts = r"[\W_]{0,3}".join(map(re.escape, _CODE_PART.findall(code)))
    return re.search(rf"(?<![^\W_]){parts}(?![^\W_])", source, re.IGNORECASE) is not None


def _is_code(word: str) -> bool:
    """True for letters and digits in one word: 'SOP-IT-04', 'NYC08CA055'; not '5th', '2pm' or '25-50mg'."""
    has_both = any(char.isdigit() for char in word) and any(char.isalpha() for char in word)
    number = re.fullmatch(r"\d+(?:[.,:]\d+)*(-\d+(?:[.,]\d+)*)?-?([^\W\d_]{1,10})", word)
    return has_both and not (number and (not number[1] or number[2].lower() in UNITS))


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number in a text."""

    text: str
    # Possible readings, without separators, leading zeros and zero decimals.
    values: frozenset[str]
    # Its components, if it may be a date, a time or a range.
    parts: frozenset[str]
    unit: str | None
    magnitude: int
    is_negative: bool
    # Approximate, as in "about 30".
    is_rounded: bool = False

    def amounts(self) -> Iterator[tuple[str, Decimal]]:
        """Yield (dimension, amount in its smallest unit); the dimension is '' for a number without a unit."""
        dimension, factor = FACTORS.get(self.unit or "", (self.unit or "", 1))
        for value in _products(self):
            yield dimension, Decimal(value) * factor


def find_quantities(text: str) -> list[Quantity]:
    """Return every number written in digits."""
    found = []
    for match in _NUMBER.finditer(text):
        number = match[0]
        parts = frozenset(map(_plain, _PARTS.split(number))) if _COMPOSED.search(number) else frozenset()
        before = text[max(match.start() - 7, 0) : match.start()]
        is_in_brackets = before.endswith("(") and text.startswith(")", match.end()) and not parts
        is_negative = is_in_brackets or _MINUS.search(before) is not None
        found.append(_quantity(text, match, _possible_values(number), parts, is_negative=is_negative))
    return found


def find_spelled(text: str, *, is_source: bool = False) -> list[Quantity]:
    """Return every number written in words; for a source also doubtful ones: "first", "a year"."""
    words = SPELLED if is_source else CARDINALS
    found = [
        _in_words(text, match, words)
        for match in _SPELLED_WORD.finditer(text)
        if match[0].lower() in words and not _is_magnitude(text, match)
    ]
    if not is_source:
        return found
    articles = (match for match in _SPELLED_WORD.finditer(text) if match[0].lower() in _ARTICLES)
    return found + [one for match in articles if (one := _in_words(text, match, {})).unit]


def _is_magnitude(text: str, match: re.Match[str]) -> bool:
    """True for the "hundred" of "fifteen hundred": part of the number before it."""
    before = re.search(r"([^\W_]+)\s$", text[: match.start()])
    is_number = before and (before[1].isdigit() or before[1].lower() in CARDINALS)
    return match[0].lower() in MAGNITUDES and bool(is_number)


class StatedNumbers:
    """Numbers that a source states."""

    def __init__(self, source: str, more: Collection[str] = ()) -> None:
        """Parse the source; ``more``: numbers that it states in other ways."""
        self._found = find_quantities(source) + find_spelled(source, is_source=True)
        self._values = {value for one in self._found for value in (*one.values, *one.parts)} | {"0", *more}
        self._products = {value for one in self._found for value in _products(one)}
        self._amounts = {amount for one in self._found for amount in one.amounts()}
        words = re.findall(r"[^\W\d_]+", source.lower())
        self._magnitudes = {1, *(MAGNITUDES[word] for word in words if word in MAGNITUDES)}

    def add_spans(self, days: Iterable[tuple[int, int, int | None]]) -> None:
        """Add the durations between days, each given as (month, day, year)."""
        whole = [ordinal for one in days if (ordinal := _ordinal(*one)) is not None]
        spans = {abs(first - second) for first in whole for second in whole} - {0}
        self._amounts |= {("time", Decimal(span * FACTORS["day"][1])) for span in spans}

    def holds(self, one: Quantity) -> bool:
        """True if the source states or implies a claim's number, in its unit and with its sign."""
        same = [other for other in self._found if one.values & other.values]
        has_sign = not one.is_negative or any(other.is_negative for other in same)
        return has_sign and ((self._has_value(one) and self._has_unit(one)) or self._follows(one))

    def _follows(self, one: Quantity) -> bool:
        """True if it converts or rounds a number of the source, or is derived from two of them."""
        return any(
            abs(wanted - amount) <= (ROUNDED * amount if one.is_rounded else 0)
            for dimension, wanted in one.amounts()
            for amount in self._derived(dimension)
        )

    def _derived(self, dimension: str) -> Iterator[Decimal]:
        """Yield sums, differences, doubles and halves of the source's amounts in a dimension; '' is any."""
        known = {amount for each, amount in self._amounts if dimension in ("", each)}
        for one in known:
            yield from (one, one * 2, one / 2)
            yield from (amount for other in known for amount in (one + other, abs(one - other)))

    def has_any(self, values: Collection[str]) -> bool:
        """True if the source states one of these numbers, or none is given."""
        return not values or not self._values.isdisjoint(values)

    def _has_value(self, one: Quantity) -> bool:
        if not self._products.isdisjoint(_products(one)):
            return True
        is_there = bool(one.values & self._values) or bool(one.parts and one.parts <= self._values)
        return is_there and one.magnitude in self._magnitudes

    def _has_unit(self, one: Quantity) -> bool:
        """True if the source gives the number in the claim's unit, or without a known one."""
        same = [other.unit for other in self._found if one.values & (other.values | other.parts)]
        return one.unit is None or not same or one.unit in same or None in same


def _ordinal(month: int, day: int, year: int | None) -> int | None:
    try:
        return date(year or 0, month, day).toordinal()
    except ValueError:  # no year, no day, or not a valid date
        return None


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
    unit = UNITS.get(before[1].lower()) if before else _unit_behind(after)
    is_rounded = _ROUGHLY.search(text[max(match.start() - 20, 0) : match.start()]) is not None
    return Quantity(match[0], values, parts, unit, size, is_negative, is_rounded)


def _unit_behind(after: re.Match[str] | None) -> str | None:
    """Return the unit after a number; None if there is none."""
    if after is None:
        return None
    first, second = after["first"].replace(" ", "").lower(), (after["second"] or "").lower()
    if first in {"per", "pour", "por"} and second in {"cent", "ciento"}:
        return "percent"
    return UNITS.get(second if first in _BETWEEN else first)


def _products(one: Quantity) -> Iterator[str]:
    """Yield the values times the magnitude: "1.5 million" is "1500000"."""
    for value in one.values:
        if re.fullmatch(r"\d+(?:\.\d+)?", value):
            yield f"{(Decimal(value) * one.magnitude).normalize():f}"


def _possible_values(number: str) -> frozenset[str]:
    """Return all readings: "1.200" may be 1200 or a version; "12,5" is "12.5", or may be two numbers."""
    bare = re.sub(r"[ ']", "", number)
    found = {bare, re.sub(r",(?=\d{3}(?!\d))", "", bare)}
    if re.fullmatch(r"\d{1,3}(?:\.\d{3})+(?:,\d+)?", bare):
        found.add(bare.replace(".", "").replace(",", "."))
    if re.fullmatch(r"\d+,\d{1,2}", bare):
        found.add(bare.replace(",", "."))
    return frozenset(map(_plain, found))


def _plain(number: str) -> str:
    """Strip leading zeros and zero decimals: '007' is '7', '5.00' is '5', '0.50' is '0.5'."""
    bare = re.sub(r"\.0+$", "", re.sub(r"^0+(?=\d)", "", number))
    return re.sub(r"(?<=^0\.\d)0+$", "", bare)
