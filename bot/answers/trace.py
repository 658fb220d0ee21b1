"""The trace of a question: what was retrieved, read, prompted, drafted, judged and cited.

``Trace`` collects it while the question is answered; ``QuestionRecord`` serialises it to JSON, whose fields
docs/records.md lists.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any
from uuid import UUID

from pydantic import TypeAdapter

from bot.answers.generation.answer_writer import Attempt
from bot.answers.generation.judge import Outcome, Verdict
from bot.answers.generation.quote_selection import RankedQuotes
from bot.answers.retrieval.ranking import rank_order
from bot.answers.understanding.channel_documents import document_day
from bot.answers.verification.claims import JudgedClaim, find_spans
from bot.answers.verification.page_markers import count_marker_tokens
from bot.core.models import (
    COLLECTED_CALLS,
    Answer,
    AuxiliaryCall,
    Citation,
    Evidence,
    Passage,
    Prompt,
    Question,
    Retrieval,
    StageTime,
)
from bot.core.plaintext import replace_invalid_chars, shorten
from bot.core.ports import AnswerListener
from storage.models import LivePublication
from storage.text.token_counts import count_tokens

Json = dict[str, Any]

# Limit for all prompts of a record together; the rest is truncated, and ``is_cut`` says so.
MAX_PROMPT_CHARS = 400_000
# Stored characters of a question.
MAX_QUESTION_CHARS = 10_000
# Top candidates, used to measure the diversity and recency of an answer's sources.
LEADING = 5
# Stored characters of a retrieved passage.
PREVIEW_CHARS = 160

# Scores that order candidates, in turn: lexical, vector, fused, plus document and words, plus age, reranked.
STAGES = ("bm25", "vector", "mix", "relevance", "ranked", "reranked")

NOWHERE = "not word for word in any passage"
AMBIGUOUS = "too short: found in several places"


class TimedListener:
    """Forwards an answer's first sentences and records when they began."""

    def __init__(self, listener: AnswerListener) -> None:
        self._listener = listener
        # Value of ``time.perf_counter()``; None until something is shown.
        self.began: float | None = None

    def show(self, text: str) -> None:
        """Forward the text."""
        self.began = self.began or time.perf_counter()
        self._listener.show(text)


@dataclass(slots=True)
class SearchAttempt:
    """A search of a question: its candidates, the evidence read from them, and the verdict.

    The stages of the pipeline fill it in; the trace stores it.
    """

    question: Question
    retrieval: Retrieval
    # Number of top candidates read.
    passages_read: int = 0
    # These with their context expansion; None if only a figure may answer.
    evidence: Sequence[Evidence] | None = None
    # Quotable parts of the evidence, best first.
    quotes: RankedQuotes | None = None
    # Whether the evidence answers the question; None: not judged.
    verdict: Verdict | None = None
    # Of the documents that are compared, those that answer or come close.
    answering: tuple[UUID, ...] = ()

    @property
    def found_nothing(self) -> bool:
        """True if the judge found nothing that comes close."""
        return self.verdict is not None and self.verdict.outcome is Outcome.NOT_FOUND


@dataclass(slots=True)
class Trace:
    """The trace of one question; every stage adds to it."""

    most_read: int
    searches: list[SearchAttempt] = field(default_factory=list)
    # The search that the answer is based on.
    judged: SearchAttempt | None = None
    attempts: Sequence[Attempt] = ()
    calls: list[AuxiliaryCall] = field(default_factory=list)
    began: float = field(default_factory=time.perf_counter)
    stages: list[StageTime] = field(default_factory=list)

    @contextmanager
    def timing(self, stage: str) -> Iterator[None]:
        """Record how long the block takes, as a run of ``stage``."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.stages.append(StageTime(stage, began, time.perf_counter() - began))

    def seconds_by_stage(self) -> dict[str, float]:
        """Return the seconds spent per stage, in stage order; repeated runs add up."""
        spent = dict.fromkeys((one.name for one in self.stages), 0.0)
        for one in self.stages:
            spent[one.name] += one.seconds
        return spent

    @contextmanager
    def collecting_calls(self) -> Iterator[None]:
        """Collect the auxiliary calls made in this block, including those of tasks started in it."""
        token = COLLECTED_CALLS.set(self.calls)
        try:
            yield
        finally:
            COLLECTED_CALLS.reset(token)

    def search(self, question: Question, retrieval: Retrieval) -> SearchAttempt:
        """Add a search and return it, to be filled in."""
        self.searches.append(SearchAttempt(question, retrieval))
        return self.searches[-1]

    def search_as_json(self, search: SearchAttempt) -> Json:
        """Return a search and its outcome as JSON."""
        retrieval, documents = search.retrieval, search.question.documents
        places = _places([*retrieval.passages, *(one.passage for one in retrieval.rejected)])
        candidates = [
            _candidate(passage, rank, self._outcome(rank, search), next(places))
            for rank, passage in enumerate(retrieval.passages, start=1)
        ]
        for one in retrieval.rejected:
            copy = one.repeats
            outcome = f"repeats {_place(copy.publication, copy.first_page)}" if copy else "rank too low"
            candidates.append(_candidate(one.passage, None, outcome, next(places)))
        return {
            "question": search.question.text[:MAX_QUESTION_CHARS],
            "is_wide": search.question.is_wide,
            "terms": retrieval.question.terms,
            "corrections": [[one.typed, one.word] for one in retrieval.question.corrections],
            "unknown": retrieval.question.unknown,
            "wordings": [one.text for one in retrieval.question.paraphrases],
            "documents": None if documents is None else len(documents),
            "filter": list(search.question.filter.conditions) if search.question.filter else None,
            "not_live": retrieval.not_live,
            "web": [asdict(one) for one in retrieval.web],
            "verdict": search.verdict.as_json() if search.verdict else None,
            "candidates": candidates,
            "neighbours": [_origin(one.passage) for one in (search.evidence or ())[search.passages_read :]],
        }

    def _outcome(self, rank: int, search: SearchAttempt) -> str:
        """Return the outcome of the candidate at ``rank``."""
        if search.verdict is None:
            return "not needed: a figure, or nothing, is the answer"
        if rank > search.passages_read:
            is_full = search.passages_read == self.most_read
            return f"not in the top {self.most_read}" if is_full else "over the token budget"
        return "read"

    def tokens_as_json(self) -> Json:
        """Return the token usage; a model's as its endpoint reports it, None if it does not."""
        drafts = [one.draft for one in self.attempts if one.draft]
        usages = [one for one in (*(one.usage for one in drafts), *(one.usage for one in self.calls)) if one]
        embedded = sum(
            one.retrieval.embedded + (one.quotes.embedded if one.quotes else 0) for one in self.searches
        )
        return {
            "prompt": sum(one.prompt for one in usages) if usages else None,
            "completion": sum(one.completion for one in usages) if usages else None,
            "embedding": embedded,
        }


@dataclass(frozen=True, slots=True)
class QuestionRecord:
    """An answered question with its trace."""

    question: Question
    answer: Answer
    trace: Trace

    def as_json(self) -> Json:
        """Return a value that JSON and any database can hold.

        Prompts are truncated to ``MAX_PROMPT_CHARS`` in total, auxiliary calls first. Links are left out: a
        link opens its page to anyone who has it.
        """
        question, answer, trace = self.question, self.answer, self.trace
        read = (trace.judged.evidence if trace.judged else None) or ()
        drafts = [_draft(one, read) for one in trace.attempts]
        auxiliary_calls = [_AUXILIARY_CALL.dump_python(one, exclude={"usage"}) for one in trace.calls]
        prompts = [prompt for one in (*drafts, *auxiliary_calls) for prompt in one["prompts"]]
        is_cut = _cut_prompts(prompts)
        for prompt in prompts:
            prompt["tokens"] = {
                "system": count_tokens(prompt["system"]),
                "user": count_tokens(prompt["user"]),
                "markers": count_marker_tokens(prompt["user"]),
            }
        record: Json = _sanitized(
            {
                "question_id": question.id,
                "channel_id": question.conversation_channel.id,
                "answered_from": {
                    "channel_id": question.channel.id,
                    "channel": question.channel.name,
                    "asked": [one.channel.name for one in question.members],
                },
                "asked_at": question.asked_at.isoformat(),
                "question": question.text[:MAX_QUESTION_CHARS],
                "searched": (answer.standalone or question.text)[:MAX_QUESTION_CHARS],
                "state": answer.state.value,
                "answer": answer.text,
                "searches": [trace.search_as_json(search) for search in trace.searches],
                "top_sources": _leading(trace.judged),
                "auxiliary_calls": auxiliary_calls,
                "drafts": drafts,
                "citations": [_citation(one) for one in answer.citations],
                "figures": [{"file": one.file, "page": one.page} for one in answer.figures],
                "tokens": trace.tokens_as_json(),
                "milliseconds": asdict(answer.milliseconds),
                "is_cut": is_cut,
            }
        )
        return record

    def log_line(self) -> str:
        """Return ids and counts for the log, never a word of the question or a document."""
        question, answer, tokens = self.question, self.answer, self.trace.tokens_as_json()
        spent = self.trace.seconds_by_stage().items()
        stages = "".join(f"{name}_ms={1000 * seconds:.0f} " for name, seconds in spent)
        return (
            f"question={question.id} channel={question.channel.id} "
            f"channel_type={(question.chat or question.channel).platform} state={answer.state} candidates="
            f"{len(answer.passages)} citations={len(answer.citations)} figures={len(answer.figures)} "
            f"prompt_tokens={tokens['prompt'] or 0} completion_tokens={tokens['completion'] or 0} "
            f"{stages}total_ms={answer.milliseconds.total}"
        )


_NUMBERS = (int, float)
_AUXILIARY_CALL = TypeAdapter(AuxiliaryCall)
_PROMPTS = TypeAdapter(Sequence[Prompt])


def _citation(one: Citation) -> Json:
    """Return a citation as in ``footnote ask --json``, without its link and box coordinates."""
    return {
        "number": one.number,
        "kind": one.kind,
        "file": one.file,
        "page": one.page or None,
        "section": list(one.section),
        "quote": one.quote,
        "boxes": len(one.boxes),
        **({"host": one.host, "fetched": one.fetched} if one.host else {"id": one.citation_id}),
    }


def _leading(judged: SearchAttempt | None) -> list[Json]:
    first = judged.retrieval.passages[:LEADING] if judged else ()
    return [{"file": one.publication.file, "day": _day(one)} for one in first]


def _day(passage: Passage) -> str | None:
    """Return the date of the passage's document, in ISO 8601."""
    day = document_day(passage.publication.metadata, passage.publication.arrived_at)
    return day.day.isoformat() if day else None


def _has_pages(publication: LivePublication) -> bool:
    """True unless the source is a web page other than a PDF."""
    return publication.anchors is None


def _place(publication: LivePublication, page: int) -> str:
    return f"{publication.file} p. {page}" if _has_pages(publication) else publication.file


def _places(passages: Sequence[Passage]) -> Iterator[dict[str, int]]:
    """Yield each passage's rank, from 1, by each of its scores, in the order of STAGES."""
    scores = [_stage_scores(one) for one in passages]
    places: list[dict[str, int]] = [{} for _ in passages]
    for stage in STAGES:
        scored = sorted(
            (*rank_order(passage, score[stage]), at)
            for at, (passage, score) in enumerate(zip(passages, scores, strict=True))
            if stage in score
        )
        for place, (*_, at) in enumerate(scored, start=1):
            places[at][stage] = place
    return iter(places)


def _stage_scores(passage: Passage) -> dict[str, float]:
    """Return a passage's score in each stage; one that was not reranked keeps its search score."""
    found = {"bm25": passage.bm25, "vector": passage.vector, "ranked": passage.score, **dict(passage.parts)}
    return {name: score for name, score in found.items() if score is not None}


def _origin(passage: Passage) -> Json:
    """Return the location of a passage, as needed to open it."""
    publication = passage.publication
    has_pages = _has_pages(publication)
    return {
        "file": publication.file,
        "page": passage.first_page if has_pages else None,
        "last_page": passage.last_page if has_pages else None,
        "ordinal": passage.ordinal,
        "version": None if publication.web else publication.version_id,
        "reading": None if publication.web else publication.reading_id.hex,
    }


def _candidate(passage: Passage, rank: int | None, outcome: str, places: Mapping[str, int]) -> Json:
    """Return a retrieved passage as JSON; ``rank``, from 1, is None if it is no candidate.

    ``outcome``: ``read``, or why not: ``rank too low``, ``repeats FILE p. N``, ``over the token budget`` ...
    """
    return {
        **_origin(passage),
        "heading": list(passage.heading_path),
        "preview": shorten(passage.text, PREVIEW_CHARS),
        "day": _day(passage),
        "places": dict(places),
        "score": passage.score,
        "bm25": passage.bm25,
        "vector": passage.vector,
        "parts": dict(passage.parts),
        "rank": rank,
        "outcome": outcome,
        **({"fetched": str(passage.publication.web.fetched_at)} if passage.publication.web else {}),
    }


def _draft(attempt: Attempt, read: Sequence[Evidence]) -> Json:
    """Return a draft as JSON, or the error that replaced it."""
    source = attempt.draft or attempt.error
    return {
        "author": "quotes" if attempt.draft and attempt.draft.verbatim else "model",
        "prompts": _PROMPTS.dump_python(source.prompts if source else ()),
        "error": type(attempt.error).__name__ if attempt.error else None,
        "is_sufficient": attempt.draft.is_sufficient if attempt.draft else None,
        "claims": [_claim(one, read) for one in attempt.judged.judged] if attempt.judged else [],
    }


def _claim(one: JudgedClaim, read: Sequence[Evidence]) -> Json:
    """Return a sentence of a draft as JSON, with each quote as claimed and as located, and its fault."""
    quotes = []
    for quote, place in zip(one.claim.quotes, one.places, strict=True):
        if place is not None:
            reason = _place(place.passage.publication, place.page)
        else:
            is_there = any(find_spans(quote.text, item.passage.text) for item in read)
            reason = AMBIGUOUS if is_there else NOWHERE
        quotes.append(
            {"passage": quote.passage, "text": quote.text, "is_located": place is not None, "reason": reason}
        )
    return {"text": one.claim.text, "quotes": quotes, "fault": one.fault}


def _cut_prompts(prompts: Iterable[Json]) -> bool:
    """Truncate the prompts, in order, to ``MAX_PROMPT_CHARS`` in total; return whether any was."""
    left, is_cut = MAX_PROMPT_CHARS, False
    for prompt in prompts:
        for part in ("system", "user"):
            is_cut = is_cut or len(prompt[part]) > left
            prompt[part] = prompt[part][:left]
            left -= len(prompt[part])
    return is_cut


def _sanitized(value: Any) -> Any:
    if isinstance(value, str):
        return replace_invalid_chars(value)
    if isinstance(value, dict):  # most values are numbers: skipping them here saves a call for each
        return {key: one if isinstance(one, _NUMBERS) else _sanitized(one) for key, one in value.items()}
    return [_sanitized(one) for one in value] if isinstance(value, list | tuple) else value
