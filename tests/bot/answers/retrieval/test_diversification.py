"""Diversification: passages alternate between documents if a question spans several."""

from __future__ import annotations

import pytest
from fakes.core import make_passage
from harness.tables import for_each

from bot.answers.retrieval.ranking import diversify
from bot.answers.understanding.answer_types import spans_documents
from bot.core.models import Passage


def found(*scores: tuple[str, float]) -> list[Passage]:
    """Return passages by file and score, as in a ranking."""
    return [
        make_passage(f"{file} {number}", file=file, ordinal=number, score=score)
        for number, (file, score) in enumerate(scores)
    ]


def files(passages: list[Passage]) -> list[str]:
    return [one.publication.file for one in passages]


@for_each(
    "question",
    [
        "Compare the deductible of Standard and Health Plus.",
        "what's the difference between the two plans?",
        "which of the three accidents happened at night?",
        "Do both procedures need gloves?",
        "is the copay higher in Plus or in Standard?",
        "Worin unterscheiden sich die beiden Pläne?",
    ],
)
def test_comparisons_span_documents(question: str) -> None:
    """Comparison questions are detected by their wording."""
    assert spans_documents(question)


@pytest.mark.parametrize(
    "question",
    ["How much is the copay?", "What must I wear in the field?", "When was the pilot's last flight?"],
)
def test_a_question_about_one_thing_spans_none(question: str) -> None:
    """Passages stay ordered by score."""
    assert not spans_documents(question)


def test_every_relevant_document_is_among_the_first() -> None:
    """The best passage of each document, then the second best, then poorly matching ones."""
    passages = found(("a", 0.9), ("a", 0.8), ("a", 0.7), ("b", 0.6), ("c", 0.5), ("b", 0.45), ("d", 0.1))
    assert files(diversify(passages)) == ["a", "b", "c", "a", "b", "a", "d"]


def test_two_named_documents_precede_all_others() -> None:
    """Shows it although a third document matches better."""
    passages = found(("a", 0.9), ("c", 0.8), ("c", 0.7), ("b", 0.3), ("a", 0.2))
    named = {one.publication.document_id for one in passages if one.publication.file in ("a", "b")}
    assert files(diversify(passages, named)) == ["a", "b", "a", "c", "c"]


def test_no_passage_is_lost_or_duplicated() -> None:
    """Only the order changes."""
    passages = found(("a", 0.9), ("b", 0.8), ("a", 0.7), ("b", 0.1), ("c", 0.05))
    assert sorted(diversify(passages), key=passages.index) == passages
    assert diversify([]) == []
