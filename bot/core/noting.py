"""Notes, while a question is answered, what its record will tell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field

from bot.core.citing import JudgedClaim
from bot.core.exchange import AuxiliaryCall, Prompt
from bot.core.models import (
    Answer,
    Evidence,
    LocatedQuote,
    Passage,
    Question,
    Quote,
    Rejected,
    Retrieval,
)
from bot.core.quotes import find_spans
from bot.core.records import (
    AuxiliaryCallRecord,
    CandidateRecord,
    ClaimRecord,
    DraftRecord,
    PromptRecord,
    QuestionRecord,
    QuoteRecord,
    SearchRecord,
    ShownCitationRecord,
    TokensRecord,
)
from bot.core.writing import Attempt

NOWHERE = "stands in no passage word for word"
AMBIGUOUS = "too short: stands at several places"


@dataclass(slots=True)
class SearchTrace:
    """One search, and what was read of it."""

    question: Question
    retrieval: Retrieval
    read: int = 0
    """How many of the first candidates were read."""
    evidence: Sequence[Evidence] = ()
    """These, and what stands around them."""
    is_enough: bool | None = None


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
        return self.searches[-1].evidence if self.searches else ()

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
