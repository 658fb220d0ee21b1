"""Text analysis: words, numbers, codes and typography become terms."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.text.analyzer import MAX_TERM_CHARS, analyze, index_terms

EXAMPLES = [
    ("Backups run daily", ["backup", "run", "daili"]),
    ("SOP-IT-04", ["sop-it-04", "sop", "it", "04"]),
    ("SOP\u2011IT\u201304", ["sop-it-04", "sop", "it", "04"]),
    ("1,204.5", ["1,204.5", "1204.5"]),
    ("50 % and 7%", ["50%", "50", "and", "7%", "7"]),
    ("2:00 AM", ["2:00", "am"]),
    ("2024-01-15", ["2024-01-15", "2024", "01", "15"]),
    ("version 2.1 v2.1", ["version", "2.1", "v2.1", "v", "2.1"]),
    ("BackupServer HTTPServer", ["backupserv", "backup", "server", "httpserver", "http", "server"]),
    ("well-known", ["well-known", "wellknown", "well", "known"]),
    ("e-mail email", ["e-mail", "email", "e", "mail", "email"]),
    ("PPOs", ["ppo"]),
    ("the employee\u2019s don't", ["the", "employe", "dont"]),
    ("r\u00e9sum\u00e9 \ufb01le stra\u00dfe", ["resum", "file", "strass"]),
    ("docu\u00adment", ["document"]),
    ("caf\u00e9 Cafe\u0301 cafe", ["cafe", "cafe", "cafe"]),
    ("Gr\u00f6\u00dfe", ["gross", "groess"]),
    ("Gro\u0308\u00dfe Groesse Grosse", ["gross", "groess", "groess", "gross"]),
    ("Gr\u00f6\u00dfen-Tabelle", ["grossen-tabelle", "grossentabell", "grossen", "tabell", "groessen"]),
    ("l\u2019entreprise d'un qu'est-ce", ["entrepris", "un", "est-ce", "estc", "est", "ce"]),
    ("nell'azienda aujourd'hui O'Neill", ["azienda", "aujourdhui", "oneil", "o", "neill"]),
    ("\u0153uvre oeuvre \u0141\u00f3d\u017a", ["oeuvr", "oeuvr", "lodz"]),
    ("C++ and C#", ["c++", "c", "and", "c#", "c"]),
    ("10.0.0.1/24", ["10.0.0.1/24", "10.0.0.1", "24"]),
    ("\u041f\u0440\u0438\u0432\u0435\u0442", ["\u043f\u0440\u0438\u0432\u0435\u0442"]),
    ("10\u2075 10^5", ["10^5", "10", "5", "10^5", "10", "5"]),
    ("14\u00b9 days", ["14^1", "14", "1", "day"]),
    ("10\u207b\u2075", ["10^-5", "10", "5"]),
    ("20 m\u00b2, H\u2082O", ["20", "m2", "m", "2", "h2o", "h", "2", "o"]),
    ("2\u00bd \u00bd 2\u00b9\u2044\u2082", ["2", "1/2", "1", "2", "1/2", "1", "2", "2", "1/2", "1", "2"]),
    ("\u2014 \u2026 ()", []),
]


@pytest.mark.parametrize(("text", "terms"), EXAMPLES, ids=[text for text, _ in EXAMPLES])
def test_a_text_becomes_these_terms(text: str, terms: list[str]) -> None:
    """Stems, codes whole and in parts, numbers with their separators."""
    assert analyze(text) == terms


@given(st.text())
def test_terms_hold_no_whitespace_and_are_never_empty(text: str) -> None:
    """Shows that both engines, which split at white space, index exactly our terms."""
    terms = analyze(text)
    assert " ".join(terms).split() == terms
    assert all(0 < len(term) <= MAX_TERM_CHARS for term in terms)


@given(st.from_regex(r"[A-Z]{2,4}(-[A-Z0-9]{1,4}){1,3}", fullmatch=True))
def test_a_code_is_one_term_in_any_case(code: str) -> None:
    assert analyze(code)[0] == analyze(code.lower())[0] == code.lower()


def test_the_title_counts_twice_and_the_headings_once() -> None:
    """Weight is repetition, so that one field serves both engines."""
    terms = index_terms("Backup policy", ("Scope",), "Servers").split(" ")
    assert terms == ["backup", "polici", "backup", "polici", "scope", "server"]
    assert index_terms("", (), "") == ""
