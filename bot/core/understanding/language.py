"""What a message is written in, by its function words.

A language that is not certain is None. A few words are enough, as in "wie lange?", and an English question is
never taken for another one: words that English shares with a language count for both.
"""

from __future__ import annotations

import re
from collections import Counter

from bot.core.models import Language, Question
from bot.core.understanding.language_lexicon import OTHER_WORDS, SMALL_WORDS
from storage.text.analyzer import fold

_TOKEN = re.compile(r"[^\W_]+(?:[-/.@][^\W_]+)*")
_SPANISH_MARK = re.compile(r"[¿¡]\w")
MIN_KNOWN_WORDS = 2
"""So many known words decide a language; in a text of at most three words, one is enough."""
MIN_UPPERCASE_WORDS = 2
"""A text of more words than this, all in capitals, is no abbreviation."""
MIN_LEAD_SHARE = 0.1
"""Share of a text's words that are known at least: one in a language that is not ours holds fewer."""


def _owners() -> dict[str, list[Language]]:
    owners: dict[str, list[Language]] = {}
    for language, words in SMALL_WORDS.items():
        for word in {*words.split(), *OTHER_WORDS.get(language, "").split()}:
            owners.setdefault(word, []).append(language)
    return owners


_OWNERS = _owners()


def language_of(text: str) -> Language | None:
    """The language of a text; None for one that does not show it, or is in none of ours."""
    words = _words(text)
    counts = Counter(owner for word in words for owner in _OWNERS.get(word, ()))
    counts.update(Language.SPANISH for _ in _SPANISH_MARK.finditer(text))
    ranked = counts.most_common(2)
    if not ranked or (len(ranked) == 2 and ranked[0][1] == ranked[1][1]):
        return None
    best, found = ranked[0]
    is_enough = found >= MIN_KNOWN_WORDS or len(words) <= 3
    return best if is_enough and found >= MIN_LEAD_SHARE * len(words) else None


def _words(text: str) -> list[str]:
    """The words, folded, without codes; capitals alone are an abbreviation: 'IT' is not 'it'."""
    tokens = [re.split("[-/]", token) for token in _TOKEN.findall(fold(text))]
    is_shouted = text.isupper() and len(tokens) > MIN_UPPERCASE_WORDS
    return [
        part.casefold()
        for parts in tokens
        if is_shouted or not any(map(_is_literal, parts))
        for part in parts
    ]


def _is_literal(part: str) -> bool:
    return not part.isalpha() or (part.isupper() and len(part) > 1)


def spoken_language(question: Question) -> Language | None:
    """What a question is in, else the questions of its thread before it, the newest first."""
    asked = (question.text, *(turn.question for turn in reversed(question.history)))
    return next(filter(None, map(language_of, asked)), None)
