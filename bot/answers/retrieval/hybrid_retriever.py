"""Hybrid search in one channel, by BM25 and by vectors, for every wording of a question.

A question is searched for in its own words, with the glossary's synonyms, and in a model's rewordings (query
expansion); the candidates of all wordings are merged, each with its best scores. The index stores a
publication's figures after its chunks: hits are split into both.
"""

from __future__ import annotations

import asyncio
import logging
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import partial
from itertools import chain
from typing import Protocol

from bot.answer_settings import AnswerSettings
from bot.answers.retrieval.ranking import (
    Ranking,
    fuse,
    mark_near_duplicates,
    rank_order,
    truncate_keeping_exact,
)
from bot.answers.understanding.answer_types import figure_question
from bot.answers.understanding.question_terms import (
    FUNCTION_TERMS,
    embedded_text,
    find_synonyms,
    holds_exactly,
    rare_words,
    searched_terms,
    weighted_terms,
)
from bot.answers.understanding.spelling_correction import (
    SpellingCorrector,
    alternatives,
    correct_text,
    unknown_words,
)
from bot.core.errors import ModelError
from bot.core.models import AnalyzedQuestion, FoundFigure, Passage, Question, Rejected, Retrieval
from bot.core.ports import Retriever
from storage.chat.glossary import GlossaryFile
from storage.embeddings.base import QueryEmbedder
from storage.index.base import FIGURE_FACET, Hit, PendingVector, document_facet
from storage.index.live_index import LiveIndex, SearchHits
from storage.task_group import gather_or_cancel
from storage.text.analyzer import analyze

log = logging.getLogger(__name__)

_WORD = re.compile(r"\S+")
_Key = tuple[str, int]

# Extra hits requested, because figures are among them; and the maximum ever requested.
EXTRA_FIGURES, MAX_HITS_ASKED = 12, 1000

# A code, number or name in more chunks is not rare enough to be kept at any rank.
MAX_EXACT_CHUNKS = 6


def chunks_of(found: SearchHits, limit: int) -> SearchHits:
    """Return the best ``limit`` chunks of each leg."""
    words, vectors = (
        [hit for hit in leg if not _is_figure(hit, found)][:limit] for leg in (found.words, found.vectors)
    )
    shown = {hit.publication for hit in chain(words, vectors)}
    publications = {id_: one for id_, one in found.publications.items() if id_ in shown}
    return SearchHits(words, vectors, publications, frozenset(shown & set(found.words_only)), found.not_live)


def lacks_chunks(found: SearchHits, asked: int, limit: int) -> bool:
    """True if figures crowded chunks out of a leg.

    Args:
        asked: hits requested from each leg.
        limit: how many of them should be chunks.
    """
    return any(
        len(leg) >= asked and sum(not _is_figure(hit, found) for hit in leg) < limit
        for leg in (found.words, found.vectors)
    )


def figures_of(found: SearchHits) -> tuple[FoundFigure, ...]:
    """Return every figure once, the most similar first; those found by words alone come last."""
    words, vectors = (
        {(hit.publication, hit.ordinal): hit.score for hit in leg if _is_figure(hit, found)}
        for leg in (found.words, found.vectors)
    )
    figures = [
        FoundFigure(one, ordinal - one.chunks, words.get(key), vectors.get(key))
        for key in {**vectors, **words}
        for ordinal, one in [(key[1], found.publications[key[0]])]
    ]
    return tuple(sorted(figures, key=lambda one: (-(one.vector or 0.0), -(one.bm25 or 0.0))))


def _is_figure(hit: Hit, found: SearchHits) -> bool:
    return hit.ordinal >= found.publications[hit.publication].chunks


class HybridRetriever:
    """Searches one channel by BM25 and by cosine similarity."""

    def __init__(self, search: LiveIndex, embedder: QueryEmbedder, settings: AnswerSettings) -> None:
        self._search = search
        self._embedder = embedder
        self._ranking = Ranking(settings)
        self._settings = settings

    async def retrieve(self, question: Question) -> Retrieval:
        """Return the best candidates of the question's channel, best first; none in an unknown channel.

        Raises:
            storage.errors.InfrastructureError: an engine is down or too slow.
        """
        terms = tuple(analyze(question.text))
        weighed = weighted_terms(question.text)
        embedded = embedded_text(question.text, question.synonyms)
        making = asyncio.create_task(self._vector(embedded))
        try:
            (found, figures), (chunks, holding) = await gather_or_cancel(
                self._find(question, searched_terms(terms, question.synonyms), making),
                self._search.document_frequencies(question.channel, weighed),
            )
            compared = await making if found.vectors else None
        finally:
            making.cancel()
        idf = {term: inverse_frequency(chunks, holding.get(term, 0)) for term in terms if term in weighed}
        analyzed = AnalyzedQuestion(
            question.text,
            terms,
            idf,
            compared,
            question.synonyms,
            typed=question.typed,
            language=question.language,
            unknown=_unknown(question, holding) if chunks else (),
        )
        rare = rare_words(analyzed, rarity=inverse_frequency(chunks, MAX_EXACT_CHUNKS))
        ranked = self._ranking.rank(
            analyzed,
            rare,
            fuse(found, self._settings.words_weight),
            set(found.publications.values()),
            question.asked_at.date(),
        )
        passages = tuple(
            truncate_keeping_exact(ranked.passages, self._settings.candidates, holds_exactly(rare))
        )
        chosen = set(map(id, passages))  # by identity, because comparing contents is slow
        below = [Rejected(one) for one in ranked.passages if id(one) not in chosen]
        return Retrieval(
            analyzed,
            passages,
            figures,
            rejected=(*ranked.copies, *below),
            not_live=found.not_live,
            embedded=self._embedder.count(embedded),
        )

    async def _vector(self, text: str) -> Sequence[float]:
        vector: Sequence[float] = (await self._embedder.aembed([text]))[0]
        return vector

    async def _find(
        self, question: Question, terms: Sequence[str], vector: PendingVector
    ) -> tuple[SearchHits, tuple[FoundFigure, ...]]:
        """Return the chunks of both legs, as many as if there were no figures, and the figures.

        For a question about a figure, figures are searched for separately.
        """
        find = partial(self._search.search, question.channel, terms, vector)
        allowed = question.documents
        scope = () if allowed is None else (frozenset(map(document_facet, allowed)),)
        wanted = 2 * self._settings.candidates
        asked = wanted + EXTRA_FIGURES
        found = await find(scope, limit=asked)
        while lacks_chunks(found, asked, wanted) and asked < MAX_HITS_ASKED:
            asked *= 2
            found = await find(scope, limit=asked)
        chunks, figures = chunks_of(found, wanted), figures_of(found)
        if figure_question(question.text):
            figures = figures_of(await find((*scope, frozenset({FIGURE_FACET})), limit=wanted))
        return chunks, figures


def _unknown(question: Question, holding: Mapping[str, int]) -> tuple[str, ...]:
    """Return the words that no chunk contains; usually none, so that the question is not even tokenised."""
    if all(holding.values()):
        return ()
    explained = {term for synonym in question.synonyms for term in synonym.terms}
    return unknown_words(question.text, holding, explained)


def inverse_frequency(chunks: int, holding: int) -> float:
    """Return BM25's idf of a term in ``holding`` of ``chunks`` chunks; 0 in an empty channel."""
    return max(math.log((chunks + 1) / (holding + 0.5)), 0.0)


class MultiQuery(Protocol):
    """Rewords a question."""

    async def paraphrases(self, question: str) -> Sequence[str]:
        """Return further wordings with the same meaning, within the model's deadline.

        Raises:
            bot.core.errors.ModelError: the model failed, timed out or wrote nothing usable.
        """


class MultiQueryMode(StrEnum):
    """Condition for having a model reword a question."""

    NEVER = "never"
    # Only after a search that found too little.
    ON_MISS = "missed"
    ALWAYS = "always"


class QueryExpansionRetriever:
    """Searches for each wording of a question with another retriever."""

    def __init__(
        self,
        retriever: Retriever,
        glossaries: GlossaryFile,
        multi_query: MultiQuery | None = None,
        *,
        mode: MultiQueryMode = MultiQueryMode.NEVER,
        speller: SpellingCorrector | None = None,
    ) -> None:
        """``speller``: corrects words that the first search does not find; None: they stay as typed."""
        self._retriever = retriever
        self._speller = speller
        self._glossaries = glossaries
        self._multi_query = multi_query
        self._mode = mode

    async def retrieve(self, question: Question) -> Retrieval:
        """Return the candidates of the question and of all its wordings, best first.

        Misspelt words are corrected and the question is searched for again, before anything is judged.

        Raises:
            storage.errors.InfrastructureError: an engine is down or too slow.
        """
        typed = await self._expanded(question)
        unknown = typed.question.unknown
        corrections = (
            await self._speller.correct(question.channel, unknown, question.language)
            if self._speller and unknown
            else ()
        )
        if not corrections:
            return typed
        # The typed spelling is not searched for again: no chunk contains it.
        corrected = await self._expanded(
            replace(
                question,
                text=correct_text(question.text, corrections),
                synonyms=tuple(alternatives(corrections)),
            )
        )
        return replace(
            corrected,
            question=replace(corrected.question, corrections=corrections),
            not_live=typed.not_live + corrected.not_live,
            embedded=typed.embedded + corrected.embedded,
        )

    async def _expanded(self, question: Question) -> Retrieval:
        """Search for the question, with glossary synonyms, and for its rewordings; merge the results."""
        entries = await self._glossaries.entries(question.channel)
        first = content_words(question.text) if question.is_wide else question.text
        texts = [first, *await self._rewordings(question)]
        asked = [
            replace(
                question,
                text=text,
                synonyms=(*question.synonyms, *find_synonyms(text, entries, is_wide=question.is_wide)),
            )
            for text in texts
        ]
        found = await gather_or_cancel(*(self._retriever.retrieve(one) for one in asked))
        return _merged(question.text, found)

    async def _rewordings(self, question: Question) -> Sequence[str]:
        """Return a model's rewordings; none if it fails, because the question itself is enough."""
        is_due = self._mode is MultiQueryMode.ALWAYS or (
            self._mode is MultiQueryMode.ON_MISS and question.is_wide
        )
        if self._multi_query is None or not is_due:
            return ()
        try:
            return await self._multi_query.paraphrases(question.text)
        except ModelError as error:
            log.warning("question=%s query expansion failed: %s", question.id, type(error).__name__)
            return ()


def content_words(text: str) -> str:
    """Return the content words of a question; the whole question if it has none."""
    kept = [word[0] for word in _WORD.finditer(text) if set(analyze(word[0])) - FUNCTION_TERMS]
    return " ".join(kept) or text


def _merged(text: str, found: Sequence[Retrieval]) -> Retrieval:
    first = found[0]
    question = replace(first.question, text=text, paraphrases=tuple(one.question for one in found[1:]))
    if len(found) == 1:
        return replace(first, question=question)
    best: dict[_Key, Passage] = {}
    for passage in (passage for one in found for passage in one.passages):
        key = _key(passage)
        best[key] = _best_of(best[key], passage) if key in best else passage
    deduplicated = list(mark_near_duplicates(sorted(best.values(), key=rank_order)))
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
