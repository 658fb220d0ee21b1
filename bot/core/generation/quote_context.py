"""What a quote is not understood without: a sentence that opens with "These" needs the one before it."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import takewhile

from storage.text.analyzer import fold
from storage.text.sentences import Quotable, split_units

MAX_CONTEXT_CHARS = 300
"""A quote is led in by no more than this."""

_POINTING = frozenset(
    """
    it its this these that those they them their he him his she her such
    dies diese diesem diesen dieser dieses jene jener
    elle ils elles ce cet cette ces celui celle ceux celles
    este esta estos estas ese esa esos esas ello ellos ellas
    questo questa questi queste esso essa essi esse
    ele ela eles elas estes esse essa esses essas isso isto
    dit deze zij hij
    """.split()
)
"""Words that stand for something named before, where they open a sentence."""

_WORD = re.compile(r"\W*([^\W\d_]+)")
_NAMES_NOTHING = re.compile(
    r"\W*(?:it|that|this)(?:['’]s|\s+is)\s+(?:\w+\s+){1,3}(?:to|that|why)\b", re.IGNORECASE
)
"""As "It is also important to note"."""


def with_subject(text: str, quote: Quotable) -> Quotable:
    """The quote from where what it speaks of is named.

    The sentences before it are taken along as long as it opens with a word that points back; a row stands by
    itself.

    Args:
        text: the passage.
        quote: a part of it.
    """
    start = quote.start
    before = [] if quote.is_row else list(takewhile(lambda unit: unit.end <= start, split_units(text)))
    while before and not before[-1].is_row and _points_back(text[start : quote.end]):
        if start - before[-1].start > MAX_CONTEXT_CHARS:
            break
        start = before.pop().start
    return quote if start == quote.start else replace(quote, start=start, text=text[start : quote.end])


def _points_back(sentence: str) -> bool:
    word = _WORD.match(fold(sentence).lower())
    return word is not None and word[1] in _POINTING and not _NAMES_NOTHING.match(sentence)
