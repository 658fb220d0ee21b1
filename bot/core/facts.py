"""The numbers, dates, codes and addresses of a sentence: what must occur in its sources literally."""

from __future__ import annotations

import re
from collections.abc import Iterable

from storage.analyzer import fold

_URL = re.compile(r"(?:https?://|www\.)[^\s<>()\[\]\"']+|[\w.+-]+@[\w-]+(?:\.[\w-]+)+", re.IGNORECASE)
_CODE = re.compile(r"[^\W_]+(?:[-_./][^\W_]+)*")
_NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*")
_PARTS = re.compile(r"[:/-]|\.(?=\d+\.)|(?<=\.\d\d)\.|(?<=\.\d)\.")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = re.compile(
    rf"\b({'|'.join(_MONTHS)})[a-z]*\.?(?=\s+\d)|(?<=\d)\s+({'|'.join(_MONTHS)})[a-z]*\b", re.I
)
_SPELLED = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen twenty"
).split()
_LIST_MARK = re.compile(r"^\s*(?:\d{1,2}[.)]|[-•*])\s+")


def unsupported(claim: str, sources: Iterable[str]) -> list[str]:
    """The facts of a claim that none of its sources states, as the claim writes them."""
    claim, source = fold(_LIST_MARK.sub("", claim)), fold("\n".join(sources))
    missing = [url for url in _URL.findall(claim) if url.casefold() not in source.casefold()]
    bare = _URL.sub(" ", claim)
    codes = {code.casefold() for code in _CODE.findall(source)}
    missing += [code for code in _CODE.findall(bare) if _is_code(code) and code.casefold() not in codes]
    plain, plain_source = _without_codes(bare), _without_codes(source)
    stated = _numbers(plain_source) | _spelled_numbers(plain_source) | _month_numbers(plain_source)
    missing += [number for number in _NUMBER.findall(plain) if not _states(stated, number)]
    return missing + [month[0] for month in _MONTH.finditer(plain) if not _month_number(month) & stated]


def _states(stated: set[str], number: str) -> bool:
    """The number whole, or every part of a date, time or range: '2024-01-15' and '15.01.2024' agree."""
    if _plain(number) in stated:
        return True
    is_composed = re.search(r"[:/-]|\..+\.", number) is not None
    return is_composed and all(_plain(part) in stated | {"0"} for part in _PARTS.split(number))


def _numbers(text: str) -> set[str]:
    found = _NUMBER.findall(text)
    return {_plain(part) for number in found for part in (number, *_PARTS.split(number))}


def _plain(number: str) -> str:
    """Without thousands' separators, leading zeros and zero decimals: '1,200.00' is '1200'."""
    bare = re.sub(r",(?=\d{3}(?!\d))", "", number)
    bare = re.sub(r"^0+(?=\d)", "", bare)
    return re.sub(r"\.0+$", "", bare)


def _spelled_numbers(text: str) -> set[str]:
    words = set(re.findall(r"[a-z]+", text.casefold()))
    return {str(value) for value, word in enumerate(_SPELLED) if word in words}


def _month_numbers(text: str) -> set[str]:
    """Months by name and by number: a claim may write 'January' where the source has '01'."""
    return set().union(*(_month_number(month) for month in _MONTH.finditer(text)))


def _month_number(month: re.Match[str]) -> set[str]:
    return {str(_MONTHS.index((month[1] or month[2]).casefold()) + 1)}


def _without_codes(text: str) -> str:
    """The '04' of 'SOP-IT-04' is no number."""
    return _CODE.sub(lambda code: " " if _is_code(code[0]) else code[0], text)


def _is_code(word: str) -> bool:
    """Letters and digits in one word: 'SOP-IT-04', 'NYC08CA055'; not '5th' or '2pm'."""
    has_both = any(char.isdigit() for char in word) and any(char.isalpha() for char in word)
    return has_both and not re.fullmatch(r"\d+(?:[.,:]\d+)*-?[a-zA-Z]{1,10}", word)
