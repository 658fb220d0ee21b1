"""The record of a question: what was found, read, sent to a model, written, judged and cited.

``Trace`` collects it while the question is answered.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from datetime import datetime
from functools import cache
from typing import Any

from bot.core.generation.answer_writer import Attempt
from bot.core.model_calls import AuxiliaryCall, Prompt
from bot.core.models import Answer, Evidence, LocatedQuote, Passage, Question, Quote, Rejected, Retrieval
from bot.core.plaintext import mend
from bot.core.verification.claims import JudgedClaim, find_spans

MAX_PROMPT_CHARS = 400_000
"""Of all prompts of a record together; what goes beyond is cut off, and the record says so."""
MAX_QUESTION_CHARS = 10_000
"""Characters kept of a question, however long it was."""

NOWHERE = "stands in no passage word for word"
AMBIGUOUS = "too short: stands at several places"


@dataclass(frozen=True, slots=True)
class CandidateRecord:
    """A passage that was found."""

    file: str
    page: int
    last_page: int
    ordinal: int
    """Counted from 0 among the chunks of its reading."""
    score: float
    bm25: float | None
    vector: float | None
    parts: dict[str, float]
    """What the score is made of."""
    rank: int | None
    """From 1 among the candidates; None: it is none of them."""
    fate: str
    """``read``, or why not: ``cut by rank``, ``repeats FILE p. N``, ``over the token budget`` ..."""


@dataclass(frozen=True, slots=True)
class SearchRecord:
    """One search with what became of it."""

    is_wide: bool
    terms: tuple[str, ...]
    wordings: tuple[str, ...]
    """Further ones that were searched for."""
    documents: int | None
    """How many it was kept to; None: all of the channel."""
    not_live: int
    """Hits that fell, because their publication was not live."""
    is_enough: bool | None
    """Whether the gate opened; None: it was not asked."""
    candidates: tuple[CandidateRecord, ...]


@dataclass(frozen=True, slots=True)
class QuoteRecord:
    """A quote of a draft: the words that were claimed, and where they were found."""

    passage: int
    """The number that was claimed."""
    text: str
    is_located: bool
    reason: str
    """Where it was found, or why not."""


@dataclass(frozen=True, slots=True)
class ClaimRecord:
    """A sentence of a draft."""

    text: str
    quotes: tuple[QuoteRecord, ...]
    fault: str | None
    """Why it was dropped; None: it was kept."""


@dataclass(frozen=True, slots=True)
class PromptRecord:
    """The exact model input."""

    system: str
    user: str
    with_schema: bool


@dataclass(frozen=True, slots=True)
class AuxiliaryCallRecord:
    """A call to a model that wrote no answer."""

    purpose: str
    """``rewrite`` (a follow-up question), ``reword`` (for the search) or ``rerank``."""
    prompts: tuple[PromptRecord, ...]
    error: str | None


@dataclass(frozen=True, slots=True)
class DraftRecord:
    """One draft, or the failure that came instead."""

    author: str
    """``model`` or ``quotes``."""
    prompts: tuple[PromptRecord, ...]
    error: str | None
    claims: tuple[ClaimRecord, ...]


@dataclass(frozen=True, slots=True)
class ShownCitationRecord:
    """What was shown; no link, for a link opens the page to whoever has it."""

    number: int
    file: str
    page: int
    quote: str
    boxes: int


@dataclass(frozen=True, slots=True)
class TokensRecord:
    """What the question cost; a model's as its endpoint counts them, None where it does not say."""

    prompt: int | None
    completion: int | None
    embedding: int


@dataclass(frozen=True, slots=True)
class QuestionRecord:
    """All of it."""

    question_id: str
    channel_id: int
    asked_at: datetime
    question: str
    searched: str
    """What was searched for: a follow-up question is worded anew."""
    state: str
    answer: str
    looks: tuple[SearchRecord, ...]
    helps: tuple[AuxiliaryCallRecord, ...]
    drafts: tuple[DraftRecord, ...]
    citations: tuple[ShownCitationRecord, ...]
    tokens: TokensRecord
    milliseconds: dict[str, int]
    is_cut: bool = False
    """Prompts were too long to be kept whole."""

    def as_json(self) -> dict[str, Any]:
        """As a value that JSON and any database can hold."""
        value: dict[str, Any] = _plain(bounded(self))
        return {**value, "asked_at": self.asked_at.isoformat()}


def bounded(record: QuestionRecord) -> QuestionRecord:
    """The record with no more of its prompts than ``MAX_PROMPT_CHARS``: those of drafts first, in order."""
    budget = _CharBudget(MAX_PROMPT_CHARS)
    drafts = tuple(replace(one, prompts=budget.take(one.prompts)) for one in record.drafts)
    helps = tuple(replace(one, prompts=budget.take(one.prompts)) for one in record.helps)
    return replace(
        record,
        question=record.question[:MAX_QUESTION_CHARS],
        searched=record.searched[:MAX_QUESTION_CHARS],
        helps=helps,
        drafts=drafts,
        is_cut=(helps, drafts) != (record.helps, record.drafts),
    )


class _CharBudget:
    """So many characters, to be given to one prompt after the other."""

    def __init__(self, characters: int) -> None:
        self._left = characters

    def take(self, prompts: Iterable[PromptRecord]) -> tuple[PromptRecord, ...]:
        return tuple(map(self._cut, prompts))

    def _cut(self, prompt: PromptRecord) -> PromptRecord:
        system = prompt.system[: self._left]
        user = prompt.user[: self._left - len(system)]
        self._left -= len(system) + len(user)
        return replace(prompt, system=system, user=user)


def _plain(value: Any) -> Any:
    """Dictionaries, lists and mended text; ``asdict`` would copy all of it first."""
    if value is None or isinstance(value, float):  # most of a record are scores
        return value
    if isinstance(value, str):
        return mend(value)
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {name: _plain(getattr(value, name)) for name in _names(type(value))}
    return value


@cache
def _names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


@dataclass(slots=True)
class SearchTrace:
    """One search, and what was read of it."""

    question: Question
    retrieval: Retrieval
    read: int = 0
    """How many of the first candidates were read."""
    evidence: Sequence[Evidence] | None = None
    """These, and the text around them; None where a figure alone may answer."""
    is_enough: bool | None = None
    """Whether the evidence was judged near enough; None: it was not asked."""


@dataclass(slots=True)
class Trace:
    """One question's; whoever works on it adds what happened."""

    most_read: int
    searches: list[SearchTrace] = field(default_factory=list)
    attempts: Sequence[Attempt] = ()
    calls: Sequence[AuxiliaryCall] = ()

    def search(self, question: Question, retrieval: Retrieval) -> SearchTrace:
        """Note a search, and return it for what becomes of it."""
        self.searches.append(SearchTrace(question, retrieval))
        return self.searches[-1]

    def record(self, question: Question, answer: Answer) -> QuestionRecord:
        """All that was noted of a question that is answered now."""
        return QuestionRecord(
            question_id=question.id,
            channel_id=question.channel.id,
            asked_at=question.asked_at,
            question=question.text,
            searched=answer.standalone or question.text,
            state=answer.state.value,
            answer=answer.text,
            looks=tuple(self._search_record(search) for search in self.searches),
            helps=tuple(
                AuxiliaryCallRecord(one.purpose, _prompts(one.prompts), one.error) for one in self.calls
            ),
            drafts=tuple(_draft(one, self._read()) for one in self.attempts),
            citations=tuple(
                ShownCitationRecord(one.number, one.file, one.page, one.quote, len(one.boxes))
                for one in answer.citations
            ),
            tokens=self._tokens(),
            milliseconds=asdict(answer.milliseconds),
        )

    def _read(self) -> Sequence[Evidence]:
        return (self.searches[-1].evidence if self.searches else None) or ()

    def _tokens(self) -> TokensRecord:
        drafts = [one.draft.usage for one in self.attempts if one.draft]
        usages = [one for one in (*drafts, *(call.usage for call in self.calls)) if one]
        drafted = sum(one.draft.embedded for one in self.attempts if one.draft)
        return TokensRecord(
            prompt=_sum([one.prompt for one in usages]),
            completion=_sum([one.completion for one in usages]),
            embedding=drafted + sum(search.retrieval.embedded for search in self.searches),
        )

    def _search_record(self, search: SearchTrace) -> SearchRecord:
        asked, documents = search.retrieval.question, search.question.documents
        return SearchRecord(
            is_wide=search.question.is_wide,
            terms=asked.terms,
            wordings=tuple(one.text for one in asked.wordings),
            documents=None if documents is None else len(documents),
            not_live=search.retrieval.not_live,
            is_enough=search.is_enough,
            candidates=(
                *(
                    _candidate(passage, rank, self._outcome(rank, search))
                    for rank, passage in enumerate(search.retrieval.passages, start=1)
                ),
                *(_candidate(one.passage, None, _why(one)) for one in search.retrieval.rejected),
            ),
        )

    def _outcome(self, rank: int, search: SearchTrace) -> str:
        """What became of the candidate of a rank."""
        if search.is_enough is None:
            return "not asked for: a figure, or none, is the answer"
        if rank > search.read:
            is_full = search.read == self.most_read
            return f"beyond the first {self.most_read}" if is_full else "over the token budget"
        return "read" if search.is_enough else "gated: too little like the question"


def _candidate(passage: Passage, rank: int | None, fate: str) -> CandidateRecord:
    return CandidateRecord(
        passage.publication.file,
        passage.first_page,
        passage.last_page,
        passage.ordinal,
        passage.score,
        passage.bm25,
        passage.vector,
        dict(passage.parts),
        rank,
        fate,
    )


def _why(one: Rejected) -> str:
    if one.repeats is None:
        return "cut by rank"
    return f"repeats {one.repeats.publication.file} p. {one.repeats.first_page}"


def _draft(attempt: Attempt, read: Sequence[Evidence]) -> DraftRecord:
    source = attempt.draft or attempt.error
    return DraftRecord(
        author="quotes" if attempt.draft and attempt.draft.verbatim else "model",
        prompts=_prompts(source.prompts if source else ()),
        error=type(attempt.error).__name__ if attempt.error else None,
        claims=tuple(_claim(one, read) for one in attempt.judged.judged) if attempt.judged else (),
    )


def _prompts(sent: Iterable[Prompt]) -> tuple[PromptRecord, ...]:
    return tuple(PromptRecord(one.system, one.user, one.with_schema) for one in sent)


def _claim(one: JudgedClaim, read: Sequence[Evidence]) -> ClaimRecord:
    quotes = [
        QuoteRecord(quote.passage, quote.text, place is not None, _where(quote, place, read))
        for quote, place in zip(one.claim.quotes, one.places, strict=True)
    ]
    return ClaimRecord(one.claim.text, tuple(quotes), one.fault)


def _where(quote: Quote, place: LocatedQuote | None, read: Sequence[Evidence]) -> str:
    """Where a quote was found, or why it was not."""
    if place is not None:
        return f"{place.passage.publication.file} p. {place.page}"
    is_there = any(find_spans(quote.text, item.passage.text) for item in read)
    return AMBIGUOUS if is_there else NOWHERE


def _sum(counts: Sequence[int]) -> int | None:
    return sum(counts) if counts else None
