"""Quality targets: of a channel's weekly metrics, and of the measures of labelled questions.

``footnote quality`` and the console check the former against records of questions, ``make eval`` the latter
against answers to its own questions.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass

_HOLDS = {">=": operator.ge, "<=": operator.le}


@dataclass(frozen=True, slots=True)
class Limit:
    """A target value and the side on which it is met."""

    # ``>=`` or ``<=``.
    sign: str
    value: float

    def is_met(self, value: float) -> bool:
        """True if a value meets the target; NaN, for one that could not be measured, does not."""
        holds: bool = _HOLDS[self.sign](value, self.value)
        return holds

    def __str__(self) -> str:
        return f"{self.sign} {self.value:g}"


def at_least(value: float) -> Limit:
    """Return a lower limit."""
    return Limit(">=", value)


def at_most(value: float) -> Limit:
    """Return an upper limit."""
    return Limit("<=", value)


# Metric of ``bot.quality.quality_metrics`` -> target. None for answers: one that rewards answering would
# reward answering what the documents do not say.
CHANNEL_TARGETS: Mapping[str, Limit] = {"seconds": at_most(10)}

# Figure of the answers to labelled questions -> target. First guesses: no real channel was measured.
FIGURE_TARGETS: Mapping[str, Limit] = {
    "documents in the top five": at_least(1.2),
    "figures on a cited page": at_least(0.80),
    "seconds to an answer": at_most(10),
}

# Measure of labelled questions -> target, for answers that only quote (no model).
QUOTE_TARGETS: Mapping[str, Limit] = {
    "off subject, plain no": at_least(0.85),
    "absent here, plain no": at_least(0.50),
    "answerable, right page shown": at_least(0.90),
    "answerable, right page shown or linked": at_least(0.95),
    "first citation on a right page": at_least(0.78),
    "answer contained": at_least(0.65),
    "characters a reply": at_most(600),
    "misspelt: hit@5 lost": at_most(0.05),
}
# The same, for answers written by a model.
MODEL_TARGETS: Mapping[str, Limit] = {
    "answerable claimed": at_least(0.95),
    "off subject claimed": at_most(0.05),
    "absent here claimed": at_most(0.15),
}
# Share of the quoted words that are highlighted on their page.
MARKED_WORDS = at_least(0.98)
# Highlights that cover other words than the quoted ones.
MISPLACED_MARKS = at_most(0)
