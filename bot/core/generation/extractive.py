"""Answers with the documents' own sentences: the answerer that needs no model and cannot invent.

Each sentence, list item and table row of the evidence is scored by meaning, by the question's rare words, by
the kind of answer asked for, by its passage, and by the sentences around it.

Of the scored ones, a good answer stays on its page: a further quote from the page of an earlier one may be a
good deal worse than the best, one from another page hardly. A question that spans documents gets the best of
each.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from uuid import UUID

import numpy as np

from bot.core.models import AnalyzedQuestion, Claim, Draft, Evidence, Passage, Quote
from bot.core.retrieval.reranking import chunk_place
from bot.core.understanding.answer_types import spans_documents
from bot.core.understanding.question_terms import QuestionTerms
from bot.core.verification.claims import page_at, reduce_text
from storage.embeddings.base import QueryEmbedder, Vectors
from storage.queues.reading_repair import SentenceVectorStore
from storage.text.analyzer import analyze
from storage.text.sentences import Quotable, quotables

MAX_QUOTES, MAX_QUOTED_CHARS = 2, 300
"""Most quotes of an answer about one document, and how long they may be together."""

MAX_CLOSEST = 3
"""Most passages that are shown where nothing clearly answers."""

MAX_DOCUMENTS = 4
"""Most documents that a question which spans them gets a quote of."""

SAME_PAGE, OTHER_PAGE, OTHER_DOCUMENT = 0.7, 0.985, 0.85
"""Share of the best score that a further quote reaches at least."""

FRAGMENT_WORDS = 5
"""What has fewer words and no end is a scrap."""

COSINE, COVERAGE, BM25, NEIGHBOUR, LABEL, PASSAGE = 1.0, 0.6, 0.3, 0.25, 0.6, 4.0
"""Weights of the parts of a score; each part lies in 0-1."""

CONTRADICTED = 0.8
"""Taken off a unit that names years, and none of the question's."""

FRAGMENT = 0.35
"""Taken off a heading or other scrap of text, which is no sentence and no row."""

PASSAGES_KEPT = 256
"""Taken apart in memory: up to ten megabytes, and the passages of the questions just asked."""

_LABEL = re.compile(r"\s*([^\W\d_][^:]{0,48}):(?:\s|$)")
_HEADER_RULE = re.compile(r"[ |]*\n[ |]*-{3,}")
"""Behind the row that names a table's columns."""
_CELL_END = re.compile(r"\||\s{2,}")
_ITEM = re.compile(r"[•▪◦●○*–-]\s|\(?(?:\d{1,2}(?:\.\d+)*|[a-zA-Z]|[ivx]{1,4})[.)]?\s")

VectorUnit = tuple[Passage, Quotable]
"""A part of a passage's text."""


@dataclass(frozen=True, slots=True)
class QuoteCandidate:
    """One quotable part of the evidence, scored."""

    item: Evidence
    unit: Quotable
    terms: tuple[str, ...]
    """The analyzer's."""
    coverage: float = 0.0
    """Share (0-1) of what is asked that its words hold."""
    score: float = 0.0
    cosine: float | None = None
    """With the question; None: its vector was not made."""
    is_unasked: bool = False
    """A row of labelled fields, none of whose labels the question says: ``Location:  Venice, FL``."""

    @property
    def is_fragment(self) -> bool:
        """A heading or other scrap of text, which is no sentence and no row."""
        is_closed = self.unit.text.rstrip("\"'”’)]").endswith((".", "!", "?", ";"))
        return not is_closed and not self.unit.is_row and len(self.unit.text.split()) < FRAGMENT_WORDS

    @property
    def is_label(self) -> bool:
        """A heading, a caption, a table's header, a field nobody asked for: no answer by itself."""
        if self.is_unasked or _HEADER_RULE.match(self.item.passage.text, self.unit.end):
            return True
        words = " ".join(self.unit.text.split())
        is_item = _ITEM.match(words) is not None and len(words.split()) >= FRAGMENT_WORDS
        is_closed = words.rstrip("\"'”’)]").endswith((".", "!", "?", ";", ":"))
        return not self.unit.is_row and not is_item and not is_closed

    @property
    def document(self) -> UUID:
        """The document that holds it."""
        return self.item.passage.publication.document_id

    @property
    def page(self) -> tuple[UUID, int]:
        """The page it begins on, of its document."""
        return self.document, page_at(self.item, self.unit.start)


@dataclass(frozen=True, slots=True)
class RankedQuotes:
    """What may be quoted of the evidence, best first, and what comparing it cost."""

    candidates: Sequence[QuoteCandidate]
    embedded: int = 0
    """Tokens of what was embedded for it."""

    def draft(self, question: AnalyzedQuestion) -> Draft:
        """The quotes that answer the question; none when there is nothing to quote."""
        chosen = select_quotes(self.candidates, is_spanning=spans_documents(question.text))
        return self._draft(chosen)

    def closest(self) -> Draft:
        """The nearest passages' best quotes, one a page."""
        pages: dict[tuple[UUID, int], QuoteCandidate] = {}
        for candidate in _without_labels(self.candidates):
            if not _is_repeated(candidate, pages.values()):
                pages.setdefault(candidate.page, candidate)
        return self._draft(list(pages.values())[:MAX_CLOSEST])

    def _draft(self, chosen: Iterable[QuoteCandidate]) -> Draft:
        claims = (
            Claim(one.unit.text, (Quote(one.item.number, one.unit.text, one.unit.start),)) for one in chosen
        )
        return Draft(tuple(claims), verbatim=True)


def select_quotes(ranked: Sequence[QuoteCandidate], *, is_spanning: bool) -> list[QuoteCandidate]:
    """What is quoted of these, best first.

    Args:
        ranked: best first.
        is_spanning: the question asks for several documents.
    """
    if not is_spanning:
        return _on_pages(ranked)
    documents = _best_of_each(ranked)
    return documents if len(documents) > 1 else _on_pages(ranked)


def _on_pages(ranked: Sequence[QuoteCandidate]) -> list[QuoteCandidate]:
    """The best sentence, row or item, and a further one that fits beside it."""
    said = _without_labels(ranked)
    chosen: list[QuoteCandidate] = []
    for candidate in said:
        if len(chosen) == MAX_QUOTES:
            break
        is_near = candidate.page in {earlier.page for earlier in chosen}
        least = (SAME_PAGE if is_near else OTHER_PAGE) * said[0].score
        length = sum(len(one.unit.text) for one in (*chosen, candidate))
        is_worth_it = candidate.score >= least and (not chosen or length <= MAX_QUOTED_CHARS)
        if is_worth_it and not _is_repeated(candidate, chosen):
            chosen.append(candidate)
    return chosen


def _without_labels(ranked: Sequence[QuoteCandidate]) -> Sequence[QuoteCandidate]:
    """What says something by itself; the first label where nothing does."""
    return [one for one in ranked if not one.is_label] or ranked[:1]


def _best_of_each(ranked: Sequence[QuoteCandidate]) -> list[QuoteCandidate]:
    chosen: dict[UUID, QuoteCandidate] = {}
    for candidate in _without_labels(ranked):
        is_close = candidate.score >= OTHER_DOCUMENT * ranked[0].score
        if is_close and candidate.document not in chosen and not _is_repeated(candidate, chosen.values()):
            chosen[candidate.document] = candidate
    return list(chosen.values())[:MAX_DOCUMENTS]


def _is_repeated(candidate: QuoteCandidate, earlier: Iterable[QuoteCandidate]) -> bool:
    mine = reduce_text(candidate.unit.text).text
    others = [reduce_text(other.unit.text).text for other in earlier]
    return any(mine in theirs or theirs in mine for theirs in others)


class SentenceVectors:
    """Looks vectors up, and has the missing ones made in one go."""

    def __init__(self, embedder: QueryEmbedder, kept: SentenceVectorStore | None) -> None:
        """``kept``: what reading made; None: nothing."""
        self._embedder = embedder
        self._kept = kept

    async def of(self, units: Sequence[VectorUnit], *, most_made: int) -> tuple[list[Vectors | None], int]:
        """(the L2-normalised vector of each unit, None beyond ``most_made`` new ones; tokens embedded).

        Raises:
            storage.errors.InfrastructureError: readings cannot be reached, or the embedder is late.
        """
        found: list[Vectors | None] = [None] * len(units)
        if self._kept is not None:
            places = list(dict.fromkeys(chunk_place(passage) for passage, _ in units))
            kept = dict(zip(places, await self._kept.vectors(places), strict=True))
            found = [kept[chunk_place(passage)].get((unit.start, unit.end)) for passage, unit in units]
        missing = [place for place, vector in enumerate(found) if vector is None][:most_made]
        texts = [units[place][1].text for place in missing]
        made = await self._embedder.aembed(texts) if texts else ()
        for place, vector in zip(missing, made, strict=True):
            found[place] = vector
        return found, sum(map(self._embedder.count, texts))


class ExtractiveAnswerer:
    """Quotes the best units of the evidence."""

    def __init__(
        self, embedder: QueryEmbedder, kept: SentenceVectorStore | None = None, *, most_made: int = 12
    ) -> None:
        """Nothing is embedded yet.

        Args:
            embedder: that of the channel's passages.
            kept: vectors of sentences that need not be made any more.
            most_made: how many of the others are made for a question, the likeliest by their words first.
        """
        self._sentence_vectors = SentenceVectors(embedder, kept)
        self._most_made = most_made

    async def rank(self, question: AnalyzedQuestion, evidence: Sequence[Evidence]) -> RankedQuotes:
        """Everything of the evidence that may be quoted, best first.

        Raises:
            storage.errors.InfrastructureError: readings cannot be reached, or the embedder is late.
        """
        likely = _by_words(QuestionTerms(question), evidence)
        return RankedQuotes(*await self._by_meaning(question, likely))

    async def _by_meaning(
        self, question: AnalyzedQuestion, candidates: Sequence[QuoteCandidate]
    ) -> tuple[Sequence[QuoteCandidate], int]:
        """(the candidates, best first, tokens embedded for that)."""
        if question.vector is None or not candidates:
            return candidates, 0
        asked = np.asarray(question.vector, dtype=np.float32)
        units = [(one.item.passage, one.unit) for one in candidates]
        vectors, embedded = await self._sentence_vectors.of(units, most_made=self._most_made)
        scored = [
            candidate if vector is None else _compared(candidate, float(vector @ asked))
            for candidate, vector in zip(candidates, vectors, strict=True)
        ]
        return sorted(scored, key=lambda candidate: -candidate.score), embedded


def _compared(candidate: QuoteCandidate, cosine: float) -> QuoteCandidate:
    return replace(candidate, score=candidate.score + COSINE * max(cosine, 0.0), cosine=cosine)


def _by_words(asked: QuestionTerms, evidence: Sequence[Evidence]) -> list[QuoteCandidate]:
    """Everything quotable, scored without an embedding, best first."""
    candidates = [
        QuoteCandidate(
            item,
            unit,
            terms,
            coverage=asked.aspect_coverage(frozenset(terms)),
            is_unasked=unit.is_row and _is_unasked(asked, unit.text),
        )
        for item in evidence
        for unit, terms in _with_terms(item.passage.text)
    ]
    best = max((item.passage.score for item in evidence), default=0.0) or 1.0
    scored = [
        replace(
            candidate,
            score=_lexical(asked, candidates, at, bm25) + PASSAGE * candidate.item.passage.score / best,
        )
        for at, (candidate, bm25) in enumerate(zip(candidates, _bm25(asked, candidates), strict=True))
    ]
    return sorted(scored, key=lambda candidate: -candidate.score)


@lru_cache(maxsize=PASSAGES_KEPT)
def _with_terms(text: str) -> tuple[tuple[Quotable, tuple[str, ...]], ...]:
    """What may be quoted from a passage, with its terms; memoised, because passages come again."""
    return tuple((unit, tuple(analyze(unit.text))) for unit in quotables(text))


def _lexical(asked: QuestionTerms, candidates: Sequence[QuoteCandidate], at: int, bm25: float) -> float:
    candidate = candidates[at]
    around = [other for other in candidates[max(at - 1, 0) : at + 2] if other.item is candidate.item]
    neighbour = max((other.coverage for other in around if other is not candidate), default=0.0)
    return (
        COVERAGE * candidate.coverage
        + BM25 * bm25
        + NEIGHBOUR * neighbour
        + LABEL * (_label_precision(asked, candidate) if candidate.unit.is_row else 0.0)
        - CONTRADICTED * asked.contradicts(candidate.unit.text)
        - FRAGMENT * candidate.is_fragment
    )


def _is_unasked(asked: QuestionTerms, row: str) -> bool:
    labels = [label[1] for label in map(_LABEL.match, _CELL_END.split(row)) if label]
    said = (word in asked.weights for label in labels for word in analyze(label))
    return bool(labels) and not any(said)


def _label_precision(asked: QuestionTerms, candidate: QuoteCandidate) -> float:
    """Share of a row's label words that the question says."""
    label = re.split(r":\s| {2,}", candidate.unit.text, maxsplit=1)[0]
    words = set(analyze(label))
    return sum(word in asked.weights for word in words) / len(words) if words else 0.0


def _bm25(
    asked: QuestionTerms, candidates: Sequence[QuoteCandidate], k1: float = 1.2, b: float = 0.75
) -> list[float]:
    """BM25 of every unit among these units with the channel's idf, scaled so that the best is 1."""
    average = sum(len(candidate.terms) for candidate in candidates) / max(len(candidates), 1) or 1.0
    scores = []
    for candidate in candidates:
        counts = Counter(candidate.terms)
        norm = k1 * (1 - b + b * len(candidate.terms) / average)
        scores.append(
            sum(
                weight * counts[term] * (k1 + 1) / (counts[term] + norm)
                for term, weight in asked.aspects.items()
            )
        )
    best = max(scores, default=0.0) or 1.0
    return [score / best for score in scores]
