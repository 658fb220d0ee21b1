"""Keyword gate: selects the domains of approved web pages that a question may search.

A question with too few keywords searches no web page: a wrong page costs more trust than a missing one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from storage.text.analyzer import analyze, contains_phrase, phrase_terms
from storage.web_pages.web_sources import WebDomain

# Terms of consecutive words.
Phrase = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OpenedDomain:
    """A domain selected by a question's keywords."""

    domain: WebDomain
    # Matched keywords, as the admin wrote them.
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

    A hit is a keyword whose words occur in the question, after folding and stemming by the analyzer, or that
    is a glossary synonym of words in the question. Keywords that match the same words count as one hit.

    Args:
        question: text of the search query.
        domains: domains that the channel may open.
        synonyms: pairs of words of the question and their synonyms in the channel's glossary.
        hits: number of distinct hits that opens a domain.
        most: maximum number of domains.
    """
    if not domains:
        return ()
    terms = analyze(question)
    said = list(synonyms)
    found = [OpenedDomain(domain, _hits(terms, said, domain.keywords)) for domain in domains]
    opened = [one for one in found if len(one.keywords) >= hits]
    return tuple(sorted(opened, key=lambda one: -len(one.keywords))[:most])


def keyword_terms(domains: Iterable[WebDomain]) -> frozenset[str]:
    """Return the terms of all keywords of some domains, which spelling correction must leave alone."""
    return frozenset(
        term for domain in domains for keyword in domain.keywords for term in phrase_terms(keyword)
    )


def _hits(
    terms: Sequence[str], said: Sequence[tuple[Phrase, Phrase]], keywords: Iterable[str]
) -> tuple[str, ...]:
    """Return matching keywords, longest first, skipping those that overlap words already matched."""
    taken: set[tuple[str, ...]] = set()
    found: set[str] = set()
    for keyword in sorted(keywords, key=lambda one: -len(phrase_terms(one))):
        own = phrase_terms(keyword)
        named = (asked for asked, other in said if contains_phrase(other, own))
        asked = own if contains_phrase(terms, own) else next(named, None)
        if asked and not any(contains_phrase(one, asked) or contains_phrase(asked, one) for one in taken):
            taken.add(asked)
            found.add(keyword)
    return tuple(keyword for keyword in dict.fromkeys(keywords) if keyword in found)
