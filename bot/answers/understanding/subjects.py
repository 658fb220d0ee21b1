"""Subject of a question, compared with the document that answers it.

A weak model reads the runway of one report as that of another, which shows in neither words nor facts.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Container, Sequence
from dataclasses import dataclass
from uuid import UUID

from bot.answers.understanding.answer_types import compares, spans_documents
from bot.answers.understanding.question_terms import QuestionTerms
from bot.core.models import AnalyzedQuestion, Evidence

# Joins two things, each of which may stand in a document of its own.
_JOINS = re.compile(
    r"(?<![\w'’-])(?:and|or|vs|versus|und|oder|et|ou|y|o|e|en)(?![\w'’-])|[?&].*\?", re.IGNORECASE | re.DOTALL
)

# How much more (0-1) of the question another document may cover than the cited ones.
COVERAGE_MARGIN = 0.1


@dataclass(frozen=True, slots=True)
class _Terms:
    """Terms of several passages."""

    parts: Sequence[Container[str]]

    def __contains__(self, term: object) -> bool:
        return any(term in part for part in self.parts)


def is_of_another_document(
    question: AnalyzedQuestion, evidence: Sequence[Evidence], cited: Collection[UUID]
) -> bool:
    """True if a document that is not cited covers the question clearly better than those that are.

    Never for a question of several things or documents, which may be answered from one each.
    """
    text = question.typed or question.text
    if _JOINS.search(text) or compares(text) or spans_documents(text):
        return False
    asked, passages = QuestionTerms(question), [item.passage for item in evidence]
    documents = {one.publication.document_id for one in passages}

    def coverage(chosen: Collection[UUID]) -> float:
        return asked.coverage(
            _Terms([one.terms for one in passages if one.publication.document_id in chosen])
        )

    least = coverage(cited) + COVERAGE_MARGIN
    return any(coverage({one}) >= least for one in documents.difference(cited))
