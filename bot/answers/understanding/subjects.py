"""The subject of a question: two alternatives at its end, or what one document is about.

A weak model reads the runway of one report as that of another, or finds one of two things the longer one
without having read of the other. Words alone do not show that.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from uuid import UUID

from bot.answers.understanding.question_terms import FUNCTION_TERMS, QuestionTerms
from bot.core.models import AnalyzedQuestion, Evidence
from storage.text.analyzer import analyze

# Dutch "of" is English, too.
_ALTERNATIVES = re.compile(
    r"(?P<asked>\S.*?)[,:]\s+(?P<one>[^,:?]+?)\s+(?:or|vs\.?|versus|oder|ou|o)\s+(?P<other>[^,:?]+)\?*",
    re.IGNORECASE,
)
# Of two things one is "longer"; words such as "paper" and "Mutter" only look so, hence no pattern.
_COMPARATIVES = frozenset(
    analyze(
        "more less fewer longer shorter higher lower taller deeper wider bigger larger greater smaller older"
        " newer younger earlier later sooner faster quicker slower cheaper dearer heavier lighter stronger"
        " weaker better worse safer stricter warmer hotter colder nearer closer further farther"
        " mehr weniger langer kurzer hoher grosser kleiner plus moins mas menos piu meno mais meer minder"
    )
)
# Joins two things, each of which may stand in a document of its own.
_JOINS = re.compile(r"\b(?:and|or|vs|versus|und|oder|et|ou|y|o|e|en)\b|\?.*\?", re.IGNORECASE | re.DOTALL)

# How much more (0-1) of the question another document may cover than the cited ones.
COVERAGE_MARGIN = 0.1


@dataclass(frozen=True, slots=True)
class Alternatives:
    """A question, and the two things of which it is asked."""

    asked: str
    sides: tuple[str, str]

    def are_both_in(self, terms: Collection[str]) -> bool:
        """True if these terms include most of those that each side has alone."""
        one, other = map(_content, self.sides)
        return all(
            2 * len(names & set(terms)) > len(names) or not names for names in (one - other, other - one)
        )


def find_alternatives(question: str) -> Alternatives | None:
    """Return the alternatives that a question ends with; None if there are none, as in "..., or not?"."""
    found = _ALTERNATIVES.fullmatch(question.strip())
    if found and _content(found["one"]) and _content(found["other"]):
        return Alternatives(found["asked"], (found["one"], found["other"]))
    return None


def is_of_another_document(
    question: AnalyzedQuestion, evidence: Sequence[Evidence], cited: Collection[UUID]
) -> bool:
    """True if a document of the evidence covers the question, if it is of one thing, clearly better."""
    if _JOINS.search(question.typed or question.text):
        return False
    asked = QuestionTerms(question)
    covered, others = set[str](), defaultdict[UUID, set[str]](set)
    for passage in (item.passage for item in evidence):
        document = passage.publication.document_id
        held = covered if document in cited else others[document]
        held.update(term for term in asked.weights if term in passage.terms)
    least = asked.coverage(covered) + COVERAGE_MARGIN
    return any(asked.coverage(terms) >= least for terms in others.values())


def is_one_sided(question: AnalyzedQuestion, sentence: str, held: Collection[str]) -> bool:
    """True if a sentence compares two alternatives by sources with these terms, which name one of them.

    It compares if it repeats the comparative of the question, which no source says.
    """
    alternatives = find_alternatives(question.typed or question.text)
    if alternatives is None or alternatives.are_both_in(held):
        return False
    compared = _COMPARATIVES.intersection(analyze(alternatives.asked)).difference(held)
    return not compared.isdisjoint(analyze(sentence))


def _content(text: str) -> set[str]:
    return set(analyze(text)) - FUNCTION_TERMS
