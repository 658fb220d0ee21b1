"""Questions about two alternatives at their end: "which takes longer, A or B?"."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from bot.answers.understanding.question_terms import FUNCTION_TERMS
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


def find_comparatives(text: str) -> frozenset[str]:
    """Return the terms of a text that compare two things, as "longer"."""
    return _COMPARATIVES.intersection(analyze(text))


def _content(text: str) -> set[str]:
    return set(analyze(text)) - FUNCTION_TERMS
