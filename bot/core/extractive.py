"""Answers with the documents' own sentences: the answerer that needs no model and cannot invent.

Each sentence, list item and table row of the evidence is scored by meaning, by the question's rare
words, by the kind of answer asked for, and by what stands around it; the best two are quoted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bot.core.asking import Asked
from bot.core.meaning import Meaning
from bot.core.models import AnalyzedQuestion, Claim, Draft, Evidence, Quote
from bot.core.ports import Embedder, SentenceReader
from bot.core.quotes import reduce_text
from storage.analyzer import analyze
from storage.quotables import Quotable, quotables

COSINE, COVERAGE, BM25, FIT, NEIGHBOUR, LABEL, PASSAGE = 1.0, 0.6, 0.3, 0.35, 0.25, 0.6, 0.6
"""Weights of the parts of a score; each part lies in 0-1."""

CONTRADICTED = 0.8
"""Taken off a unit that names years, and none of the question's."""

FRAGMENT = 0.35
"""Taken off a heading or other scrap of text, which is no sentence and no row."""

SECOND = 0.8
"""Share of the best score that the second quote reaches at least."""

_SCRAP_WORDS = 5


@dataclass(frozen=True, slots=True)
class _Candidate:
    """One quotable unit on its way to a score."""

    item: Evidence
    unit: Quotable
    terms: tuple[str, ...]
    coverage: float = 0.0
    lexical: float = 0.0
    """What is known without an embedding."""
    score: float = 0.0


class ExtractiveAnswerer:
    """Quotes the best one or two units of the evidence."""

    def __init__(
        self, embedder: Embedder, kept: SentenceReader | None = None, *, quotes: int = 2, embedded: int = 12
    ) -> None:
        """``kept``: vectors of sentences that need not be made any more."""
        self._meaning = Meaning(embedder, kept)
        self._quotes = quotes
        self._embedded = embedded

    async def draft(self, question: AnalyzedQuestion, evidence: Sequence[Evidence]) -> Draft:
        """The best quotes; none when the evidence holds no text."""
        ranked = self._by_words(Asked(question), evidence)
        ranked, embedded = await self._by_meaning(question, ranked[: self._embedded])
        claims = tuple(_claim(candidate) for candidate in self._chosen(ranked))
        return Draft(claims, verbatim=True, embedded=embedded)

    def _by_words(self, asked: Asked, evidence: Sequence[Evidence]) -> list[_Candidate]:
        candidates = [candidate for item in evidence for candidate in _covered(asked, item)]
        bm25 = _bm25(asked, candidates)
        scored = [
            replace(candidate, lexical=_lexical(asked, candidates, at, bm25[at]))
            for at, candidate in enumerate(candidates)
        ]
        return sorted(scored, key=lambda candidate: -candidate.lexical)

    async def _by_meaning(
        self, question: AnalyzedQuestion, candidates: Sequence[_Candidate]
    ) -> tuple[list[_Candidate], int]:
        """(the candidates, best first, tokens embedded for that)."""
        if question.vector is None or not candidates:
            return [replace(candidate, score=candidate.lexical) for candidate in candidates], 0
        vectors, embedded = await self._meaning.of([(one.item.passage, one.unit) for one in candidates])
        cosines = vectors @ np.asarray(question.vector, dtype=np.float32)
        scored = [
            replace(candidate, score=candidate.lexical + COSINE * max(float(cosine), 0.0))
            for candidate, cosine in zip(candidates, cosines, strict=True)
        ]
        return sorted(scored, key=lambda candidate: -candidate.score), embedded

    def _chosen(self, ranked: Sequence[_Candidate]) -> list[_Candidate]:
        """The best, and further ones nearly as good that say something else."""
        chosen: list[_Candidate] = []
        for candidate in ranked:
            if len(chosen) == self._quotes or candidate.score < SECOND * ranked[0].score:
                break
            if not any(_says_the_same(candidate, earlier) for earlier in chosen):
                chosen.append(candidate)
        return chosen


def _claim(candidate: _Candidate) -> Claim:
    return Claim(
        candidate.unit.text, (Quote(candidate.item.number, candidate.unit.text, candidate.unit.start),)
    )


def _covered(asked: Asked, item: Evidence) -> list[_Candidate]:
    found = [(unit, tuple(analyze(unit.text))) for unit in quotables(item.passage.text)]
    return [_Candidate(item, unit, terms, coverage=asked.aspect_coverage(terms)) for unit, terms in found]


def _lexical(asked: Asked, candidates: Sequence[_Candidate], at: int, bm25: float) -> float:
    candidate = candidates[at]
    around = [other for other in candidates[max(at - 1, 0) : at + 2] if other.item is candidate.item]
    neighbour = max((other.coverage for other in around if other is not candidate), default=0.0)
    return (
        COVERAGE * candidate.coverage
        + BM25 * bm25
        + FIT * asked.fit(candidate.unit.text) * (candidate.coverage > 0)
        + NEIGHBOUR * neighbour
        + LABEL * (_label_precision(asked, candidate) if candidate.unit.is_row else 0.0)
        + PASSAGE * candidate.item.passage.score
        - CONTRADICTED * asked.contradicts(candidate.unit.text)
        - FRAGMENT * _is_scrap(candidate)
    )


def _label_precision(asked: Asked, candidate: _Candidate) -> float:
    """Share of a row's label words that the question says."""
    label = re.split(r":\s| {2,}", candidate.unit.text, maxsplit=1)[0]
    words = set(analyze(label))
    return sum(word in asked.weights for word in words) / len(words) if words else 0.0


def _is_scrap(candidate: _Candidate) -> bool:
    is_closed = candidate.unit.text.rstrip("\"'”’)]").endswith((".", "!", "?", ";"))
    return not is_closed and not candidate.unit.is_row and len(candidate.unit.text.split()) < _SCRAP_WORDS


def _bm25(asked: Asked, candidates: Sequence[_Candidate], k1: float = 1.2, b: float = 0.75) -> list[float]:
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


def _says_the_same(one: _Candidate, other: _Candidate) -> bool:
    mine, theirs = reduce_text(one.unit.text).text, reduce_text(other.unit.text).text
    return mine in theirs or theirs in mine
