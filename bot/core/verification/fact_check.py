"""Checks the facts of a sentence against its quotes."""

from __future__ import annotations

from collections.abc import Sequence

from bot.core.models import AnalyzedQuestion, LocatedQuote
from bot.core.verification.contradiction import find_contradiction
from bot.core.verification.facts import unsupported


def find_false_fact(sentence: str, quotes: Sequence[LocatedQuote], question: AnalyzedQuestion) -> str | None:
    """Find what is wrong with the facts of a sentence."""
    missing = unsupported(sentence, [one.passage.text for one in quotes])
    if missing:
        return f"{missing} not in quotes"
    return find_contradiction(sentence, quotes)
