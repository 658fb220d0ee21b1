"""Whether a question leans on the thread before it: by how it opens, by a pronoun, or by having few words."""

from __future__ import annotations

import re

from bot.core.understanding.question_terms import FUNCTION_TERMS, exact_words
from storage.text.analyzer import analyze, fold

_WORD = re.compile(r"[^\W_]+(?:[-_./&+][^\W_]+)*")
_CLIPPED = re.compile(r"(?<=\w)['’](?:s|re|ll|d|ve|m)\b|n['’]t\b")
_CONTRAST = re.compile(
    r"^\W*(?:(?:ok(?:ay)?|thanks?|thank you|great|so|well|yes|no|oh|danke|merci|gracias)[\s,.!]+)*"
    r"(?P<opener>(?:and|but|or|also|und|aber|et|mais|y|pero)\b[\s,]+"
    r"|(?:(?:and|und|et|y)\s+)?(?:what about|how about|same for|was ist mit|qu'en est-il de|que tal)\b)\s*",
    re.IGNORECASE,
)
"""Openers behind which only what is different follows: "and for contractors?"."""
_PRONOUNS = frozenset(
    """
    it its they them their theirs he him his she her hers davon dafur damit dazu daruber dieser dieses
    il elle ils elles cela ca ello eso esto
    """.split()
)
NAMING_WORDS = 2
"""A pronoun behind so many content words of its own question may mean one of them."""
ENOUGH_WORDS = 3
"""A question of fewer content words says too little by itself, unless one is a name or a code."""


def opens_contrast(text: str) -> re.Match[str] | None:
    """The opener of a question that says only what is different from the one before it."""
    return _CONTRAST.match(fold(text))


def leans_on_thread(text: str) -> bool:
    """Whether a question of a thread needs it to be understood."""
    if opens_contrast(text):
        return True
    words = _words(text)
    pointing = [place for place, word in enumerate(words) if _is_pronoun(word)]
    if any(len(_naming(words[:place])) < NAMING_WORDS for place in pointing):
        return True
    is_named = any(len(word) > 1 for word in exact_words(text))
    return len(_naming(words)) < ENOUGH_WORDS and not is_named


def content_words(text: str) -> list[str]:
    """The words that name something, as written."""
    return _naming(_words(text))


def _is_pronoun(word: str) -> bool:
    return fold(word).lower() in _PRONOUNS and not (len(word) > 1 and word.isupper())


def _naming(words: list[str]) -> list[str]:
    return [word for word in words if not set(analyze(word)) <= FUNCTION_TERMS]


def _words(text: str) -> list[str]:
    return _WORD.findall(_CLIPPED.sub(" ", text))
