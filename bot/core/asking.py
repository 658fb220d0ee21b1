"""What a question asks for, taken apart once for all the texts it is compared with."""

from __future__ import annotations

import re
from collections.abc import Iterable

from bot.core.answer_kinds import fitting_answers
from bot.core.function_words import FUNCTION_TERMS
from bot.core.models import AnalyzedQuestion

_YEAR = re.compile(r"\b(?:19|20)\d{2}\b")


class Asked:
    """A question's content words, the years it names, and the kinds of answer that fit."""

    def __init__(self, question: AnalyzedQuestion) -> None:
        content = {term: idf for term, idf in question.idf.items() if term not in FUNCTION_TERMS}
        self.weights = content or dict(question.idf)
        """Content term -> idf; a question of function words alone is judged by all its words."""
        self._years = frozenset(_YEAR.findall(question.text))
        self._fitting = fitting_answers(question.text)

    def coverage(self, terms: Iterable[str]) -> float:
        """Share (0-1) of the question's idf weight that a text's terms cover."""
        held = set(terms)
        total = sum(self.weights.values())
        return sum(idf for term, idf in self.weights.items() if term in held) / total if total else 0.0

    def fit(self, text: str) -> float:
        """Share (0-1) of the kinds of answer asked for that a text could be; 0 when none is known."""
        return sum(bool(answer.search(text)) for answer in self._fitting) / max(len(self._fitting), 1)

    def contradicts(self, text: str) -> bool:
        """The text speaks of years, and of none that the question names."""
        named = set(_YEAR.findall(text))
        return bool(self._years and named and not self._years & named)
