"""Explanation of an answer: its question record in words, in every language."""

from __future__ import annotations

from typing import Any

from harness.tables import for_each

from bot.chat.conversation.explanation import MAX_EXPLAINED, explain
from bot.core.models import Language
from bot.core.wording import reply_words


def candidate(rank: int | None, fate: str, score: float) -> dict[str, object]:
    return {"file": f"hr/p{rank}.pdf", "page": rank or 9, "rank": rank, "outcome": fate, "score": score}


SEARCH: dict[str, Any] = {
    "corrections": [["restroe", "restore"]],
    "unknown": ["overtime"],
    "verdict": {"probability": 0.734},
    "candidates": [
        candidate(None, "rank too low", 0.2),
        candidate(None, "repeats hr/p1.pdf p. 1", 0.7),
        candidate(2, "not in the top 1", 0.5),
        candidate(1, "read", 0.9),
    ],
}
RECORD: dict[str, Any] = {
    "searched": "Who approves a restore?",
    "searches": [SEARCH],
    "drafts": [{"claims": [{"fault": "not held"}, {"fault": None}]}],
}


def test_it_lists_searched_found_and_rejected_passages() -> None:
    """Shows every line, the best passage first."""
    assert explain(RECORD, reply_words(Language.ENGLISH)).splitlines() == [
        "I searched for: Who approves a restore?",
        "Spelling corrected: restore",
        "No document mentions: overtime",
        "Confidence: 73%",
        "Closest passages:",
        "• p. 1 · p1.pdf: close, used",
        "• p. 2 · p2.pdf: less close, left out because others were closer",
        "• p. 9 · pNone.pdf: far off, left out because others were closer",
        "• p. 9 · pNone.pdf: close, left out because another one says the same",
    ]


@for_each("language", Language)
def test_an_answer_without_a_search_has_one_line(language: Language) -> None:
    """Shows the sentence in each language, and that only some of many passages are listed."""
    words = reply_words(language)
    asked = explain(RECORD | {"searches": []}, words)
    assert asked == words.why_asked(question="Who approves a restore?")
    many = SEARCH | {"candidates": [candidate(n, "read", 0.9) for n in range(1, 20)]}
    assert explain(RECORD | {"searches": [many]}, words).count("•") == MAX_EXPLAINED
