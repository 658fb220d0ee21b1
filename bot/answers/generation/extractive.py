"""Extractive answers from the documents' own sentences: needs no model and cannot hallucinate.

Each sentence, list item and table row of the evidence is scored by a linear model, trained by softmax over
the candidates of a question (listwise, as ListNet: Cao et al., "Learning to Rank: From Pairwise Approach to
Listwise Approach", 2007) on the tuning half of ``tools/evaluation``, where candidates that contain a fact of
the answer are the correct ones. A page is scored by all its candidates.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from uuid import UUID

import numpy as np

from bot.answers.generation.quote_selection import TERMS_CACHE_SIZE, QuoteCandidate, RankedQuotes, terms_of
from bot.answers.generation.step_lists import is_step
from bot.answers.retrieval.reranking import SentenceVectors
from bot.answers.understanding.answer_types import RequiredAnswer, wants_steps
from bot.answers.understanding.question_codes import bare_code, code_words
from bot.answers.understanding.question_terms import QuestionTerms, exact_words
from bot.answers.verification.table_rows import cells_of, is_table_row, names_of_row
from bot.core.models import AnalyzedQuestion, Evidence
from storage.embeddings.base import QueryEmbedder
from storage.embeddings.cosine_scale import CosineCalibration
from storage.queues.reading_repair import SentenceVectorStore
from storage.text.analyzer import analyze
from storage.text.sentences import Quotable, quotables

# Minimum share of the question that a field must cover if the question does not mention its label.
MIN_SAID = 0.5

# Minimum share of the question that a table's row must cover with its labels and columns.
MIN_ROW = 0.1

_LABEL = re.compile(r"\s*([^\W\d_][^:]{0,48}):(?:\s|$)")
_CELL_END = re.compile(r"\||\s{2,}")
_LATEST = re.compile(r"\b(?:latest|newest|current|last)\s+(?:version|revision|edition|release)\b", re.I)


@dataclass(frozen=True, slots=True)
class QuoteWeights:
    """Weights of the linear model, in log-odds."""

    cosine: float = 2.9
    # Shares (0-1) of the question that the part covers, and that its headings and its document's title cover.
    coverage: float = 1.35
    headings: float = 2.4
    # The passage's score relative to the best one, and 1 / its rank.
    passage: float = 2.2
    rank: float = 1.35
    # The part has the required kind of answer; share of a field's label in the question; it has any number.
    kind: float = 1.75
    label: float = 1.5
    number: float = 0.5
    # Logarithm of the word count.
    length: float = 0.29
    # The part is a numbered step where the question asks how something is done.
    step: float = 0.4
    # The part names years, but none of the question's; the row of the requested code, and of the latest
    # version. Set by hand: few questions name one.
    contradicted: float = -6.0
    code: float = 2.0
    latest: float = 2.0


WEIGHTS = QuoteWeights()


class ExtractiveAnswerer:
    """Ranks the quotable parts of the evidence."""

    def __init__(
        self,
        embedder: QueryEmbedder,
        kept: SentenceVectorStore | None = None,
        scale: CosineCalibration | None = None,
        *,
        max_embedded: int = 12,
    ) -> None:
        """Set the embedder; embeds nothing yet.

        Args:
            embedder: the one of the channel's passages.
            kept: stored sentence vectors, which need not be computed.
            scale: maps the embedder's cosines to the bundled embedder's; None: it is the bundled one.
            max_embedded: maximum vectors computed per question, those of the likeliest candidates by words.
        """
        self._sentence_vectors = SentenceVectors(embedder, kept)
        self._scale = scale or CosineCalibration()
        self._max_embedded = max_embedded

    async def rank(self, question: AnalyzedQuestion, evidence: Sequence[Evidence]) -> RankedQuotes:
        """Return the quotable parts of the evidence, best first.

        Raises:
            storage.errors.InfrastructureError: readings are unavailable, or the embedder is too slow.
        """
        likely = _WordScores(question, evidence).ranked()
        return RankedQuotes(*await self._by_meaning(question, likely))

    async def _by_meaning(
        self, question: AnalyzedQuestion, candidates: Sequence[QuoteCandidate]
    ) -> tuple[Sequence[QuoteCandidate], int]:
        """Return (the candidates, best first; the tokens embedded to compare them)."""
        if question.vector is None or not candidates:
            return _by_page(candidates, [None] * len(candidates)), 0
        await self._scale.calibrate()
        asked = np.asarray(question.vector, dtype=np.float32)
        units = [(one.item.passage, one.unit) for one in candidates]
        vectors, embedded = await self._sentence_vectors.lookup_or_embed(
            units, max_embedded=self._max_embedded
        )
        cosines = [
            None if vector is None else self._scale.rescale(float(vector @ asked)) for vector in vectors
        ]
        return _by_page(candidates, cosines), embedded


def _by_page(candidates: Sequence[QuoteCandidate], cosines: Sequence[float | None]) -> list[QuoteCandidate]:
    """Rank by word score and cosine; the summed odds of all candidates of its page add to each score."""
    scores = [
        one.score + WEIGHTS.cosine * max(cosine or 0.0, 0.0)
        for one, cosine in zip(candidates, cosines, strict=True)
    ]
    pages = [one.page for one in candidates]
    best, odds = max(scores, default=0.0), defaultdict[tuple[UUID, int], float](float)
    for page, score in zip(pages, scores, strict=True):
        odds[page] += math.exp(score - best)
    found = [
        replace(one, score=score + math.log(odds[page]), cosine=cosine)
        for one, page, score, cosine in zip(candidates, pages, scores, cosines, strict=True)
    ]
    return sorted(found, key=lambda one: -one.score)


class _WordScores:
    """Scores of all quotable parts by words alone, without embeddings."""

    def __init__(self, question: AnalyzedQuestion, evidence: Sequence[Evidence]) -> None:
        self._evidence = evidence
        self._asked, self._language = QuestionTerms(question), question.language
        self._paraphrases = [self._asked, *map(QuestionTerms, question.paraphrases)]
        self._required = RequiredAnswer(question.text)
        self._wants_steps = wants_steps(question.text)
        self._codes = {bare_code(code) for code in code_words(question.text)}
        self._names = {term for word in exact_words(question.text) for term in analyze(word)}
        self._wants_latest = _LATEST.search(question.text) is not None
        self._best = max((item.passage.score for item in evidence), default=0.0) or 1.0

    def ranked(self) -> list[QuoteCandidate]:
        """Return the candidates, best first."""
        candidates = [one for item in self._evidence for one in self._of_passage(item)]
        codes = [_code_of(one.unit) for one in candidates] if self._codes else ()
        if self._codes.intersection(codes):
            keyed = zip(candidates, codes, strict=True)
            candidates = [
                replace(one, score=one.score + WEIGHTS.code, is_unasked=False) if code in self._codes else one
                for one, code in keyed
                if not code or code in self._codes
            ]
        return sorted(candidates, key=lambda candidate: -candidate.score)

    def _of_passage(self, item: Evidence) -> Iterator[QuoteCandidate]:
        passage = item.passage
        metadata = passage.publication.metadata
        version, language = metadata.get("version"), metadata.get("language")
        is_foreign = language is not None and language.value != self._language
        latest = re.compile(rf"(?<![\w.]){re.escape(version.value)}(?![\w.])") if version else None
        shared = WEIGHTS.passage * passage.score / self._best + WEIGHTS.rank / item.number
        terms_above = {path: terms_of((passage.publication.title, *path)) for _, path in item.sections}
        for unit, said in _with_terms(passage.text):
            above = terms_above[item.section_at(unit.end - 1)]
            coverage = self._asked.aspect_coverage(said)
            labels = _labels_said(self._asked, unit.text) if unit.is_row else None
            is_latest = bool(self._wants_latest and unit.is_row and latest and latest.match(unit.text))
            score = (
                shared
                + WEIGHTS.headings * self._asked.aspect_coverage(above)
                + WEIGHTS.coverage * coverage
                + WEIGHTS.kind * (bool(self._required) and self._required.is_held_by(unit.text))
                + WEIGHTS.label * (labels or 0.0)
                + WEIGHTS.number * any(map(str.isdigit, unit.text))
                + WEIGHTS.length * math.log1p(len(unit.text.split()))
                + WEIGHTS.contradicted * self._asked.contradicts(unit.text)
                + WEIGHTS.latest * is_latest
                + WEIGHTS.step * (self._wants_steps and is_step(unit.text))
            )
            is_about = is_foreign or is_latest or any(one.coverage(above | said) for one in self._paraphrases)
            is_unasked = labels == 0 and coverage < MIN_SAID
            if unit.is_row and not (is_unasked or is_foreign or is_latest):
                is_unasked = self._is_of_another_thing(passage.text, unit, said, coverage)
            yield QuoteCandidate(item, unit, coverage, is_about, score, is_unasked=is_unasked)

    def _is_of_another_thing(self, text: str, row: Quotable, said: frozenset[str], coverage: float) -> bool:
        """True for a table's row whose labels and columns are not asked for, nor a name that it holds."""
        if not is_table_row(text, row.start):
            return False
        first, *others = cells_of(row.text) or [""]
        labels = (first, *(cell for cell in others if cell.endswith(":")))
        heads = terms_of((names_of_row(text, row.start), *labels))
        is_named = any(one.aspect_coverage(heads) for one in self._paraphrases) or self._names & said
        return coverage < MIN_ROW or not is_named


@lru_cache(maxsize=TERMS_CACHE_SIZE)
def _with_terms(text: str) -> tuple[tuple[Quotable, frozenset[str]], ...]:
    """Split a passage into quotable units, each with its terms and those of its lead-in or its row's names.

    Cached, because passages recur.
    """
    found = []
    for unit in quotables(text):
        names = names_of_row(text, unit.start) if unit.is_row else ""
        lead = text[slice(*unit.lead)] if unit.lead else ""
        found.append((unit, frozenset(analyze(f"{lead} {names} {unit.text}"))))
    return tuple(found)


def _code_of(unit: Quotable) -> str:
    """Return the bare code in the first cell of a row, by which it is looked up; '' if it has none."""
    first, *_ = unit.text.split(maxsplit=1) if unit.is_row else ("",)
    return bare_code(first) if code_words(first.rstrip(":")) else ""


def _labels_said(asked: QuestionTerms, row: str) -> float | None:
    """Return the highest share (0-1) of a label's words in the question; None: the row has no labels."""
    labels = [terms_of((label[1],)) for label in map(_LABEL.match, _CELL_END.split(row)) if label]
    return max((len(words & asked.weights.keys()) / len(words) for words in labels if words), default=None)
