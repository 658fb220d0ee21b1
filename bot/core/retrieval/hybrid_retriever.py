"""Finds the passages of one channel that may answer a question, by BM25 and by vectors.

The index holds a publication's figures behind its chunks: hits are split into both.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from functools import partial
from itertools import chain

from bot.core.models import AnalyzedQuestion, FoundFigure, Question, Rejected, Retrieval
from bot.core.retrieval.ranking import USUAL, Ranking, cut
from bot.core.understanding.figure_requests import figure_question
from bot.core.understanding.question_terms import (
    embedded_text,
    holds_exactly,
    rare_words,
    searched_terms,
    weighted_terms,
)
from storage.embeddings.base import QueryEmbedder
from storage.index.base import FIGURE_FACET, Hit, PendingVector, document_facet
from storage.index.live_index import LiveIndex, SearchHits
from storage.text.analyzer import analyze

EXTRA_FIGURES, MAX_HITS_ASKED = 12, 1000
"""Hits asked for beyond the chunks that are wanted, for figures are among them; and the most ever asked."""

EXACT_HOLDERS = 6
"""A code, number or name that more chunks hold than this is not rare enough to be kept at any rank."""


def chunks_of(found: SearchHits, limit: int) -> SearchHits:
    """The best ``limit`` chunks of each leg."""
    words, vectors = (
        [hit for hit in leg if not _is_figure(hit, found)][:limit] for leg in (found.words, found.vectors)
    )
    shown = {hit.publication for hit in chain(words, vectors)}
    publications = {id_: one for id_, one in found.publications.items() if id_ in shown}
    return SearchHits(words, vectors, publications, frozenset(shown & set(found.words_only)), found.not_live)


def is_short(found: SearchHits, asked: int, limit: int) -> bool:
    """Whether figures took places of a leg that chunks should have had.

    Args:
        found: what was found.
        asked: how many hits of each leg were asked for.
        limit: how many of them should be chunks.
    """
    return any(
        len(leg) >= asked and sum(not _is_figure(hit, found) for hit in leg) < limit
        for leg in (found.words, found.vectors)
    )


def figures_of(found: SearchHits) -> tuple[FoundFigure, ...]:
    """Every figure once, the most like the question first; those found by words alone come last."""
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
    """Searches one channel by BM25 and by cosine."""

    def __init__(
        self,
        search: LiveIndex,
        embedder: QueryEmbedder,
        ranking: Ranking = USUAL,
        *,
        candidates: int = 24,
    ) -> None:
        self._search = search
        self._embedder = embedder
        self._ranking = ranking
        self._candidates = candidates

    async def retrieve(self, question: Question) -> Retrieval:
        """The best candidates of the question's channel, best first; none in an unknown channel.

        Raises:
            storage.errors.InfrastructureError: an engine is down or late.
        """
        terms = tuple(analyze(question.text))
        weighed = weighted_terms(question.text)
        embedded = embedded_text(question.text, question.synonyms)
        making = asyncio.create_task(self._vector(embedded))
        try:
            (found, figures), (chunks, holding) = await asyncio.gather(
                self._find(question, searched_terms(terms, question.synonyms), making),
                self._search.document_frequencies(question.channel, weighed),
            )
            compared = await making if found.vectors else None
        finally:
            making.cancel()
        idf = {term: inverse_frequency(chunks, holding.get(term, 0)) for term in terms if term in weighed}
        analyzed = AnalyzedQuestion(
            question.text, terms, idf, compared, question.synonyms, language=question.language
        )
        rare = rare_words(analyzed, rarity=inverse_frequency(chunks, EXACT_HOLDERS))
        ranked = self._ranking.order(analyzed, rare, found, question.asked_at.date())
        passages = tuple(cut(ranked.passages, self._candidates, holds_exactly(rare)))
        chosen = set(map(id, passages))  # comparing them by what they hold takes long
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
        """Chunks of both legs, as many as if there were no figures; and the figures.

        A question that speaks of a figure has them searched by themselves.
        """
        find = partial(self._search.find, question.channel, terms, vector)
        wanted, scope = 2 * self._candidates, _scope(question)
        asked = wanted + EXTRA_FIGURES
        found = await find(scope, limit=asked)
        while is_short(found, asked, wanted) and asked < MAX_HITS_ASKED:
            asked *= 2
            found = await find(scope, limit=asked)
        chunks, figures = chunks_of(found, wanted), figures_of(found)
        if figure_question(question.text):
            figures = figures_of(await find((*scope, frozenset({FIGURE_FACET})), limit=wanted))
        return chunks, figures


def _scope(question: Question) -> tuple[frozenset[str], ...]:
    """What the index compares to keep to the documents that may answer."""
    return () if question.documents is None else (frozenset(map(document_facet, question.documents)),)


def inverse_frequency(chunks: int, holding: int) -> float:
    """BM25's idf of a term that ``holding`` of ``chunks`` chunks hold; 0 in an empty channel."""
    return max(math.log((chunks + 1) / (holding + 0.5)), 0.0)
