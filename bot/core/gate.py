"""Decides before anybody writes whether the evidence can answer at all.

Likeness of meaning, with the share of the question's idf weight that a passage covers, was the steadiest
signal for questions off the subject; it runs before a model too, because a model invents.
"""

from __future__ import annotations

from collections.abc import Sequence

from bot.core.asking import QuestionTerms
from bot.core.models import AnalyzedQuestion, Evidence, Passage

COVERAGE = 0.3
"""What covering all of a question's words adds to a cosine."""


class EvidenceGate:
    """Lets a question through when one passage is near enough to it."""

    def __init__(
        self, *, least_likeness: float = 0.35, enough_coverage: float = 0.6, least_words: float = 0.35
    ) -> None:
        """Nothing is asked here yet.

        Args:
            least_likeness: of cosine and weighed coverage together; measured for the bundled embedder.
            enough_coverage: opens by itself, so that codes and names count without any meaning.
            least_words: coverage of a passage that has no vector to compare.
        """
        self._least_likeness = least_likeness
        self._enough_coverage = enough_coverage
        self._least_words = least_words

    def opens(self, question: AnalyzedQuestion, evidence: Sequence[Evidence]) -> bool:
        """Whether an answer may be written from this evidence."""
        wordings = [QuestionTerms(wording) for wording in (question, *question.wordings)]
        return any(self._is_enough(asked, item.passage) for asked in wordings for item in evidence)

    def _is_enough(self, asked: QuestionTerms, passage: Passage) -> bool:
        coverage = asked.coverage(passage.terms)
        if passage.vector is None:
            return coverage >= self._least_words
        is_like = passage.vector + COVERAGE * coverage >= self._least_likeness
        return is_like or coverage >= self._enough_coverage
