"""The numbers, dates, codes and addresses of a sentence: what must occur in its sources literally.

A sentence may be a translation: months agree by their names in all our languages, and where a language with
a decimal comma is in play, "1.200,50" agrees with "1,200.50".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable

from bot.core.languages import Language, language_of
from bot.core.number_words import MONTHS, SPELLED
from storage.analyzer import fold

Reading = Callable[[str], set[str]]
"""What values a number as written may have."""

_URL = re.compile(r"(?:https?://|www\.)[^\s<>()\[\]\"']+|[\w.+-]+@[\w-]+(?:\.[\w-]+)+", re.IGNORECASE)
_CODE = re.compile(r"[^\W_]+(?:[-_./][^\W_]+)*")
_NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*")
_PARTS = re.compile(r"[:/-]|\.(?=\d+\.)|(?<=\.\d\d)\.|(?<=\.\d)\.")
_NAMES = "|".join(MONTHS)
_DAY = r"(?:(?<=\d)|(?<=\d\.)|(?<=\do)|(?<=\d(?:er|st|nd|rd|th)))"
_MONTH = re.compile(
    rf"\b({_NAMES})\b\.?(?=\s+(?:de\s+)?\d)|{_DAY}\s+(?:of\s+|de\s+)?({_NAMES})\b", re.IGNORECASE
)
_SPACED = re.compile(r"(?<!\d)(\d{1,3}(?: \d{3})+)(?!\d)")
_EXCHANGED = str.maketrans(".,", ",.")
_LIST_MARK = re.compile(r"^\s*(?:\d{1,2}[.)]|[-•*])\s+")


def unsupported(claim: str, sources: Iterable[str]) -> list[str]:
    """The facts of a claim that none of its sources states, as the claim writes them."""
    texts = [claim, *sources]
    spoken = {language for text in texts if (language := language_of(text))}
    claim, source = fold(_LIST_MARK.sub("", claim)), fold("\n".join(texts[1:]))
    missing = [url for url in _URL.findall(claim) if url.casefold() not in source.casefold()]
    bare = _URL.sub(" ", claim)
    codes = {code.casefold() for code in _CODE.findall(source)}
    missing += [code for code in _CODE.findall(bare) if _is_code(code) and code.casefold() not in codes]
    plain, plain_source = _without_codes(bare), _without_codes(source)
    read = _read_english
    if spoken - {Language.ENGLISH}:
        read, plain, plain_source = (
            _read_either,
            _unspaced(plain),
            f"{plain_source}\n{_unspaced(plain_source)}",
        )
    stated = (
        _numbers(plain_source, read) | _spelled_numbers(plain_source, spoken) | _month_numbers(plain_source)
    )
    numbers = _NUMBER.findall(plain)
    missing += [number for number in numbers if not _states(stated, number, read)]
    dated = _month_numbers(plain_source) | _date_parts(plain_source)
    return missing + [month[0] for month in _MONTH.finditer(plain) if not _month_number(month) & dated]


def _states(stated: Collection[str], number: str, read: Reading) -> bool:
    """The number whole, or every part of a date, time or range: '2024-01-15' and '15.01.2024' agree."""
    if read(number) & set(stated):
        return True
    is_composed = re.search(r"[:/-]|\..+\.", number) is not None
    return is_composed and all(_plain(part) in {*stated, "0"} for part in _PARTS.split(number))


def _numbers(text: str, read: Reading) -> set[str]:
    found = _NUMBER.findall(text)
    parts = (part for number in found for part in (number, *_PARTS.split(number)))
    return set().union(*map(read, parts))


def _read_english(number: str) -> set[str]:
    return {_plain(number)}


def _read_either(number: str) -> set[str]:
    """By a decimal point and by a decimal comma: nobody can tell which of the two '1.200' is written with."""
    return {_plain(number), _plain(number.translate(_EXCHANGED))}


def _unspaced(text: str) -> str:
    """'1 200' is one number where a language parts thousands by spaces."""
    return _SPACED.sub(lambda number: number[0].replace(" ", ""), text)


def _plain(number: str) -> str:
    """Without thousands' separators, leading zeros and zero decimals: '1,200.00' is '1200'."""
    bare = re.sub(r",(?=\d{3}(?!\d))", "", number)
    bare = re.sub(r"^0+(?=\d)", "", bare)
    return re.sub(r"\.0+$", "", bare)


def _spelled_numbers(text: str, spoken: Collection[Language]) -> set[str]:
    words = set(re.findall(r"[a-z-]+", text.casefold()))
    known = [SPELLED[language] for language in {Language.ENGLISH, *spoken}]
    return {str(values[word]) for values in known for word in words & values.keys()}


def _month_numbers(text: str) -> set[str]:
    """Months by name and by number: a claim may write 'January' where the source has '01'."""
    return set().union(*(_month_number(month) for month in _MONTH.finditer(text)))


def _date_parts(text: str) -> set[str]:
    """The numbers of dates that are written in numbers: a bare 3 is no March."""
    composed = (parts for number in _NUMBER.findall(text) if len(parts := _PARTS.split(number)) > 1)
    return {_plain(part) for parts in composed for part in parts}


def _month_number(month: re.Match[str]) -> set[str]:
    return {str(MONTHS[(month[1] or month[2]).casefold()])}


def _without_codes(text: str) -> str:
    """The '04' of 'SOP-IT-04' is no number."""
    return _CODE.sub(lambda code: " " if _is_code(code[0]) else code[0], text)


def _is_code(word: str) -> bool:
    """Letters and digits in one word: 'SOP-IT-04', 'NYC08CA055'; not '5th' or '2pm'."""
    has_both = any(char.isdigit() for char in word) and any(char.isalpha() for char in word)
    return has_both and not re.fullmatch(r"\d+(?:[.,:]\d+)*-?[a-zA-Z]{1,10}", word)
