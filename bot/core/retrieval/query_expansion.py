"""Searches for a question in more words than its own: those of the glossary, and a model's wordings.

The candidates of all wordings are merged, each with the best scores it got in any of them.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Protocol

from bot.core.errors import ModelError
from bot.core.models import Passage, Question, Rejected, Retrieval
from bot.core.ports import Retriever
from bot.core.retrieval.ranking import rank_order, with_duplicates
from bot.core.understanding.question_terms import FUNCTION_TERMS, find_synonyms
from storage.chat.glossary import GlossaryFile
from storage.task_group import gather_or_cancel
from storage.text.analyzer import analyze

log = logging.getLogger(__name__)

_WORD = re.compile(r"\S+")
_Key = tuple[str, int]


class MultiQuery(Protocol):
    """Says a question in other words."""

    async def wordings(self, question: str) -> Sequence[str]:
        """Further wordings that mean the same, within a deadline of its own.

        Raises:
            bot.core.errors.ModelError: the model failed, was late or wrote nothing usable.
        """


class MultiQueryMode(StrEnum):
    """When a model rewords a question for the search."""

    NEVER = "never"
    MISSED = "missed"
    """Only after a search that found too little."""
    ALWAYS = "always"


class QueryExpansionRetriever:
    """Hands each wording of a question to another retriever."""

    def __init__(
        self,
        retriever: Retriever,
        glossaries: GlossaryFile,
        multi_query: MultiQuery | None = None,
        *,
        rewords: MultiQueryMode = MultiQueryMode.NEVER,
    ) -> None:
        self._retriever = retriever
        self._glossaries = glossaries
        self._multi_query = multi_query
        self._rewords = rewords

    async def retrieve(self, question: Question) -> Retrieval:
        """The candidates of the question and of all its further wordings, best first.

        Raises:
            storage.errors.InfrastructureError: an engine is down or late.
        """
        entries = await self._glossaries.entries(question.channel)
        first = content_words(question.text) if question.is_wide else question.text
        texts = [first, *await self._further(question)]
        asked = [
            replace(question, text=text, synonyms=find_synonyms(text, entries, is_wide=question.is_wide))
            for text in texts
        ]
        found = await gather_or_cancel(*(self._retriever.retrieve(one) for one in asked))
        return _merged(question.text, found)

    async def _further(self, question: Question) -> Sequence[str]:
        """A model's wordings; none when it fails, for the question has words of its own."""
        is_due = self._rewords is MultiQueryMode.ALWAYS or (
            self._rewords is MultiQueryMode.MISSED and question.is_wide
        )
        if self._multi_query is None or not is_due:
            return ()
        try:
            return await self._multi_query.wordings(question.text)
        except ModelError as error:
            log.warning("question=%s is searched for in its own words: %s", question.id, type(error).__name__)
            return ()


def content_words(text: str) -> str:
    """A question without the words that only ask or join; one that has no others stays whole."""
    kept = [word[0] for word in _WORD.finditer(text) if set(analyze(word[0])) - FUNCTION_TERMS]
    return " ".join(kept) or text


def _merged(text: str, found: Sequence[Retrieval]) -> Retrieval:
    first = found[0]
    question = replace(first.question, text=text, wordings=tuple(one.question for one in found[1:]))
    if len(found) == 1:
        return replace(first, question=question)
    best: dict[_Key, Passage] = {}
    for passage in (passage for one in found for passage in one.passages):
        key = _key(passage)
        best[key] = _best_of(best[key], passage) if key in best else passage
    deduplicated = list(with_duplicates(sorted(best.values(), key=rank_order)))
    below = {_key(one.passage): one for retrieval in found for one in retrieval.rejected}
    rejected = [one for key, one in below.items() if key not in best]
    return Retrieval(
        question,
        tuple(passage for passage, earlier in deduplicated if earlier is None),
        first.figures,
        rejected=(*(Rejected(*one) for one in deduplicated if one[1]), *rejected),
        not_live=sum(one.not_live for one in found),
        embedded=sum(one.embedded for one in found),
    )


def _key(passage: Passage) -> _Key:
    return str(passage.publication.id), passage.ordinal


def _best_of(one: Passage, other: Passage) -> Passage:
    return replace(
        one,
        score=max(one.score, other.score),
        bm25=_higher(one.bm25, other.bm25),
        vector=_higher(one.vector, other.vector),
    )


def _higher(one: float | None, other: float | None) -> float | None:
    return max((score for score in (one, other) if score is not None), default=None)
