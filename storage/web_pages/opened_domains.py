"""Which domains of approved web pages a question opens: those of which it holds enough keywords.

Too few hits, and the web has no part in a question: a wrong page costs more trust than a missing one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from storage.text.analyzer import analyze, holds_phrase, phrase_terms
from storage.web_pages.web_sources import WebDomain

# Terms of words that follow one another.
Phrase = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OpenedDomain:
    """A domain that a question opens."""

    domain: WebDomain
    # Those that the question holds, as the admin wrote them.
    keywords: tuple[str, ...]


def opened_domains(
    question: str,
    domains: Sequence[WebDomain],
    synonyms: Iterable[tuple[Phrase, Phrase]] = (),
    *,
    hits: int = 2,
    most: int = 2,
) -> tuple[OpenedDomain, ...]:
    """Return the domains that a question opens, those with the most hits first.

    A hit is a keyword whose words stand whole in the question, as the analyzer folds and stems them, or that
    the glossary has for words of the question. Keywords of the same words of the question are one hit.

    Args:
        question: its text, as it is searched for.
        domains: those that its channel may open.
        synonyms: words of it, and what else they are called in its channel, as the glossary says.
        hits: how many distinct ones open a domain.
        most: domains opened.
    """
    if not domains:
        return ()
    terms = analyze(question)
    said = list(synonyms)
    found = [OpenedDomain(domain, _hits(terms, said, domain.keywords)) for domain in domains]
    opened = [one for one in found if len(one.keywords) >= hits]
    return tuple(sorted(opened, key=lambda one: -len(one.keywords))[:most])


def keyword_terms(domains: Iterable[WebDomain]) -> frozenset[str]:
    """Return the terms of all keywords of some domains: no question misspells these."""
    return frozenset(
        term for domain in domains for keyword in domain.keywords for term in phrase_terms(keyword)
    )


def _hits(
    terms: Sequence[str], said: Sequence[tuple[Phrase, Phrase]], keywords: Iterable[str]
) -> tuple[str, ...]:
    """Return the keywords that hit, none of words that another one hit already; longer ones come first."""
    taken: set[tuple[str, ...]] = set()
    found: set[str] = set()
    for keyword in sorted(keywords, key=lambda one: -len(phrase_terms(one))):
        own = phrase_terms(keyword)
        named = (asked for asked, other in said if holds_phrase(other, own))
        asked = own if holds_phrase(terms, own) else next(named, None)
        if asked and not any(holds_phrase(one, asked) or holds_phrase(asked, one) for one in taken):
            taken.add(asked)
            found.add(keyword)
    return tuple(keyword for keyword in dict.fromkeys(keywords) if keyword in found)
