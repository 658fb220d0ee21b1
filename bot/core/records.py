"""The canonical record of a question: what was found, read, sent to a model, written, judged and cited."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import datetime
from functools import cache
from typing import Any

from bot.core.plaintext import mend

MAX_PROMPT_CHARS = 400_000
"""Of all prompts of a record together; what goes beyond is cut off, and the record says so."""
MAX_QUESTION_CHARS = 10_000
"""Characters kept of a question, however long it was."""


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
    """A quote of a draft: the words that were claimed, and where they stand."""

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
