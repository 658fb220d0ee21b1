"""The numbers, dates, codes and addresses of a sentence: what must occur in its sources.

Spelling makes no difference, and meaning does: "3 March 2024" is 2024-03-03 and not 2024-04-03, "five days"
are 5 days and not 5 %.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from bot.core.verification.dates import Mention, find_dates, find_times
from bot.core.verification.quantities import StatedNumbers, find_quantities, find_spelled
from storage.text.analyzer import fold

_URL = re.compile(r"(?:https?://|www\.)[^\s<>()\[\]\"']+|[\w.+-]+@[\w-]+(?:\.[\w-]+)+", re.IGNORECASE)
_CODE = re.compile(r"[^\W_]+(?:[-_./][^\W_]+)*")
_CODE_PART = re.compile(r"\d+|[^\W\d_]+")
_FRACTIONS = {"1⁄2": "0.5", "1⁄4": "0.25", "3⁄4": "0.75"}
_LIST_MARK = re.compile(r"^\s*(?:\d{1,2}[.)]|[-•*])\s+")


def unsupported(claim: str, sources: Iterable[str]) -> list[str]:
    """The facts of a claim that none of its sources states, as the claim writes them."""
    claim, source = _folded(_LIST_MARK.sub("", claim)), _folded("\n".join(sources))
    missing = [url for url in _URL.findall(claim) if url.casefold() not in source.casefold()]
    bare = _URL.sub(" ", claim)
    missing += [code for code in _CODE.findall(bare) if _is_code(code) and not _holds_code(source, code)]
    known, plain = _source(_without_codes(source)), _without_codes(bare)
    return list(dict.fromkeys((*missing, *known.moments_denied(plain), *known.numbers_missing(plain))))


class _Source:
    """What a source says of days, times and numbers."""

    def __init__(self, text: str) -> None:
        self._dates, self._times = find_dates(text), find_times(text)
        self._stated = StatedNumbers(text, _date_numbers(self._dates))
        self._undated = StatedNumbers(_without(text, (date.text for date in self._dates)))

    def moments_denied(self, claim: str) -> Iterator[str]:
        """Days and times of a claim of which the source says otherwise."""
        yield from (date.text for date in find_dates(claim) if date.contradicts(self._dates))
        yield from (time.text for time in find_times(claim) if time.contradicts(self._times))

    def numbers_missing(self, claim: str) -> Iterator[str]:
        """Numbers of a claim that the source does not state.

        Those in words count with a unit only, for "the two plans" are counted; those of a time as meant.
        """
        for time in find_times(claim):
            if any(time.minutes & other.minutes for other in self._times):
                claim = claim.replace(time.text, " ")
        numbers = [*find_quantities(claim), *(one for one in find_spelled(claim) if one.unit)]
        yield from (one.text for one in numbers if not self._stated.holds(one))
        yield from (date.text for date in find_dates(claim) if not self._has_month(date))

    def _has_month(self, date: Mention) -> bool:
        """Whether its month is one of a day that is said, or of a number that belongs to none: "08"."""
        months = {month for month, _, _ in date.days}
        said = {month for other in self._dates for month, _, _ in other.days}
        return not months or bool(months & said) or self._undated.has_any({str(month) for month in months})


_source = lru_cache(maxsize=64)(_Source)
"""Several sentences of an answer cite the same passages."""


def _without(text: str, parts: Iterable[str]) -> str:
    for part in parts:
        text = text.replace(part, " ")
    return text


def _date_numbers(dates: Iterable[Mention]) -> set[str]:
    """Months by number, and years by their last two digits, too."""
    days = [day for date in dates for day in date.days]
    years = {year for _, _, year in days if year}
    return {str(month) for month, _, _ in days} | {str(form) for year in years for form in (year, year % 100)}


def _folded(text: str) -> str:
    folded = fold(text)
    for fraction, decimal in _FRACTIONS.items():
        folded = folded.replace(fraction, decimal)
    return folded


def _without_codes(text: str) -> str:
    """The '04' of 'SOP-IT-04' is no number."""
    return _CODE.sub(lambda code: " " if _is_code(code[0]) else code[0], text)


def _holds_code(source: str, code: str) -> bool:
    """Whether a code occurs there, its parts separated in any way: 'SOP IT 04' is 'SOP-IT-04'."""
    parts = r"[\W_]{0,3}".join(map(re.escape, _CODE_PART.findall(code)))
    return re.search(rf"(?<![^\W_]){parts}(?![^\W_])", source, re.IGNORECASE) is not None


def _is_code(word: str) -> bool:
    """Letters and digits in one word: 'SOP-IT-04', 'NYC08CA055'; not '5th' or '2pm'."""
    has_both = any(char.isdigit() for char in word) and any(char.isalpha() for char in word)
    return has_both and not re.fullmatch(r"\d+(?:[.,:]\d+)*-?[a-zA-Z]{1,10}", word)
