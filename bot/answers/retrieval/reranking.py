"""Reranks the candidates of a search, and gathers the evidence for an answer (context expansion).

A reranker that fails or times out changes nothing. The default one needs no model: a passage is as similar to
a question as its most similar sentence. The vector of a whole passage blurs what its sentences say; each
sentence was embedded when its PDF was read, so comparing them costs no embedding. Source: Dai & Callan,
"Deeper Text Understanding for IR with Contextual Neural Language Modeling" (2019), whose MaxP scores a
document by its best part.

The evidence of a question consists of the passages that an answerer reads and of the text around them: one
chunk forward and one back within the section, and the rest of a table.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from statistics import mean
from typing import Protocol
from uuid import UUID

import numpy as np

from bot.answer_settings import AnswerSettings
from bot.answers.retrieval.ranking import MIN_COSINE_SPREAD, min_max_scaled, rank_order
from bot.answers.understanding.answer_types import spans_documents
from bot.core.errors import RerankerError
from bot.core.models import AnalyzedQuestion, Evidence, Passage, Question, Retrieval
from bot.core.ports import Retriever
from storage.embeddings.base import QueryEmbedder, Vectors
from storage.errors import InfrastructureError
from storage.models import Chunk, LivePublication
from storage.queues.reading_repair import SelfHealingReadings, SentenceVectorStore
from storage.text.analyzer import TermSet, index_terms
from storage.text.sentences import Quotable
from storage.text.token_counts import count_tokens

log = logging.getLogger(__name__)

# Share of a passage's score that its neighbours get.
NEIGHBOUR_SHARE = 0.9

# Maximum chunks for which a table is followed in each direction.
MAX_TABLE_CHUNKS = 4
# Maximum chunks for which a requested list is followed in each direction.
MAX_LIST_CHUNKS = 4

# (passage, part of its text).
VectorUnit = tuple[Passage, Quotable]


class SentenceVectors:
    """Looks up sentence vectors, and embeds the missing ones in one batch."""

    def __init__(self, embedder: QueryEmbedder, kept: SentenceVectorStore | None) -> None:
        """``kept``: vectors stored when documents were read; None: none are."""
        self._embedder = embedder
        self._kept = kept

    async def lookup_or_embed(
        self, units: Sequence[VectorUnit], *, max_embedded: int
    ) -> tuple[list[Vectors | None], int]:
        """Return (L2-normalised vector of each unit, None beyond ``max_embedded`` new ones; tokens embedded).

        Raises:
            storage.errors.InfrastructureError: readings are unavailable, or the embedder is too slow.
        """
        found: list[Vectors | None] = [None] * len(units)
        if self._kept is not None:
            places = list(dict.fromkeys(chunk_key(one) for one, _ in units if not one.publication.web))
            kept = dict(zip(places, await self._kept.vectors(places), strict=True))
            found = [kept.get(chunk_key(one), {}).get((unit.start, unit.end)) for one, unit in units]
        missing = [place for place, vector in enumerate(found) if vector is None][:max_embedded]
        texts = [units[place][1].text for place in missing]
        made = await self._embedder.aembed(texts) if texts else ()
        for place, vector in zip(missing, made, strict=True):
            found[place] = vector
        return found, sum(map(self._embedder.count, texts))


class SentenceReranker:
    """Scores a passage by its sentence most similar to the question (MaxP)."""

    def __init__(self, kept: SentenceVectorStore) -> None:
        """``kept``: vectors stored when documents were read."""
        self._kept = kept

    async def relevance(self, question: AnalyzedQuestion, passages: Sequence[Passage]) -> Sequence[float]:
        """Return the highest cosine of each passage; one without sentence vectors gets the mean of all.

        Raises:
            RerankerError: readings are unavailable.
        """
        if question.vector is None:
            return [0.0] * len(passages)
        asked = np.asarray(question.vector, dtype=np.float32)
        try:
            kept = await self._kept.vectors(list(map(chunk_key, passages)))
        except InfrastructureError as error:
            raise RerankerError(f"sentence vectors unavailable: {type(error).__name__}") from error
        nearest = _nearest(asked, kept)
        usual = mean(nearest.values()) if nearest else 0.0
        return [nearest.get(place, usual) for place in range(len(passages))]


def _nearest(asked: Vectors, kept: Sequence[Mapping[tuple[int, int], Vectors]]) -> dict[int, float]:
    """Return the highest cosine of each passage that has vectors, by its index."""
    known = {place: vectors for place, vectors in enumerate(kept) if vectors}
    if not known:
        return {}
    cosines = np.stack([vector for vectors in known.values() for vector in vectors.values()]) @ asked
    starts = np.cumsum([0, *map(len, known.values())][:-1])
    return dict(zip(known, np.maximum.reduceat(cosines, starts).tolist(), strict=True))


def chunk_key(passage: Passage) -> tuple[UUID, int, str]:
    """Return the lookup key for the vectors of a passage's parts: its reading, ordinal and text."""
    return passage.publication.reading_id, passage.ordinal, passage.text


class Reranker(Protocol):
    """Scores passages against a question."""

    async def relevance(self, question: AnalyzedQuestion, passages: Sequence[Passage]) -> Sequence[float]:
        """Return how well each passage answers the question, on any scale: higher is better.

        Raises:
            bot.core.errors.RerankerError: it is down or too slow, or returned no valid scores.
        """


class RerankingRetriever:
    """A retriever whose candidates are reordered by a reranker."""

    def __init__(self, retriever: Retriever, reranker: Reranker, settings: AnswerSettings) -> None:
        self._retriever = retriever
        self._reranker = reranker
        self._settings = settings
        is_ours = isinstance(reranker, SentenceReranker)
        self._weight = settings.sentence_weight if is_ours else settings.rerank_weight
        self._min_spread = MIN_COSINE_SPREAD if is_ours else 0.0

    async def retrieve(self, question: Question) -> Retrieval:
        """Return the candidates in their final order, best first.

        Raises:
            storage.errors.InfrastructureError: an engine is down or too slow.
        """
        retrieval = await self._retriever.retrieve(question)
        if len(retrieval.passages) < 2:
            return retrieval
        try:
            scores = await self._judged(
                retrieval.question, retrieval.passages[: self._settings.rerank_candidates]
            )
        except RerankerError as error:
            log.warning("question=%s reranking failed, keeping the search order: %s", question.id, error)
            return retrieval
        ordered = self._ordered(retrieval.passages, scores)
        if spans_documents(question.text):
            ordered = _interleaved(retrieval.passages, ordered)
        return replace(retrieval, passages=ordered)

    async def _judged(self, question: AnalyzedQuestion, passages: Sequence[Passage]) -> Sequence[float]:
        try:
            async with asyncio.timeout(self._settings.rerank_seconds):
                scores = await self._reranker.relevance(question, passages)
        except TimeoutError as error:
            raise RerankerError(f"reranker timed out after {self._settings.rerank_seconds:g} s") from error
        if len(scores) != len(passages) or not all(map(math.isfinite, scores)):
            raise RerankerError("reranker did not return one finite score per passage")
        return scores

    def _ordered(self, passages: Sequence[Passage], scores: Sequence[float]) -> tuple[Passage, ...]:
        """Sort by the blend of both scores; a passage that was not judged gets 0 from the reranker."""
        judged = [*min_max_scaled(scores, self._min_spread), *[0.0] * (len(passages) - len(scores))]
        mixed = [
            replace(
                passage,
                score=(1 - self._weight) * passage.score + self._weight * score,
                parts=(*passage.parts, ("ranked", passage.score), ("reranked", score)),
            )
            for passage, score in zip(passages, judged, strict=True)
        ]
        return tuple(sorted(mixed, key=rank_order))


def _interleaved(before: Sequence[Passage], ordered: Sequence[Passage]) -> tuple[Passage, ...]:
    """Keep the positions of each document, and fill them with its passages in their new order."""
    queues: dict[UUID, list[Passage]] = {}
    for passage in reversed(ordered):
        queues.setdefault(passage.publication.document_id, []).append(passage)
    return tuple(queues[passage.publication.document_id].pop() for passage in before)


def reranker_text(passage: Passage) -> str:
    """Return a passage as a reranker reads it: title and headings, then its text."""
    head = " > ".join(dict.fromkeys(filter(None, (passage.publication.title, *passage.heading_path))))
    return f"{head}\n{passage.text}" if head else passage.text


class ContextExpansion:
    """Context expansion: adds the text around the passages of one question, within a token budget."""

    def __init__(self, evidence: Sequence[Evidence], chunks: SelfHealingReadings, tokens: int) -> None:
        """``tokens`` (cl100k_base): budget for what is added to ``evidence``."""
        self._expanded = list(evidence)
        self._places = {_place(item.passage, item.passage.ordinal) for item in evidence}
        self._chunks = chunks
        self._tokens = tokens

    async def expand(self) -> list[Evidence]:
        """Return the evidence, followed by the chunks next to its passages, those of the best first.

        Raises:
            storage.errors.InfrastructureError: readings are unavailable.
        """
        for item in tuple(self._expanded):
            await self._follow(item.passage, 1)
            await self._follow(item.passage, -1)
        return self._expanded

    async def _follow(self, passage: Passage, step: int) -> None:
        """Add the chunks next to a passage in one direction."""
        edge = passage.text
        for away in range(1, MAX_TABLE_CHUNKS + 1):
            chunk = await self._read(passage, passage.ordinal + away * step)
            in_table = chunk is not None and _share_a_table(edge, chunk.text, step)
            if chunk is None or not (in_table or (away == 1 and chunk.heading_path == passage.heading_path)):
                return
            self._add(passage, chunk)
            edge = chunk.text

    async def _read(self, passage: Passage, ordinal: int) -> Chunk | None:
        """Return the chunk at an ordinal of the passage's reading, if it is new and fits the budget."""
        is_inside = 0 <= ordinal < passage.publication.chunks
        if self._tokens <= 0 or not is_inside or _place(passage, ordinal) in self._places:
            return None
        if passage.publication.web:
            return None  # a web snippet has no neighbouring chunks
        (chunk,) = await self._chunks.chunks_at([(passage.publication.reading_id, ordinal)])
        return chunk if chunk.tokens <= self._tokens else None

    def _add(self, passage: Passage, chunk: Chunk) -> None:
        title = passage.publication.title
        neighbour = replace(
            passage,
            ordinal=chunk.ordinal,
            text=chunk.text,
            first_page=chunk.first_page,
            last_page=chunk.last_page,
            heading_path=chunk.heading_path,
            score=NEIGHBOUR_SHARE * passage.score,
            bm25=None,
            vector=None,
            terms=TermSet.of(index_terms(title, chunk.heading_path, chunk.text)),
        )
        self._tokens -= chunk.tokens
        self._places.add(_place(neighbour, chunk.ordinal))
        self._expanded.append(_evidence(len(self._expanded) + 1, neighbour, chunk))


def evidence_of(number: int, publication: LivePublication, chunk: Chunk, score: float = 0.0) -> Evidence:
    """Return a chunk as evidence without a search, e.g. requested by its document or its figure."""
    passage = Passage(
        publication,
        chunk.ordinal,
        chunk.text,
        chunk.first_page,
        chunk.last_page,
        chunk.heading_path,
        score,
        bm25=None,
        vector=None,
    )
    return _evidence(number, passage, chunk)


def _evidence(number: int, passage: Passage, chunk: Chunk) -> Evidence:
    return Evidence(number, passage, chunk.page_starts, chunk.words, chunk.sections)


def _place(passage: Passage, ordinal: int) -> tuple[object, int]:
    return passage.publication.reading_id, ordinal


def _share_a_table(text: str, other: str, step: int) -> bool:
    """True if a table at the end of a text (or start, for a step back) continues in ``other``."""
    first, second = (text, other) if step > 0 else (other, text)
    return first.rstrip().rpartition("\n")[2].startswith("|") and second.lstrip().startswith("|")


async def gather_evidence(
    passages: Sequence[Passage], chunks: SelfHealingReadings, *, max_passages: int, tokens: int
) -> list[Evidence]:
    """Return the first ``max_passages`` passages that fit into ``tokens`` (cl100k_base), numbered from 1.

    The best passage is always among them.

    Raises:
        storage.errors.InfrastructureError: readings are unavailable.
    """
    chosen: list[Passage] = []
    for passage in passages[:max_passages]:
        tokens -= count_tokens(passage.text)
        if chosen and tokens < 0:
            break
        chosen.append(passage)
    stored = [one for one in chosen if not one.publication.web]
    read = iter(await chunks.chunks_at([(one.publication.reading_id, one.ordinal) for one in stored]))
    evidence = []
    for number, passage in enumerate(chosen, start=1):
        if passage.publication.web:
            evidence.append(Evidence(number, passage, ((0, passage.first_page),)))
        else:
            evidence.append(_evidence(number, passage, next(read)))
    return evidence


async def read_beside(
    item: Evidence, evidence: Sequence[Evidence], chunks: SelfHealingReadings
) -> list[Evidence]:
    """Return the chunks of a passage's section next to it, as far as they are not in the evidence.

    They are numbered after it; at most ``MAX_LIST_CHUNKS`` on each side.

    Raises:
        storage.errors.InfrastructureError: readings are unavailable.
    """
    passage = item.passage
    if passage.publication.web:
        return []
    first = max(passage.ordinal - MAX_LIST_CHUNKS, 0)
    last = min(passage.ordinal + MAX_LIST_CHUNKS, passage.publication.chunks - 1)
    read = await chunks.chunks_at(
        [(passage.publication.reading_id, ordinal) for ordinal in range(first, last + 1)]
    )
    before, after = read[: passage.ordinal - first], read[passage.ordinal - first + 1 :]
    section = (*takewhile(_of(passage), reversed(before)), *takewhile(_of(passage), after))
    known = {_place(one.passage, one.passage.ordinal) for one in evidence}
    new = (chunk for chunk in section if _place(passage, chunk.ordinal) not in known)
    return [
        evidence_of(number, passage.publication, chunk) for number, chunk in enumerate(new, len(evidence) + 1)
    ]


def _of(passage: Passage) -> Callable[[Chunk], bool]:
    return lambda chunk: chunk.heading_path == passage.heading_path
