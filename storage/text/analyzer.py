"""Text analyzer of indexed text and queries, shared by all search engines.

A text becomes terms without whitespace: lower case, accents folded, English words stemmed, numbers and codes
whole and in parts; words with an umlaut in both spellings. Title, headings and body become one text of
terms, weighted by repetition.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

import Stemmer

# Analyzer version. Raise it when the terms of a text change: indexed text and queries would no longer match.
ANALYZER = "terms-3"

TITLE_WEIGHT = 2
HEADING_WEIGHT = 1
# Longer runs are not words (base64, rulers), and engines limit the size of a key.
MAX_TERM_CHARS = 64

_DASHES = dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013\u2212\u207b\u208b\ufe58\ufe63\uff0d"), "-")
_APOSTROPHES = dict.fromkeys(map(ord, "\u2018\u2019\u02bc\uff07"), "'")
_LETTERS = str.maketrans(
    {"ß": "ss", "ẞ": "SS", "æ": "ae", "Æ": "Ae", "œ": "oe", "Œ": "Oe", "ø": "o", "Ø": "O", "ł": "l", "Ł": "L"}
)
_INVISIBLE = dict.fromkeys(map(ord, "\u00ad\u200b\u200c\u200d\u2060\ufeff"))
_TYPOGRAPHY = {**_DASHES, **_APOSTROPHES, **_LETTERS, **_INVISIBLE}
_SHIFTED = "\u00b9\u00b2\u00b3\u2070\u2074-\u2079\u2080-\u2089"
_FRACTIONS = "\u00bc-\u00be\u2150-\u215e\u2189"
# NFKD would make 105 of 10\u2075 and 21/2 of 2\u00bd. After a letter a digit may join: m\u00b2 is m2.
_AFTER_NUMBER = (
    (re.compile(rf"(?<=\d)(?=[{_FRACTIONS}]|[{_SHIFTED}]+[\u2044/])"), " "),
    (re.compile(rf"(?<=\d)(?=[{_SHIFTED}]|[\u207a\u207b\u208a\u208b][{_SHIFTED}])"), "^"),
)
_UMLAUTS = {letter + "\u0308": composed for letter, composed in zip("aouAOU", "äöüÄÖÜ", strict=True)}
_BARE = str.maketrans("äöüÄÖÜ", "aouAOU")
_SPELLED_OUT = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue"})

_TOKEN = re.compile(
    r"""
    (?P<number>\d++(?:[.,:]\d++)*+(?![^\W_])(?![-/_&@+']\w|\^-?\d)(?:[ ]?%)?)   # 1,204.5   50 %   2:00
  | (?P<word>[^\W_]+(?:(?:[-_./:@&'+]|\^-?)[^\W_]+)*(?:\+\+|\#)?)   # SOP-IT-04   don't   R&D   C++   10^5
    """,
    re.VERBOSE,
)
_LETTERS_ONLY = re.compile(r"[^\W\d_]+")
_WITH_UMLAUT = re.compile(r"[^\W\d_]*[äöüÄÖÜ][^\W\d_]*")
# French and Italian elisions before a vowel.
_ELIDED = re.compile(
    r"^(?:[cdjlmnst]|qu|jusqu|lorsqu|puisqu|un|quell|quest|(?:a|da|de|ne|su)ll)'(?=\w{2})", re.IGNORECASE
)
_PART = re.compile(r"[A-Z]{2,}s(?![a-z])|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+(?:[.,]\d+)*|[^\W\dA-Za-z_]+")
_STEMMER = Stemmer.Stemmer("english", 0)


def analyze(text: str) -> list[str]:
    """Return the terms of a text, with repetitions; none contains whitespace."""
    plain = _fold_accents(text).replace("\u2044", "/")  # \u00bd also matches 1/2
    return [term for token in _TOKEN.finditer(plain) for term in _terms(*token.groups())]


def alphabetic_words(text: str) -> list[str]:
    """Return the purely alphabetic words in lower case, unstemmed, with accents; compounds in parts."""
    return _LETTERS_ONLY.findall(unicodedata.normalize("NFC", text).lower())


def index_terms(title: str, heading_path: Sequence[str], body: str) -> str:
    """Return the indexed text of a chunk: the terms of title, headings and body, space-separated.

    A caller may append the words of the file name to ``title``.
    """
    terms = TITLE_WEIGHT * analyze(title) + HEADING_WEIGHT * analyze(" ".join(heading_path)) + analyze(body)
    return " ".join(terms)


@dataclass(frozen=True, slots=True)
class TermSet:
    """The terms of a chunk, for membership tests: searching the string is faster than splitting it."""

    # All terms, with a blank before and after each.
    spaced: str

    @classmethod
    def of(cls, terms: str) -> Self:
        """Wrap the result of ``index_terms``."""
        return cls(f" {terms} ")

    def __contains__(self, term: object) -> bool:
        """True if the chunk contains the term."""
        return f" {term} " in self.spaced


def umlaut_spellings(text: str) -> dict[str, str]:
    """Return both terms of each word with an umlaut: folded -> spelled out, such as gross -> groess."""
    if text.isascii():
        return {}
    words = _WITH_UMLAUT.findall(_fold_accents(text))
    return {stem(word.translate(_BARE).casefold()): _spelled_out(word) for word in words}


def fold(text: str) -> str:
    """Remove accents, ligatures and invisible characters; unify hyphens and apostrophes."""
    return _fold_accents(text).translate(_BARE)


def _fold_accents(text: str) -> str:
    """Fold as ``fold`` does, except for umlauts."""
    if text.isascii():
        return text
    for place, mark in _AFTER_NUMBER:
        text = place.sub(mark, text)
    decomposed = unicodedata.normalize("NFKD", text.translate(_TYPOGRAPHY))
    for parts, umlaut in _UMLAUTS.items():
        decomposed = decomposed.replace(parts, umlaut)
    return "".join(char for char in decomposed if not unicodedata.combining(char))


def stem(word: str) -> str:
    """Return the Snowball English stem of a lower-case word."""
    return str(_STEMMER.stemWord(word))


@lru_cache(maxsize=50_000)
def _terms(number: str | None, word: str | None) -> tuple[str, ...]:
    """Return the terms of a number or a word; cached because stemming is slow and words repeat."""
    if word is None:
        found = _number_terms((number or "").replace(" ", ""))
    else:
        found = _word_terms(word) if word.isascii() else _spellings(word)
    return tuple(term[:MAX_TERM_CHARS] for term in found)


def _number_terms(number: str) -> Iterator[str]:
    """Yield a number as written, without its percent sign, and without separators: '1,204.5%'."""
    yield number
    plain = number.rstrip("%")
    if plain != number:
        yield plain
    if "," in plain:
        yield plain.replace(",", "")


def _spellings(word: str) -> Iterator[str]:
    """Yield both spellings of a word with an umlaut: 'Grosse' and 'Groesse' for 'Größe'."""
    yield from _word_terms(word.translate(_BARE))
    for part in _WITH_UMLAUT.findall(word):
        yield _spelled_out(part)


def _spelled_out(word: str) -> str:
    return stem(word.translate(_SPELLED_OUT).casefold())


def _word_terms(word: str) -> Iterator[str]:
    """Yield the stem of a plain word; of a compound or code the whole and each part."""
    if "'" in word:
        # 'employee's' is 'employee', 'don't' is 'dont', 'l'entreprise' is 'entreprise'
        word = re.sub(r"'[sS]\b", "", _ELIDED.sub("", word)).replace("'", "")
    yield _whole(word)
    parts = _PART.findall(word)
    if parts == [word] or (word.isalpha() and word.islower()):
        return
    joined = word.replace("-", "")
    if joined != word and joined.isalpha():
        yield _whole(joined)
    yield from (stem(part.casefold()) for part in parts)


def _whole(word: str) -> str:
    """Stem an alphabetic word; anything else is a code and stays whole. 'PPOs' becomes 'ppo'."""
    if len(word) > 2 and word[-1] == "s" and word[:-1].isupper():
        word = word[:-1]
    return stem(word.casefold()) if word.isalpha() else word.casefold()


@lru_cache(maxsize=10_000)
def phrase_terms(text: str) -> tuple[str, ...]:
    """Return the terms of a phrase; cached, for phrases that are searched repeatedly."""
    return tuple(analyze(text))


def contains_phrase(terms: Sequence[str], phrase: Sequence[str]) -> bool:
    """True if the terms of a phrase occur consecutively in a text."""
    if not phrase or phrase[0] not in terms:
        return False
    length = len(phrase)
    return any(tuple(terms[at : at + length]) == tuple(phrase) for at in range(len(terms) - length + 1))
