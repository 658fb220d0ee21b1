"""Adds passages of approved web pages to those of the documents, where a question opens their domains.

A page is fetched long before: what is not there yet has no part in the answer. Pages are ranked among
themselves as documents are, and take their places among those by their scores, behind what is as near.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from bot.core.models import OpenedWeb, Passage, Question, Retrieval
from bot.core.ports import Retriever
from bot.core.retrieval.ranking import USUAL, Ranking, fuse, rank_order
from bot.core.understanding.question_terms import searched_terms
from bot.core.understanding.web_domains import opened_domains
from storage.text.analyzer import analyze
from storage.text.sentences import split_units
from storage.web_pages.page_index import WebPageIndex
from storage.web_pages.page_store import WebPageStore, approved_pages
from storage.web_pages.web_sources import WebSourcesFile

CANDIDATES = 24
"""Chunks of the opened domains that are ranked."""
SAME_COSINE = 0.01
"""What is no further from the question than this is as near."""
MAX_PASSAGES = 3
"""Passages of web pages beside those of documents."""


@dataclass(frozen=True, slots=True)
class WebPolicy:
    """When the web has a part in an answer, and how large a one."""

    hits: int = 2
    """Distinct keywords of a domain that open it."""
    domains: int = 2
    """Domains that one question opens."""
    share: float = 0.95
    """What the score of a web page counts beside a document's."""
    snippet_words: int = 80
    """Words of a page that a model or a quote gets; the sentence that goes beyond is left out."""


class WebRetriever:
    """A retriever that also looks into the pages of the domains that a question opens."""

    def __init__(
        self,
        retriever: Retriever,
        sources: WebSourcesFile,
        store: WebPageStore,
        index: WebPageIndex,
        *,
        ranking: Ranking = USUAL,
        policy: WebPolicy = WebPolicy(),
    ) -> None:
        """``retriever`` finds the documents' passages, and says how the question is understood."""
        self._retriever = retriever
        self._sources = sources
        self._store = store
        self._index = index
        self._ranking = ranking
        self._policy = policy

    async def retrieve(self, question: Question) -> Retrieval:
        """The candidates of the documents, and among them the best of the web pages.

        A question that is kept to certain documents, or that nobody asked, opens nothing.

        Raises:
            storage.errors.InfrastructureError: an engine is down or late.
        """
        retrieval = await self._retriever.retrieve(question)
        if question.documents is not None or question.is_trial:
            return retrieval
        policy, asked = self._policy, retrieval.question
        domains = (await self._sources.current()).of(question.channel)
        opened = opened_domains(question.text, domains, asked.synonyms, hits=policy.hits, most=policy.domains)
        if not opened:
            return retrieval
        urls = await approved_pages([one.domain for one in opened], self._store)
        terms = searched_terms(asked.terms, asked.synonyms)
        found = await self._index.find(question.channel.id, urls, terms, asked.vector, CANDIDATES)
        ranked = self._ranking.order(
            asked,
            (),
            fuse(found, self._ranking.words_weight),
            set(found.publications.values()),
            question.asked_at.date(),
        )
        web = [self._shown(one, retrieval) for one in ranked.passages[:MAX_PASSAGES]]
        return replace(
            retrieval,
            passages=tuple(sorted((*retrieval.passages, *web), key=rank_order)),
            web=tuple(OpenedWeb(one.domain.name, one.keywords) for one in opened),
        )

    def _shown(self, passage: Passage, documents: Retrieval) -> Passage:
        """What a model or a quote gets of it, behind every document's passage that is as near in meaning.

        Cosines of two collections can be compared, which their other scores cannot.
        """
        near = passage.vector
        equals = [
            one.score
            for one in documents.passages
            if near is not None and one.vector is not None and one.vector > near - SAME_COSINE
        ]
        score = self._policy.share * min([passage.score, *([max(equals)] if equals else [])])
        text = snippet(passage.text, documents.question.idf, self._policy.snippet_words)
        return replace(passage, text=text, score=score)


def snippet(text: str, weights: Mapping[str, float], words: int) -> str:
    """The best part of a text: whole sentences that follow one another, of at most so many words.

    The best one holds most of the question's weight, and stands first of equals; a single sentence may be
    longer. ``weights``: term of the question -> idf.
    """
    if len(text.split()) <= words:
        return text
    units = split_units(text)
    parts = []
    for first, unit in enumerate(units):
        fitting = (
            one.end for one in reversed(units[first:]) if len(text[unit.start : one.end].split()) <= words
        )
        parts.append(text[unit.start : next(fitting, unit.end)])
    held = [sum(weights.get(term, 0.0) for term in set(analyze(part))) for part in parts]
    return parts[held.index(max(held))]
