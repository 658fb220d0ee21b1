"""Our one text analysis: what is indexed and what is asked pass through it, whichever engine searches.

A text becomes terms without whitespace: lower case, accents folded, English words stemmed, numbers
and codes whole and in parts. Title, headings and body become one text of terms, weighted by repetition.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache

import Stemmer

TITLE_WEIGHT = 2
HEADING_WEIGHT = 1
LONGEST_TERM = 64
"""Longer runs are no words (base64, rulers); engines limit the size of a key."""

_DASHES = dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013\u2212\ufe58\ufe63\uff0d"), "-")
_APOSTROPHES = dict.fromkeys(map(ord, "\u2018\u2019\u02bc\uff07"), "'")
_INVISIBLE = dict.fromkeys(map(ord, "\u00ad\u200b\u200c\u200d\u2060\ufeff"))
_TYPOGRAPHY = {**_DASHES, **_APOSTROPHES, **_INVISIBLE}

_TOKEN = re.compile(
    r"""
    (?P<number>\d++(?:[.,:]\d++)*+(?![^\W_])(?![-/_&@+']\w)(?:[ ]?%)?)   # 1,204.5   50 %   2:00   10.0.0.1
  | (?P<word>[^\W_]+(?:[-_./:@&'+][^\W_]+)*(?:\+\+|\#)?)         # SOP-IT-04   don't   R&D   C++
    """,
    re.VERBOSE,
)
_PART = re.compile(r"[A-Z]{2,}s(?![a-z])|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+(?:[.,]\d+)*|[^\W\dA-Za-z_]+")
_STEMMER = Stemmer.Stemmer("english", 0)


def analyze(text: str) -> list[str]:
    """The terms of a text, repeated as they occur; none holds whitespace."""
    return [term[:LONGEST_TERM] for token in _TOKEN.finditer(fold(text)) for term in _terms(token)]


def index_terms(title: str, heading_path: Sequence[str], body: str) -> str:
    """What both engines index for one chunk: the terms of title, headings and body, space-separated.

    A caller may let the words of the file's name count as part of ``title``.
    """
    terms = TITLE_WEIGHT * analyze(title) + HEADING_WEIGHT * analyze(" ".join(heading_path)) + analyze(body)
    return " ".join(terms)


def fold(text: str) -> str:
    """Without accents, ligatures and invisible characters; one kind of hyphen and apostrophe."""
    if text.isascii():
        return text
    decomposed = unicodedata.normalize("NFKD", text.translate(_TYPOGRAPHY))
    return "".join(char for char in decomposed if not unicodedata.combining(char))


@lru_cache(maxsize=100_000)
def stem(word: str) -> str:
    """The Snowball English stem of a lower-case word; memoised, because it is slow."""
    return str(_STEMMER.stemWord(word))


def _terms(token: re.Match[str]) -> Iterator[str]:
    if token["number"]:
        return _number_terms(token["number"].replace(" ", ""))
    return _word_terms(token["word"])


def _number_terms(number: str) -> Iterator[str]:
    """'1,204.5%' is found as itself, without its percent sign, and without its separator."""
    yield number
    plain = number.rstrip("%")
    if plain != number:
        yield plain
    if "," in plain:
        yield plain.replace(",", "")


def _word_terms(word: str) -> Iterator[str]:
    """A plain word gives its stem; anything composed gives itself whole and each of its parts."""
    if "'" in word:
        word = _without_apostrophe(word)
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


def _without_apostrophe(word: str) -> str:
    """'employee's' is 'employee', 'don't' is 'dont'."""
    return re.sub(r"'[sS]\b", "", word).replace("'", "")
