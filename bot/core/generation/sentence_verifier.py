"""Verifies a model's sentences: facts by the program, meaning by a judge, words where there is none.

A sentence that is a quote needs no judge. All others of an answer whose facts hold are judged in one call;
where that call fails, the words of sentence and sources decide.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from bot.core.errors import ModelError
from bot.core.generation.entailment import Entailment, find_formal_fault
from bot.core.models import AnalyzedQuestion, Claim, Draft, Evidence, LocatedQuote, QuotedSentence
from bot.core.ports import SentenceJudge
from bot.core.verification.claims import (
    JudgedClaim,
    VerifiedClaim,
    VerifiedDraft,
    distinct,
    locate_all,
    plain_sentence,
    reduce_text,
)
from bot.core.verification.contradiction import find_contradiction, split_answer
from bot.core.verification.facts import unsupported
from bot.core.verification.marks import Mark, quoted_marks

log = logging.getLogger(__name__)

# Most quotes that are marked for one sentence.
MAX_QUOTES = 8

NOT_BORNE_OUT = "its quotes do not bear it out"


@dataclass(frozen=True, slots=True)
class _Undecided:
    """A sentence whose facts hold, and whose meaning nobody has judged yet."""

    text: str
    marks: Sequence[Mark]
    located: Sequence[LocatedQuote]

    def verified(self) -> VerifiedClaim:
        return VerifiedClaim(self.text, tuple(quote for one in self.marks for quote in one.located()))

    def quoted(self) -> QuotedSentence:
        return QuotedSentence(self.text, tuple(one.source() for one in self.marks))


class SentenceVerifier:
    """Decides which sentences of the drafts for one question may be shown."""

    def __init__(
        self, question: AnalyzedQuestion, evidence: Sequence[Evidence], judge: SentenceJudge | None = None
    ) -> None:
        """``judge``: judges meaning; None: words do."""
        self._question = question
        self._evidence = evidence
        self._entailment = Entailment(question, evidence)
        self._judge = judge

    def show_at_once(self, claim: Claim) -> VerifiedClaim | None:
        """A sentence that needs no judge, while the rest is still being written; None: it has to wait."""
        checked = self._check(claim, distinct(locate_all(claim, self._evidence)))
        return checked if isinstance(checked, VerifiedClaim) else None

    async def verify(self, draft: Draft) -> VerifiedDraft:
        """Verify all sentences of a draft; ``missing`` is also what the judge finds unanswered."""
        places = [locate_all(claim, self._evidence) for claim in draft.claims]
        checked = [
            self._check(claim, distinct(found)) for claim, found in zip(draft.claims, places, strict=True)
        ]
        undecided = [one for one in checked if isinstance(one, _Undecided)]
        verdicts, missing = await self._decide(draft.claims, checked, undecided)
        judged = map(JudgedClaim, draft.claims, places, verdicts)
        return VerifiedDraft(tuple(judged), missing=missing or draft.missing)

    async def _decide(
        self,
        claims: Sequence[Claim],
        checked: Sequence[VerifiedClaim | _Undecided | str],
        undecided: Sequence[_Undecided],
    ) -> tuple[list[VerifiedClaim | str], str]:
        """(what becomes of each sentence, what the judge finds unanswered)."""
        if self._judge is None or not undecided:
            return [one for one in checked if not isinstance(one, _Undecided)], ""
        try:
            judgement = await self._judge.judge(self._question, [one.quoted() for one in undecided])
        except ModelError as error:
            log.warning("sentences not judged, their words decide: %s", type(error).__name__)
            pairs = zip(claims, checked, strict=True)
            return [
                self._entailment.check(claim, one.located) if isinstance(one, _Undecided) else one
                for claim, one in pairs
            ], ""
        verdicts = iter(judgement.is_borne_out)
        return [
            one if not isinstance(one, _Undecided) else one.verified() if next(verdicts) else NOT_BORNE_OUT
            for one in checked
        ], judgement.missing

    def _check(self, claim: Claim, located: Sequence[LocatedQuote]) -> VerifiedClaim | _Undecided | str:
        if self._judge is None:
            return self._entailment.check(claim, located)
        text, marks = plain_sentence(claim.text), quoted_marks(self._evidence, located[:MAX_QUOTES])
        if fault := find_formal_fault(text, located) or self._find_false_fact(text, marks):
            return fault
        undecided = _Undecided(text, marks, located)
        is_quote = any(reduce_text(text).text in reduce_text(one.part.text).text for one in marks)
        return undecided.verified() if is_quote else undecided

    def _find_false_fact(self, text: str, marks: Sequence[Mark]) -> str | None:
        """Find a number, day, code or address that neither the marks nor the question state, or a denial.

        Words that differ are no fault: what they mean is judged.
        """
        sources = [source for one in marks for source in one.sources()]
        if missing := unsupported(text, [*sources, self._question.typed, self._question.text]):
            return f"{', '.join(missing)} not in its quotes"
        quotes = [quote for one in marks for quote in one.located()]
        return None if split_answer(text)[0] == "no" else find_contradiction(text, quotes)
