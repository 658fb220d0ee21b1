"""Writes an answer: the verified sentences of a model or of a second one, else the passages of a search.

A sentence that was let through stays: what a model repairs, what a second model adds where the first
broke off, and the passages that stand in for both come behind it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from uuid import UUID

from bot.core.citations.passages import ShownPassage
from bot.core.errors import ModelError, ModelReplyUnusable, ModelUnavailable
from bot.core.generation.document_comparison import (
    Comparison,
    compare,
    compare_claims,
    dated,
)
from bot.core.generation.entailment import Entailment
from bot.core.generation.extractive import ExtractiveAnswerer
from bot.core.generation.judge import Outcome, Verdict
from bot.core.generation.quote_selection import QuoteCandidate, RankedQuotes, draft_of
from bot.core.models import (
    AnalyzedQuestion,
    AnswerState,
    ChosenFigure,
    Claim,
    Draft,
    Evidence,
    LocatedQuote,
)
from bot.core.ports import AnswerListener, Generator
from bot.core.verification.claims import VerifiedClaim, VerifiedDraft, number_quotes, place_of, verify
from bot.core.wording import reply_words

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WrittenAnswer:
    """Words that may be shown; of a plain no only why no model wrote it, if anything."""

    state: AnswerState
    text: str = ""
    """With [n] marks, and with what must be said of it."""
    cited: tuple[LocatedQuote, ...] = ()
    """``cited[n - 1]`` is what [n] stands for."""
    passages: tuple[ShownPassage, ...] = ()
    """Follow the text, under headings that citations give."""
    figures: tuple[ChosenFigure, ...] = ()
    """Shown with it."""
    attempts: tuple[Attempt, ...] = ()
    """All that was written on the way, in order."""
    is_generated: bool = False
    """Some of it is a model's sentences."""


@dataclass(frozen=True, slots=True)
class WritingTask:
    """What an answer is written from."""

    question: AnalyzedQuestion
    evidence: Sequence[Evidence]
    quotes: RankedQuotes
    """Everything of the evidence that may be quoted, best first."""
    verdict: Verdict
    """Decides between passages and a plain no."""
    answering: tuple[UUID, ...] = ()
    """Documents that are compared, and that answer or come near, as the question names them."""

    def comparison(self, chosen: Sequence[QuoteCandidate], quotes: Draft) -> Comparison | None:
        """Quotes of several documents, or of pages that differ, in place of these; None: there are none."""
        if not (self.answering or self.quotes.is_of_several_pages):
            return None
        found = compare(self.question, chosen, self.quotes.candidates, self.answering)
        is_of_several = self.answering or found.is_differing or len(_documents_of(quotes, self.evidence)) > 1
        return found if is_of_several else None

    def differing(self, claims: Sequence[VerifiedClaim]) -> Comparison | None:
        """What a model's sentences are marked at, and what gives other values than they do."""
        return None if self.answering else compare_claims(self.question, claims, self.quotes.candidates)


@dataclass(frozen=True, slots=True)
class Attempt:
    """A draft that was asked for: whole and judged, or broken off by an error."""

    draft: Draft | None
    judged: VerifiedDraft | None
    error: ModelError | None = None


class Deadline:
    """When the answer to one question is due, whatever its stages wait for."""

    def __init__(self, seconds: float) -> None:
        """Begin to count now."""
        self._due = asyncio.get_running_loop().time() + seconds

    def limit(self) -> asyncio.Timeout:
        """A context that ends with TimeoutError once the answer is due."""
        return asyncio.timeout_at(self._due)


# Below it no model is asked: nothing of the evidence is like the question.
MIN_MODEL_PROBABILITY = 0.2


class AnswerWriter:
    """Asks one model after the other; a search without one never fails."""

    def __init__(self, quoting: ExtractiveAnswerer, models: Sequence[Generator] = ()) -> None:
        """``models``: asked in this order, the next only when nothing could be made of the one before."""
        self._quoting = quoting
        self._models = models

    async def rank_quotes(self, question: AnalyzedQuestion, evidence: Sequence[Evidence]) -> RankedQuotes:
        """Everything of the evidence that may be quoted, best first.

        Raises:
            storage.errors.InfrastructureError: readings cannot be reached, or the embedder is late.
        """
        return await self._quoting.rank(question, evidence)

    async def write(
        self, task: WritingTask, deadline: Deadline, listener: AnswerListener | None = None
    ) -> WrittenAnswer:
        """Write what a model says of the evidence, as far as it is proven; ``listener`` sees it grow.

        A model that finds no answer ends in a plain no. One that fails, proves nothing or has not answered by
        the ``deadline`` is replaced by the next one, the last by a search, which says so.
        """
        answer_draft = _Draft(task, deadline, listener)
        note = ""
        for model in self._models if task.verdict.probability >= MIN_MODEL_PROBABILITY else ():
            written, note = await _ask(model, task, answer_draft)
            if written:
                return written
        return _search(task, answer_draft, note)


async def _ask(model: Generator, task: WritingTask, answer_draft: _Draft) -> tuple[WrittenAnswer | None, str]:
    """Ask one model: (its answer, ''), or (None, why there is none)."""
    words = answer_draft.words
    try:
        dropped = await _draft_with_model(model, task.question, answer_draft)
    except ModelError as error:
        log.warning("model failed: %s", type(error).__name__)
        if answer_draft.claims:
            return None, words.model_broke_off
        is_unusable = isinstance(error, ModelReplyUnusable)
        return None, words.model_unusable if is_unusable else words.model_failed
    if answer_draft.claims:
        return answer_draft.with_note(dropped, task.differing(answer_draft.claims)), ""
    if not dropped:
        return answer_draft.plain_no(), ""
    return None, words.model_unverified


def _search(task: WritingTask, answer_draft: _Draft, note: str) -> WrittenAnswer:
    """Passages, or a plain no; behind the sentences of a model that broke off only passages."""
    chosen = task.quotes.chosen(task.question)
    is_no = task.verdict.outcome is Outcome.NOT_FOUND or not chosen
    if is_no and not answer_draft.claims:
        return answer_draft.plain_no(note)
    quotes = task.quotes.draft(task.question, chosen)
    if chosen and (comparison := task.comparison(chosen, quotes)):
        return answer_draft.with_comparison(comparison, note)
    return answer_draft.with_quotes(quotes, note)


def _documents_of(quotes: Draft, evidence: Sequence[Evidence]) -> set[UUID]:
    cited = {quote.passage for claim in quotes.claims for quote in claim.quotes}
    return {item.passage.publication.document_id for item in evidence if item.number in cited}


class _Draft:
    """The sentences of one answer that are proven, in the order in which they were."""

    def __init__(self, task: WritingTask, deadline: Deadline, listener: AnswerListener | None) -> None:
        self.evidence = task.evidence
        self.words = reply_words(task.question.language)
        self._task = task
        self._deadline = deadline
        self.claims: list[VerifiedClaim] = []
        self.attempts: list[Attempt] = []
        self._streamed: list[Claim] = []
        self._listener = listener

    @cached_property
    def _entailment(self) -> Entailment:
        return Entailment(self._task.question, self.evidence)

    @property
    def sentences(self) -> list[str]:
        """Without their marks."""
        return [claim.text for claim in self.claims]

    async def fill(
        self, model: Generator, question: AnalyzedQuestion, faults: Sequence[str] = ()
    ) -> VerifiedDraft:
        """Have a model add to it, sentence by sentence if somebody listens; returns how its draft was judged.

        Raises:
            ModelError: there is no whole draft. What was proven of it stays.
        """
        on_claim = self._on_claim if self._listener else None
        self._streamed.clear()
        try:
            try:
                async with self._deadline.limit():
                    draft = await model.draft(
                        question, self.evidence, faults, stands=self.sentences, on_claim=on_claim
                    )
            except TimeoutError as error:
                raise ModelUnavailable("the answer was due before the model had written it") from error
        except ModelError as error:
            verified = verify(Draft(tuple(self._streamed)), self.evidence, self._entailment.check)
            self.attempts.append(Attempt(None, verified, error))
            raise
        judged = self._add(draft)
        self.attempts.append(Attempt(draft, judged))
        return judged

    def _on_claim(self, claim: Claim) -> None:
        """Show a sentence of a draft that is still being written, if it is proven."""
        self._streamed.append(claim)
        known = len(self.claims)
        self._add(Draft((claim,)))
        if len(self.claims) > known and self._listener:
            self._listener.show(" ".join(number_quotes(self.claims)[0]))

    def _add(self, draft: Draft) -> VerifiedDraft:
        """Add what a draft proves and the sheet does not say yet; returns how the draft was judged.

        Of a model that finds the evidence insufficient nothing counts.
        """
        if not draft.is_sufficient:
            draft = replace(draft, claims=())
        judged = verify(draft, self.evidence, self._entailment.check)
        for claim in judged.claims:
            if claim.text not in self.sentences:
                self.claims.append(claim)
        return judged

    def with_note(self, dropped: int, differing: Comparison | None) -> WrittenAnswer:
        """All of it, with a word on what was dropped, and behind it what gives other values."""
        note = self.words.dropped(dropped) if dropped else ""
        written = self.with_comparison(differing, note) if differing else self._with_quotes((), note)
        return replace(written, state=AnswerState.PARTIAL if dropped else AnswerState.GROUNDED)

    def plain_no(self, note: str = "") -> WrittenAnswer:
        """Nothing; ``note`` says why no model decided it."""
        return WrittenAnswer(AnswerState.NOT_FOUND, note, attempts=tuple(self.attempts))

    def with_quotes(self, quotes: Draft, note: str) -> WrittenAnswer:
        """All of it, and quotes behind it; ``note`` says why."""
        return self._with_quotes(self._proven(quotes), note)

    def with_comparison(self, comparison: Comparison, note: str) -> WrittenAnswer:
        """The same, of several documents, and that they differ."""
        quotes, words = self._proven(draft_of(comparison.quotes)), self.words
        is_dated = comparison.is_differing and not comparison.is_within_one
        if comparison.is_differing:
            differ = words.documents_differ if is_dated else words.values_differ
            note = "\n".join(filter(None, (note, differ)))
        return self._with_quotes(quotes, note, is_dated=is_dated)

    def _proven(self, quotes: Draft) -> Sequence[VerifiedClaim]:
        judged = verify(quotes, self.evidence)
        self.attempts.append(Attempt(quotes, judged))
        return judged.claims

    def _with_quotes(
        self, quotes: Sequence[VerifiedClaim], note: str, *, is_dated: bool = False
    ) -> WrittenAnswer:
        lines, cited = number_quotes([*self.claims, *quotes])
        begun, quoted = lines[: len(self.claims)], lines[len(self.claims) :]
        passages = tuple(
            self._passage(claim, line, cited, is_dated=is_dated)
            for claim, line in zip(quotes, quoted, strict=True)
        )
        return WrittenAnswer(
            AnswerState.PARTIAL if begun else AnswerState.PASSAGES,
            "\n".join(filter(None, (" ".join(begun), note))),
            cited,
            passages,
            attempts=tuple(self.attempts),
            is_generated=bool(begun),
        )

    def _passage(
        self, claim: VerifiedClaim, line: str, cited: Sequence[LocatedQuote], *, is_dated: bool
    ) -> ShownPassage:
        first = claim.quotes[0]
        day = dated(first.passage.publication, self.words) if is_dated else ""
        return ShownPassage(line, place_of(first, cited), day, claim.is_reference)


async def _draft_with_model(model: Generator, question: AnalyzedQuestion, answer_draft: _Draft) -> int:
    """Put a model's draft on the sheet; one with faults is sent back once. Returns the sentences dropped.

    Raises:
        ModelError: there is no whole draft.
    """
    first = await answer_draft.fill(model, question)
    if not first.faults:
        return 0
    try:
        second = await answer_draft.fill(model, question, first.faults)
    except ModelError as error:
        log.warning("no repair: %s", type(error).__name__)
        return first.dropped
    if second.claims or second.faults or not answer_draft.claims:
        return second.dropped
    return first.dropped
