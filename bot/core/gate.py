"""Decides before anybody writes whether the evidence can answer at all.

The share of the question's idf weight that the best passages cover was the steadiest signal for
questions that the documents do not answer; it runs before a model too, because a model invents.
"""

from __future__ import annotations

from collections.abc import Sequence

from bot.core.asking import Asked
from bot.core.models import AnalyzedQuestion, Evidence, Passage
from storage.analyzer import analyze


class CoverageGate:
    """Lets a question through when one passage covers enough of it, by words or by words and meaning."""

    def __init__(self, *, least_coverage: float = 0.6, least_sum: float = 0.95) -> None:
        """The least share of the question's idf weight, and the least sum of that share and the cosine."""
        self._least_coverage = least_coverage
        self._least_sum = least_sum

    def opens(self, question: AnalyzedQuestion, evidence: Sequence[Evidence]) -> bool:
        """Whether an answer may be written from this evidence."""
        asked = Asked(question)
        return any(self._is_enough(asked, item.passage) for item in evidence)

    def _is_enough(self, asked: Asked, passage: Passage) -> bool:
        coverage = asked.coverage(_terms(passage))
        return coverage >= self._least_coverage or coverage + (passage.vector or 0.0) >= self._least_sum


def _terms(passage: Passage) -> list[str]:
    """All that says what a passage is about: its document's title, its headings, its text."""
    return analyze("\n".join((passage.publication.title, *passage.heading_path, passage.text)))
