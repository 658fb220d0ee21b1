"""Writes an answer: the verified sentences of one or two models, else passages of the search.

A sentence that was shown stays: what a second model adds after the first one broke off, and the passages that
replace both, come after it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from uuid import UUID

from bot.answers.citations.passages import ShownPassage
from bot.answers.generation.document_comparison import (
    Comparison,
    compare,
    compare_claims,
    dated,
)
from bot.answers.generation.extractive import ExtractiveAnswerer
from bot.answers.generation.judge import Outcome, Verdict
from bot.answers.generation.quote_selection import QuoteCandidate, RankedQuotes, draft_of
from bot.answers.generation.sentence_verifier import NOT_SUPPORTED, SentenceVerifier
from bot.answers.understanding.answer_types import RequiredAnswer
from bot.answers.understanding.question_terms import FUNCTION_TERMS, QuestionTerms
from bot.answers.verification.claims import (
    JudgedClaim,
    VerifiedClaim,
    VerifiedDraft,
    join_sentences,
    locate_all,
    number_quotes,
    place_of,
    verify,
)
from bot.core.errors import ModelError, ModelReplyUnusable, ModelUnavailable
from bot.core.models import (
    AnalyzedQuestion,
    AnswerState,
    ChosenFigure,
    Claim,
    Draft,
    Evidence,
    LocatedQuote,
)
from bot.core.ports import AnswerListener, Generator, SentenceJudge
from bot.core.wording import reply_words
from storage.text.analyzer import analyze

log = logging.getLogger(__name__)

# Maximum length of an unanswered part that is repeated in the reply.
MAX_POINT_CHARS = 120
BROKEN_OFF = "the reply was truncated"


@dataclass(frozen=True, slots=True)
class WrittenAnswer:
    """Text that may be shown; in a not-found reply only the reason why no model wrote it, if any."""

    state: AnswerState
    # With [n] markers and notes.
    text: str = ""
    # ``cited[n - 1]`` is the quote behind [n].
    cited: tuple[LocatedQuote, ...] = ()
    # Shown below the text, under headings made from citations.
    passages: tuple[ShownPassage, ...] = ()
    figures: tuple[ChosenFigure, ...] = ()
    # All drafts on the way, in order.
    attempts: tuple[Attempt, ...] = ()
    # Contains sentences of a model.
    is_generated: bool = False


@dataclass(frozen=True, slots=True)
class WritingTask:
    """Input from which an answer is written."""

    question: AnalyzedQuestion
    evidence: Sequence[Evidence]
    # Quotable parts of the evidence, best first.
    quotes: RankedQuotes
    # Decides between passages and a not-found reply.
    verdict: Verdict
    # Compared documents that answer, or nearly do, in the order of the question.
    answering: tuple[UUID, ...] = ()
    # All documents that the question compares; the reply names those without a citation.
    compared: tuple[UUID, ...] = ()

    @property
    def quotable(self) -> Sequence[Evidence]:
        """The evidence, and the passages to which a list may extend."""
        return (*self.evidence, *self.quotes.beside)

    def comparison(self, chosen: Sequence[QuoteCandidate], quotes: Draft) -> Comparison | None:
        """Return quotes of several documents or of pages that differ, to show instead; None without any."""
        if not (self.answering or self.quotes.is_of_several_pages):
            return None
        found = compare(self.question, chosen, self.quotes.candidates, self.answering)
        is_of_several = self.answering or found.is_differing or len(_documents_of(quotes, self.quotable)) > 1
        return found if is_of_several else None

    def differing(self, claims: Sequence[VerifiedClaim]) -> Comparison | None:
        """Return a quote of a model's sentence with those that give other values; None if none do."""
        return None if self.answering else compare_claims(self.question, claims, self.quotes.candidates)


@dataclass(frozen=True, slots=True)
class Attempt:
    """A requested draft: complete and judged, or broken off by an error."""

    draft: Draft | None
    judged: VerifiedDraft | None
    error: ModelError | None = None


class Deadline:
    """Deadline for the answer to one question, across all its stages."""

    def __init__(self, seconds: float) -> None:
        """Start the countdown."""
        self._due = asyncio.get_running_loop().time() + seconds

    def limit(self) -> asyncio.Timeout:
        """Return a context manager that raises TimeoutError at the deadline."""
        return asyncio.timeout_at(self._due)


class AnswerWriter:
    """Asks one model after the other, then falls back to passages, which needs no model."""

    def __init__(
        self,
        quoting: ExtractiveAnswerer,
        models: Sequence[Generator] = (),
        judge: SentenceJudge | None = None,
    ) -> None:
        """Set the writers and the judge.

        Args:
            quoting: selects passages if no model writes.
            models: asked in this order, the next one only if the previous one gave nothing usable.
            judge: judges the meaning of the models' sentences; None: lexical entailment decides.
        """
        self._quoting = quoting
        self._models = models
        self._judge = judge

    @property
    def has_model(self) -> bool:
        """True if a model is asked first."""
        return bool(self._models)

    async def rank_quotes(self, question: AnalyzedQuestion, evidence: Sequence[Evidence]) -> RankedQuotes:
        """Return the quotable parts of the evidence, best first.

        Raises:
            storage.errors.InfrastructureError: readings are unavailable, or the embedder is too slow.
        """
        return await self._quoting.rank(question, evidence)

    async def write(
        self, task: WritingTask, deadline: Deadline, listener: AnswerListener | None = None
    ) -> WrittenAnswer:
        """Write what a model says about the evidence, as far as it is verified; ``listener`` sees it grow.

        A model that finds no answer ends in a not-found reply. One that fails, proves nothing or misses the
        ``deadline`` is replaced by the next one, the last by passages, and the reply says so.
        """
        answer_draft = _Draft(task, deadline, listener, self._judge)
        note = ""
        for model in self._models:
            written, note = await _ask(model, task, answer_draft)
            if written:
                return written
        return _fall_back_to_passages(task, answer_draft, note)


async def _ask(model: Generator, task: WritingTask, answer_draft: _Draft) -> tuple[WrittenAnswer | None, str]:
    """Ask one model; return (its answer, ''), or (None, the reason why there is none)."""
    words = answer_draft.words
    try:
        verified = await answer_draft.add_from_model(model, task.question)
    except ModelError as error:
        log.warning("model failed: %s", type(error).__name__)
        if answer_draft.claims:
            return None, words.model_broke_off
        is_unusable = isinstance(error, ModelReplyUnusable)
        return None, words.model_unusable if is_unusable else words.model_failed
    if answer_draft.claims:
        return answer_draft.finished(verified, task.differing(answer_draft.claims)), ""
    if not verified.faults or NOT_SUPPORTED in verified.faults:
        return answer_draft.not_found(), ""
    return None, words.model_unverified


def _fall_back_to_passages(task: WritingTask, answer_draft: _Draft, note: str) -> WrittenAnswer:
    """Return passages or a not-found reply; after sentences of a model that broke off only passages."""
    chosen = task.quotes.chosen(task.question)
    is_no = task.verdict.outcome is Outcome.NOT_FOUND or not chosen
    if is_no and not answer_draft.claims:
        return answer_draft.not_found(note)
    quotes = task.quotes.draft(task.question, chosen)
    if chosen and (comparison := task.comparison(chosen, quotes)):
        return answer_draft.with_comparison(comparison, note)
    return answer_draft.with_quotes(quotes, note)


def _documents_of(quotes: Draft, evidence: Sequence[Evidence]) -> set[UUID]:
    cited = {quote.passage for claim in quotes.claims for quote in claim.quotes}
    return {item.passage.publication.document_id for item in evidence if item.number in cited}


def put_fact_page_first(claim: VerifiedClaim, question: AnalyzedQuestion) -> VerifiedClaim:
    """Cite the page that contains the requested fact first, if a quote crosses a page break."""
    if not any(one.parts for one in claim.quotes):
        return claim
    asked, required, said = QuestionTerms(question), RequiredAnswer(question.text), set(analyze(claim.text))

    def holds(part: LocatedQuote) -> tuple[bool, float]:
        terms = set(analyze(part.quote))
        shared = len(terms & said) / (len(said) or 1)
        return bool(required) and required.is_held_by(part.quote), asked.coverage(terms) + shared

    quotes = (replace(one, parts=tuple(sorted(one.parts, key=holds, reverse=True))) for one in claim.quotes)
    return replace(claim, quotes=tuple(quotes))


class _Draft:
    """Verified sentences of one answer, in the order of their verification."""

    def __init__(
        self,
        task: WritingTask,
        deadline: Deadline,
        listener: AnswerListener | None,
        judge: SentenceJudge | None,
    ) -> None:
        self.evidence = task.evidence
        self.words = reply_words(task.question.language)
        self._task = task
        self._deadline = deadline
        self.claims: list[VerifiedClaim] = []
        self.attempts: list[Attempt] = []
        self._streamed: list[JudgedClaim] = []
        self._is_waiting = False
        self._listener = listener
        self._judge = judge

    @cached_property
    def _verifier(self) -> SentenceVerifier:
        return SentenceVerifier(self._task.question, self.evidence, self._judge)

    @property
    def sentences(self) -> list[str]:
        """Texts of the sentences, without [n] markers."""
        return [claim.text for claim in self.claims]

    async def add_from_model(self, model: Generator, question: AnalyzedQuestion) -> VerifiedDraft:
        """Have a model add sentences, one by one if there is a listener; return its verified draft.

        Raises:
            ModelError: the draft is incomplete. Sentences that were shown stay.
        """
        on_claim = self._on_claim if self._listener else None
        self._streamed, self._is_waiting = [], False
        try:
            try:
                async with self._deadline.limit():
                    draft = await model.draft(
                        question, self.evidence, verified_sentences=self.sentences, on_claim=on_claim
                    )
                    verified = await self._verify(draft)
            except TimeoutError as error:
                raise ModelUnavailable("the model missed the answer's deadline") from error
        except ModelError as error:
            self.attempts.append(Attempt(None, VerifiedDraft(tuple(self._streamed)), error))
            raise
        self._add(verified.claims)
        self.attempts.append(Attempt(draft, verified))
        return verified

    async def _verify(self, draft: Draft) -> VerifiedDraft:
        """Verify a draft; the claims of a model that finds the evidence insufficient are dropped."""
        return await self._verifier.verify(draft if draft.is_sufficient else replace(draft, claims=()))

    def _on_claim(self, claim: Claim) -> None:
        """Show a sentence of a draft that is still streaming, if it and all before it are verified."""
        shown = None if self._is_waiting else self._verifier.verify_streamed(claim)
        self._streamed.append(JudgedClaim(claim, locate_all(claim, self.evidence), shown or BROKEN_OFF))
        self._is_waiting = shown is None
        known = len(self.claims)
        self._add([shown] if shown else ())
        if len(self.claims) > known and self._listener:
            self._listener.show(join_sentences(number_quotes(self.claims, by_page=True)[0], is_open=True))

    def _add(self, claims: Iterable[VerifiedClaim]) -> None:
        """Append sentences that the answer does not contain yet."""
        for claim in claims:
            if claim.text not in self.sentences:
                self.claims.append(put_fact_page_first(claim, self._task.question))

    def finished(self, verified: VerifiedDraft, differing: Comparison | None) -> WrittenAnswer:
        """Return the answer, the unanswered part of the question, and quotes that give other values."""
        note = self._missing(verified.missing)
        is_partial = bool(note or verified.faults)
        cited = {one.passage.publication.document_id for claim in self.claims for one in claim.quotes}
        if self._task.answering and not cited.issuperset(self._task.compared):
            note, is_partial = "", True  # the reply names the documents instead
        written = self.with_comparison(differing, note) if differing else self._with_quotes((), note)
        return replace(written, state=AnswerState.PARTIAL if is_partial else AnswerState.GROUNDED)

    def _missing(self, point: str) -> str:
        """Return the sentence that names the unanswered part of the question; '' if there is none.

        A model named it, so it is only shown if all its words are in the question.
        """
        point = " ".join(point.split()).rstrip(".?!")
        if not point:
            return ""
        asked = set(analyze(f"{self._task.question.typed} {self._task.question.text}")) - FUNCTION_TERMS
        named = set(analyze(point)) - FUNCTION_TERMS
        if named >= asked:
            return ""  # it names the whole question, not a part
        is_of_question = len(point) <= MAX_POINT_CHARS and asked >= named
        return self.words.missing_point(point=point) if is_of_question else self.words.missing_part

    def not_found(self, note: str = "") -> WrittenAnswer:
        """Return a not-found reply; ``note`` says why no model decided it."""
        return WrittenAnswer(AnswerState.NOT_FOUND, note, attempts=tuple(self.attempts))

    def with_quotes(self, quotes: Draft, note: str) -> WrittenAnswer:
        """Return the answer followed by quotes; ``note`` says why."""
        proven = self._proven(quotes)
        documents = {quote.passage.publication.document_id for one in proven for quote in one.quotes}
        return self._with_quotes(proven, note, is_dated=len(documents) > 1)

    def with_comparison(self, comparison: Comparison, note: str) -> WrittenAnswer:
        """Return the answer followed by quotes of several documents, and say if they differ."""
        quotes, words = self._proven(draft_of(comparison.quotes)), self.words
        is_dated = not comparison.is_within_one
        if comparison.is_differing:
            differ = words.documents_differ if is_dated else words.values_differ
            note = "\n".join(filter(None, (note, differ)))
        return self._with_quotes(quotes, note, is_dated=is_dated)

    def _proven(self, quotes: Draft) -> Sequence[VerifiedClaim]:
        judged = verify(quotes, self._task.quotable)
        self.attempts.append(Attempt(quotes, judged))
        return [put_fact_page_first(claim, self._task.question) for claim in judged.claims]

    def _with_quotes(
        self, quotes: Sequence[VerifiedClaim], note: str, *, is_dated: bool = False
    ) -> WrittenAnswer:
        lines, cited = number_quotes([*self.claims, *quotes], by_page=bool(self.claims))
        begun, quoted = lines[: len(self.claims)], lines[len(self.claims) :]
        passages = tuple(
            self._passage(claim, line, cited, is_dated=is_dated)
            for claim, line in zip(quotes, quoted, strict=True)
        )
        return WrittenAnswer(
            AnswerState.PARTIAL if begun else AnswerState.PASSAGES,
            "\n".join(filter(None, (join_sentences(begun), note))),
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
