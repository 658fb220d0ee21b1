"""Finds the passages of one channel that may answer a question, by words and by meaning."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from uuid import UUID

from bot.core.editions import outdated
from bot.core.exactness import holds_exactly, identified_documents, rare_words
from bot.core.figure_hits import ChunkHits, chunks_of, figures_of, is_short
from bot.core.figure_questions import figure_question
from bot.core.fusion import cut, mix, rank_order
from bot.core.likeness import distinct
from bot.core.models import AnalyzedQuestion, FoundFigure, Passage, Question, Retrieval
from bot.core.naming import named_documents
from bot.core.ports import ChannelSearch, Embedder, FoundChunks
from storage.analyzer import analyze
from storage.index.contract import FIGURE_FACET, document_facet

FIGURES_BESIDE, MOST_ASKED = 24, 1000
"""Hits asked for beyond the chunks that are wanted, for figures stand among them; and the most ever asked."""

NAMED_WEIGHT = 0.25
"""What being the document that the question names or singles out adds to a relevance of at most 1."""

OUTDATED_SHARE = 0.8
"""What the relevance of a passage counts when another edition of its procedure is newer: one that is
clearly better, or whose document the question names, still comes first."""

EXACT_HOLDERS = 6
"""A code, number or name that more chunks hold than this is not rare enough to be kept at any rank."""


class HybridRetriever:
    """Searches one channel by BM25 and by cosine and mixes the two scores."""

    def __init__(
        self, search: ChannelSearch, embedder: Embedder, *, candidates: int = 24, words_weight: float = 0.6
    ) -> None:
        self._search = search
        self._embedder = embedder
        self._candidates = candidates
        self._words_weight = words_weight

    async def retrieve(self, question: Question) -> Retrieval:
        """The best candidates of the question's channel, best first; none in an unknown channel.

        Raises:
            storage.errors.InfrastructureError: an engine is down or late.
        """
        terms = tuple(analyze(question.text))
        vector = (await self._embedder.aembed([question.text]))[0]
        (found, figures), (chunks, holding) = await asyncio.gather(
            self._find(question, terms, vector),
            self._search.document_frequencies(question.channel, set(terms)),
        )
        idf = {term: inverse_frequency(chunks, holding.get(term, 0)) for term in terms}
        analyzed = AnalyzedQuestion(question.text, terms, idf, vector if found.vectors else None)
        rare = rare_words(analyzed, rarity=inverse_frequency(chunks, EXACT_HOLDERS))
        ranked = self._ranked(analyzed, rare, found, question.asked_at.date())
        passages = tuple(cut(ranked, self._candidates, holds_exactly(rare)))
        return Retrieval(analyzed, passages, figures)

    async def _find(
        self, question: Question, terms: Sequence[str], vector: Sequence[float]
    ) -> tuple[ChunkHits, tuple[FoundFigure, ...]]:
        """Chunks of both legs, as many as if there were no figures; and the figures.

        A question that speaks of a figure has them searched by themselves.
        """
        find = partial(self._search.find, question.channel, terms, vector)
        wanted, scope = 2 * self._candidates, _scope(question)
        asked = wanted + FIGURES_BESIDE
        found = await find(scope, limit=asked)
        while is_short(found, asked, wanted) and asked < MOST_ASKED:
            asked *= 2
            found = await find(scope, limit=asked)
        chunks, figures = chunks_of(found, wanted), figures_of(found)
        if figure_question(question.text):
            figures = figures_of(await find((*scope, frozenset({FIGURE_FACET})), limit=wanted))
        return chunks, figures

    def _ranked(
        self, question: AnalyzedQuestion, rare: Sequence[str], found: FoundChunks, today: date
    ) -> list[Passage]:
        passages = mix(found, self._words_weight)
        if old := outdated(found.publications.values(), today):
            passages = sorted((_holding_back(passage, old) for passage in passages), key=rank_order)
        named = named_documents(question.terms, set(found.publications.values()))
        identified = identified_documents(rare, passages)
        shares = {id_: max(share, identified.get(id_, 0.0)) for id_, share in named.items()}
        if any(shares.values()):
            preferred = (_preferring(passage, shares[passage.publication.id]) for passage in passages)
            passages = sorted(preferred, key=rank_order)
        return distinct(passages)


def _scope(question: Question) -> tuple[frozenset[str], ...]:
    """What the index compares to keep to the documents that may answer."""
    return () if question.documents is None else (frozenset(map(document_facet, question.documents)),)


def inverse_frequency(chunks: int, holding: int) -> float:
    """BM25's idf of a term that ``holding`` of ``chunks`` chunks hold; 0 in an empty channel."""
    return max(math.log((chunks + 1) / (holding + 0.5)), 0.0)


def _holding_back(passage: Passage, outdated: Collection[UUID]) -> Passage:
    share = OUTDATED_SHARE if passage.publication.id in outdated else 1.0
    return replace(passage, score=passage.score * share)


def _preferring(passage: Passage, share: float) -> Passage:
    return replace(passage, score=(passage.score + NAMED_WEIGHT * share) / (1 + NAMED_WEIGHT))
