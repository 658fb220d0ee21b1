"""What having an answer written needs from the rooms around it, and offers to them; satisfied by shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from bot.core.models import AnalyzedQuestion, Claim, Draft, Evidence

OnClaim = Callable[[Claim], None]
"""Told each sentence of a draft as soon as it and its quotes are complete."""


class QuoteAnswerer(Protocol):
    """Answers with the documents' own words."""

    async def draft(self, question: AnalyzedQuestion, evidence: Sequence[Evidence]) -> Draft:
        """A draft of quotes from numbered evidence."""


class Generator(Protocol):
    """Answers in words of its own, as a language model does."""

    async def draft(
        self,
        question: AnalyzedQuestion,
        evidence: Sequence[Evidence],
        faults: Sequence[str] = (),
        *,
        stands: Sequence[str] = (),
        on_claim: OnClaim | None = None,
    ) -> Draft:
        """Answer from numbered ``evidence`` alone.

        Args:
            question: what is asked.
            evidence: what may be quoted.
            faults: what was wrong with the last draft.
            stands: sentences of an earlier draft that are proven; only what they do not say is wanted.
            tell: what was told before an error belongs to no draft.

        Raises:
            bot.core.errors.ModelError: the model failed, was cut off or wrote nothing usable.
        """


class AnswerListener(Protocol):
    """Shows a person who waits how far their answer has come."""

    def show(self, text: str) -> None:
        """The sentences that are proven so far, with their [n]; the answer's text will begin with them.

        Returns at once, whatever becomes of it.
        """
