"""Checks the facts of a model's sentence against the places that it rests on.

Facts are what a program decides better than a reader in a hurry: numbers with their units, days, codes,
addresses, and whether something is denied or excluded. A fact may be said in another form, follow by simple
arithmetic, or be one of the question. Words that differ are no fault: meaning is judged elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence

from bot.core.models import AnalyzedQuestion
from bot.core.verification.contradiction import find_contradiction, split_answer
from bot.core.verification.facts import unsupported
from bot.core.verification.marks import Mark


def find_false_fact(sentence: str, marks: Sequence[Mark], question: AnalyzedQuestion) -> str | None:
    """Find a fact that neither the marked places nor the question state, or that they deny.

    Args:
        sentence: as plain text.
        marks: the places that it rests on, each with its lead or header.
        question: whose own numbers and names a sentence may repeat.
    """
    sources = [text for one in marks for text in one.sources()]
    missing = unsupported(sentence, [*sources, question.typed, question.text])
    if missing:
        return f"{', '.join(missing)}: not in its quotes"
    answer, _ = split_answer(sentence)
    quotes = [quote for one in marks for quote in one.located()]
    return None if answer == "no" else find_contradiction(sentence, quotes)
