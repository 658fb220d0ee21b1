"""How much of a question a passage must cover before an answer is written from it."""

from __future__ import annotations

import pytest
from fakes.core import BACKUPS, TRAVEL, ask, make_evidence, make_passage

from bot.core.retrieval.evidence import EvidenceGate
from bot.core.understanding.question_terms import QuestionTerms


@pytest.mark.parametrize(
    ("question", "coverage", "vector", "opens"),
    [
        ("failed backup repeated", 1.0, 0.0, True),
        ("backup repeated hours Neptune", 0.54, 0.0, False),
        ("backup repeated hours Neptune", 0.54, 0.2, True),
        ("failed backup Neptune Saturn", 0.28, 0.2, False),
        ("failed backup Neptune", 0.44, None, True),
        ("failed backup Neptune Saturn", 0.28, None, False),
    ],
)
def test_the_gate_opens_at_its_coverage_and_not_below(
    question: str, coverage: float, vector: float | None, *, opens: bool
) -> None:
    """Shows that words open it alone from 0.6 on, with likeness earlier, without vectors from 0.35."""
    asked, passage = ask(question, BACKUPS, TRAVEL), make_passage(BACKUPS, vector=vector)
    assert QuestionTerms(asked).coverage(passage.terms) == pytest.approx(coverage, abs=0.01)
    assert EvidenceGate().opens(asked, make_evidence(passage)) is opens
