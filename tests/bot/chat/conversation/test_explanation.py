"""Explanation of an answer: its question record in at most three sentences, in every language."""

from __future__ import annotations

from typing import Any

from harness.tables import for_each

from bot.chat.conversation.explanation import explain
from bot.core.models import Language
from bot.core.wording import reply_words


def candidate(rank: int | None, score: float) -> dict[str, object]:
    return {"file": f"hr/p{rank}.pdf", "page": rank or 9, "rank": rank, "outcome": "read", "score": score}


SEARCH: dict[str, Any] = {
    "corrections": [["restroe", "restore"]],
    "unknown": [],
    "verdict": {"probability": 0.734},
    "candidates": [candidate(None, 0.2), candidate(2, 0.5), candidate(1, 0.9)],
}
RECORD: dict[str, Any] = {"searched": "Who approves a restore?", "searches": [SEARCH], "citations": []}


def test_it_says_what_was_searched_and_used_and_how_sure_it_is() -> None:
    """An answer names the pages that it cites, each once; a plain no the closest page or unknown words."""
    words = reply_words(Language.ENGLISH)
    cited = [{"file": f"hr/p{page}.pdf", "page": page} for page in (1, 1, 2, 3, 4)]
    cited[1] |= {"file": "https://x.example/a", "page": None}
    assert explain(RECORD | {"citations": cited}, words) == (
        "I searched for “Who approves a restore?”. I used page 1 of “p1.pdf”, x.example, page 2 of "
        "“p2.pdf” and 2 more. I’m 73% sure that this answers your question."
    )
    unknown = RECORD | {"searches": [SEARCH | {"unknown": ["overtime"]}]}
    assert explain(unknown, words) == (
        "I searched for “Who approves a restore?”. The closest page was page 1 of “p1.pdf”, but it doesn’t "
        "clearly answer this. No document mentions “overtime”."
    )


@for_each("language", Language)
def test_an_answer_without_a_search_has_one_sentence(language: Language) -> None:
    """Shows the sentence in each language."""
    words = reply_words(language)
    asked = explain(RECORD | {"searches": []}, words)
    assert asked == words.why_asked(question="Who approves a restore?")
