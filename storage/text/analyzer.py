"""Our one text analysis: what is indexed and what is asked pass through it, whichever engine searches.

A text becomes terms without whitespace: lower case, accents folded, English words stemmed, numbers
and codes whole and in parts; a word with an umlaut also as it is spelled without one. Title, headings and
body become one text of terms, weighted by repetition.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

import Stemmer

# Raise it when other terms are made of a text: what is indexed and what is asked would no longer meet.
ANALYZER = "terms-3"

TITLE_WEIGHT = 2
HEADING_WEIGHT = 1
# Longer runs are no words (base64, rulers); engines limit the size of a key.
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
# NFKD would make 105 of 10\u2075 and 21/2 of 2\u00bd. Behind a letter a digit may join: m\u00b2 is m2.
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
# What French and Italian write before a vowel.
_ELIDED = re.compile(
    r"^(?:[cdjlmnst]|qu|jusqu|lorsqu|puisqu|un|quell|quest|(?:a|da|de|ne|su)ll)'(?=\w{2})", re.IGNORECASE
)
_PART = re.compile(r"[A-Z]{2,}s(?![a-z])|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+(?:[.,]\d+)*|[^\W\dA-Za-z_]+")
_STEMMER = Stemmer.Stemmer("english", 0)


def analyze(text: str) -> list[str]:
    """Return the terms of a text, repeated as they occur; none holds whitespace."""
    plain = _fold_accents(text).replace("\u2044", "/")  # \u00bd is also found as 1/2
    return [term for token in _TOKEN.finditer(plain) for term in _terms(*token.groups())]


def words_of(text: str) -> list[str]:
    """The words of letters alone, in lower case, with accents and endings; parts of compounds singly."""
    return _LETTERS_ONLY.findall(unicodedata.normalize("NFC", text).lower())


def index_terms(title: str, heading_path: Sequence[str], body: str) -> str:
    """What both engines index for one chunk: the terms of title, headings and body, space-separated.

    A caller may let the words of the file's name count as part of ``title``.
    """
    terms = TITLE_WEIGHT * analyze(title) + HEADING_WEIGHT * analyze(" ".join(heading_path)) + analyze(body)
    return " ".join(terms)


@dataclass(frozen=True, slots=True)
class HeldTerms:
    """The terms of a chunk, asked for one by one: taking hundreds apart costs more than finding a few."""

    # All of them, a blank before and after each.
    spaced: str

    @classmethod
    def of(cls, terms: str) -> Self:
        """Those that ``index_terms`` made."""
        return cls(f" {terms} ")

    def __contains__(self, term: object) -> bool:
        """True if the chunk holds a term."""
        return f" {term} " in self.spaced


def spellings(text: str) -> dict[str, str]:
    """Of a text's words with an umlaut, both terms: folded -> spelled out, as gross -> groess."""
    if text.isascii():
        return {}
    words = _WITH_UMLAUT.findall(_fold_accents(text))
    return {stem(word.translate(_BARE).casefold()): _spelled_out(word) for word in words}


def fold(text: str) -> str:
    """Without accents, ligatures and invisible characters; one kind of hyphen and apostrophe."""
    return _fold_accents(text).translate(_BARE)


def _fold_accents(text: str) -> str:
    """Return all that ``fold`` does, but the umlauts are left."""
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
    """Return the terms of a token, which is either; memoised, because stems are slow and words come again."""
    if word is None:
        found = _number_terms((number or "").replace(" ", ""))
    else:
        found = _word_terms(word) if word.isascii() else _spellings(word)
    return tuple(term[:MAX_TERM_CHARS] for term in found)


def _number_terms(number: str) -> Iterator[str]:
    """'1,204.5%' is found as itself, without its percent sign, and without its separator."""
    yield number
    plain = number.rstrip("%")
    if plain != number:
        yield plain
    if "," in plain:
        yield plain.replace(",", "")


def _spellings(word: str) -> Iterator[str]:
    """'Größe' is found as 'Grosse', as which it is folded, and as 'Groesse', as which it is typed."""
    yield from _word_terms(word.translate(_BARE))
    for part in _WITH_UMLAUT.findall(word):
        yield _spelled_out(part)


def _spelled_out(word: str) -> str:
    return stem(word.translate(_SPELLED_OUT).casefold())


def _word_terms(word: str) -> Iterator[str]:
    """Yield a plain word gives its stem; anything composed gives itself whole and each of its parts."""
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
    """Letters alone are a word, which has a stem; everything else is a code. 'PPOs' is 'ppo'."""
    if len(word) > 2 and word[-1] == "s" and word[:-1].isupper():
        word = word[:-1]
    return stem(word.casefold()) if word.isalpha() else word.casefold()


@lru_cache(maxsize=10_000)
def phrase_terms(text: str) -> tuple[str, ...]:
    """Return the terms of a phrase that is looked for again and again."""
    return tuple(analyze(text))


def holds_phrase(terms: Sequence[str], phrase: Sequence[str]) -> bool:
    """True if the terms of a phrase stand in a text, one after the other."""
    if not phrase or phrase[0] not in terms:
        return False
    length = len(phrase)
    return any(tuple(terms[at : at + length]) == tuple(phrase) for at in range(len(terms) - length + 1))
