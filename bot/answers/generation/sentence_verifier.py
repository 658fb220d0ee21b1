"""Verifies a model's sentences: facts by rules, meaning by a judge, or by lexical entailment without one.

A verbatim quote is shown, whatever a judge says. All other sentences of an answer whose facts hold are judged
in one call. If that call fails, or the model fails its test as a judge, lexical entailment decides.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bot.answers.generation.entailment import Entailment, find_form_fault, unknown_names
from bot.answers.verification.claims import (
    JudgedClaim,
    VerifiedClaim,
    VerifiedDraft,
    find_spans,
    locate_all,
    plain_sentence,
    unique_quotes,
)
from bot.answers.verification.contradiction import ASSERTS, denies, find_contradiction, split_answer
from bot.answers.verification.facts import makes_unsupported_request, unsupported
from bot.answers.verification.marks import Mark, quoted_marks
from bot.core.errors import ModelError
from bot.core.models import AnalyzedQuestion, Claim, Draft, Evidence, Judgement, LocatedQuote, QuotedSentence
from bot.core.ports import SentenceJudge

log = logging.getLogger(__name__)

# Maximum quotes marked for one sentence.
MAX_QUOTES = 8

# Minimum words of a quote that needs no judge: "30 days" is in many rows.
MIN_QUOTE_WORDS = 4

REQUESTS = "unsupported request to the reader"
NOT_SUPPORTED = "not supported by its quotes"


@dataclass(frozen=True, slots=True)
class _Checked:
    """A sentence whose facts hold."""

    text: str
    marks: Sequence[Mark]
    located: Sequence[LocatedQuote]
    # A verbatim quote, which needs no judge.
    is_quote: bool

    def verified(self) -> VerifiedClaim:
        return VerifiedClaim(self.text, tuple(quote for one in self.marks for quote in one.located()))

    def quoted(self) -> QuotedSentence:
        return QuotedSentence(self.text, tuple(one.source() for one in self.marks))


class SentenceVerifier:
    """Decides which sentences of the drafts for one question may be shown."""

    def __init__(
        self, question: AnalyzedQuestion, evidence: Sequence[Evidence], judge: SentenceJudge | None = None
    ) -> None:
        """``judge``: judges meaning; None: lexical entailment decides."""
        self._question = question
        self._evidence = evidence
        self._entailment = Entailment(question, evidence)
        self._judge = judge

    def verify_streamed(self, claim: Claim) -> VerifiedClaim | None:
        """Return a sentence that needs no judge, while the rest is streaming; None: it has to wait."""
        checked = self._check(claim, unique_quotes(locate_all(claim, self._evidence)))
        if isinstance(checked, _Checked):
            return checked.verified() if checked.is_quote else None
        return checked if isinstance(checked, VerifiedClaim) else None

    async def verify(self, draft: Draft) -> VerifiedDraft:
        """Verify all sentences of a draft; ``missing`` includes what the judge finds unanswered."""
        places = [locate_all(claim, self._evidence) for claim in draft.claims]
        checked = [
            self._check(claim, unique_quotes(found))
            for claim, found in zip(draft.claims, places, strict=True)
        ]
        judgement = await self._judge_all([one for one in checked if isinstance(one, _Checked)])
        verdicts = iter(judgement.is_supported) if judgement else None
        judged = (
            JudgedClaim(claim, found, self._decided(claim, one, verdicts))
            for claim, found, one in zip(draft.claims, places, checked, strict=True)
        )
        return VerifiedDraft(tuple(judged), missing=(judgement and judgement.missing) or draft.missing)

    async def _judge_all(self, sentences: Sequence[_Checked]) -> Judgement | None:
        """Judge all sentences of an answer in one call, quotes included: a list needs its items.

        None if all are quotes, or the call fails.
        """
        if self._judge is None or all(one.is_quote for one in sentences):
            return None
        try:
            return await self._judge.judge(self._question, [one.quoted() for one in sentences])
        except ModelError as error:
            log.warning("sentence judge failed, falling back to lexical entailment: %s", type(error).__name__)
            return None

    def _decided(
        self, claim: Claim, one: VerifiedClaim | _Checked | str, verdicts: Iterator[bool] | None
    ) -> VerifiedClaim | str:
        if not isinstance(one, _Checked):
            return one
        is_supported = next(verdicts) if verdicts else None
        if one.is_quote or is_supported:
            return one.verified()
        return NOT_SUPPORTED if verdicts else self._entailment.check(claim, one.located)

    def _check(self, claim: Claim, located: Sequence[LocatedQuote]) -> VerifiedClaim | _Checked | str:
        if self._judge is None:
            return self._entailment.check(claim, located)
        text, marks = plain_sentence(claim.text), quoted_marks(self._evidence, located[:MAX_QUOTES])
        if fault := find_form_fault(text, located) or self._find_false_fact(text, marks):
            return fault
        is_long = len(text.split()) >= MIN_QUOTE_WORDS
        is_quote = is_long and any(find_spans(text, one.part.text) for one in marks)
        return _Checked(text, marks, located, is_quote)

    def _find_false_fact(self, text: str, marks: Sequence[Mark]) -> str | None:
        """Return the fault if a fact or name is in neither marks nor question, or for a request or a denial.

        Different wording is no fault: its meaning is judged.
        """
        sources = [source for one in marks for source in one.sources()]
        asked = f"{self._question.typed}\n{self._question.text}"
        missing = [*unsupported(text, [*sources, asked]), *unknown_names(text, "\n".join([*sources, asked]))]
        if missing:
            return f"not in the quotes: {', '.join(missing)}"
        if makes_unsupported_request(text, "\n".join(sources), asked):
            return REQUESTS
        is_yes = _is_bare_answer(text) and split_answer(text)[0] == "yes"
        if is_yes and not denies(asked) and all(denies(one.part.text) for one in marks):
            return ASSERTS
        turned = find_contradiction(text, [quote for one in marks for quote in one.located()])
        # A "no" may omit the negation of its quotes.
        return None if turned == ASSERTS and split_answer(text)[0] == "no" else turned


def _is_bare_answer(text: str) -> bool:
    """True for a yes or no that adds nothing."""
    return not split_answer(text)[1].strip(" .,!")
