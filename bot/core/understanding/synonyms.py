"""Widens a question by its channel's glossary: other words that say the same, at a lower weight."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import permutations

from bot.core.models import Synonym
from storage.chat_models import GlossaryEntry
from storage.text.analyzer import analyze

OWN_WEIGHT = 2
"""How often each term of the question itself is searched for, and each other word once."""

MAX_SYNONYMS = 24
"""A glossary that has more for one question is not followed any further."""


def find_synonyms(
    question: str, entries: Iterable[GlossaryEntry], *, is_wide: bool = False
) -> tuple[Synonym, ...]:
    """What the glossary has for the words of a question, in its own order.

    ``is_wide``: every entry counts in both directions.
    """
    terms = analyze(question)
    found: dict[tuple[str, ...], Synonym] = {}
    for asked, said in _pairs(entries, is_wide):
        if _follow(terms, asked_terms := _terms(asked)) and not _follow(terms, said_terms := _terms(said)):
            found.setdefault(said_terms, Synonym(asked_terms, said_terms, said))
    return tuple(found.values())[:MAX_SYNONYMS]


def searched_terms(terms: Sequence[str], synonyms: Sequence[Synonym]) -> tuple[str, ...]:
    """The terms to search for: the question's own, which weigh more, and those of its synonyms."""
    if not synonyms:
        return tuple(terms)
    others = dict.fromkeys(term for synonym in synonyms for term in synonym.said)
    return (*OWN_WEIGHT * tuple(terms), *(term for term in others if term not in terms))


def embedded_text(question: str, synonyms: Sequence[Synonym]) -> str:
    """The text whose meaning is searched for."""
    return f"{question} ({', '.join(synonym.text for synonym in synonyms)})" if synonyms else question


def synonym_matches(held: Container[str], synonyms: Iterable[Synonym]) -> frozenset[str]:
    """The question's terms that a text with the terms ``held`` says in other words."""
    said = (synonym for synonym in synonyms if all(term in held for term in synonym.said))
    return frozenset(term for synonym in said for term in synonym.asked)


def _pairs(entries: Iterable[GlossaryEntry], is_wide: bool) -> Iterator[tuple[str, str]]:
    """(what is asked, what it may be called instead)."""
    for entry in entries:
        if entry.is_mutual or is_wide:
            yield from permutations((entry.term, *entry.words), 2)
        else:
            yield from ((entry.term, word) for word in entry.words)


@lru_cache(maxsize=10_000)
def _terms(text: str) -> tuple[str, ...]:
    return tuple(analyze(text))


def _follow(terms: Sequence[str], phrase: Sequence[str]) -> bool:
    """Whether the terms of a phrase stand in a text, one after the other."""
    if not phrase or phrase[0] not in terms:
        return False
    length = len(phrase)
    return any(tuple(terms[at : at + length]) == tuple(phrase) for at in range(len(terms) - length + 1))
