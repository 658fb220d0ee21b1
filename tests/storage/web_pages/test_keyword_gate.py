"""Keyword gate: a question opens the web pages of a domain only with enough of its keywords."""

from __future__ import annotations

import pytest

from storage.web_pages.keyword_gate import Phrase, opened_domains
from storage.web_pages.web_sources import WebDomain

TENANCY = WebDomain("tenancy", ("deposit", "landlord", "notice period", "rent"), ("https://x.org/a",))
REPAIRS = WebDomain("repairs", ("boiler", "heating", "landlord", "repair"), ("https://x.org/b",))


def opened(
    question: str, *synonyms: tuple[Phrase, Phrase], hits: int = 2, most: int = 2
) -> dict[str, tuple[str, ...]]:
    """Return the opened domains in their order, with the keywords that matched."""
    found = opened_domains(question, (TENANCY, REPAIRS), synonyms, hits=hits, most=most)
    return {one.domain.name: one.keywords for one in found}


@pytest.mark.parametrize(
    ("question", "keywords"),
    [
        ("When does my landlord return the deposit?", ("deposit", "landlord")),
        ("Landlords' DEPOSITS: how much?", ("deposit", "landlord")),
        ("What notice period does a landlord have?", ("landlord", "notice period")),
    ],
)
def test_two_keywords_open_a_domain(question: str, keywords: tuple[str, ...]) -> None:
    """Words are compared folded and stemmed, phrases whole."""
    assert opened(question) == {"tenancy": keywords}


@pytest.mark.parametrize(
    "question",
    [
        "Where is the deposit?",
        "deposit, deposits and depositing",
        "How long is the parental leave?",
        "Who reported the current different parents?",
        "What period of notice? The landlady asks.",
        "",
    ],
)
def test_fewer_hits_open_no_domain(question: str) -> None:
    """A repeated keyword, a part of a word or of a phrase is no second hit."""
    assert opened(question) == {}


def test_glossary_synonyms_count_as_keywords() -> None:
    entry = (("caution", "money"), ("deposit",))
    assert opened("Can a landlord keep caution money?") == {}
    assert opened("Can a landlord keep caution money?", entry) == {"tenancy": ("deposit", "landlord")}


def test_a_word_hits_once_however_many_keywords_match_it() -> None:
    """A keyword and its synonym, or a phrase and its part, are one hit."""
    domain = WebDomain("d", ("rent", "rental", "monthly rent", "lease"), ("https://x.org/",))
    question = "How high is the monthly rent?"
    synonyms = [(("rent",), ("leas",))]
    assert opened_domains(question, (domain,), synonyms) == ()


def test_domains_are_ordered_by_hits() -> None:
    """Shows the order of two domains, and the limit of opened domains."""
    question = "Must my landlord repair the heating before I pay rent?"
    assert list(opened(question)) == ["repairs", "tenancy"]
    assert list(opened(question, most=1)) == ["repairs"]
    assert list(opened(question, hits=3)) == ["repairs"]
