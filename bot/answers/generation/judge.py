"""Judges whether the evidence answers a question: whether a search shows passages or abstains.

Similarity is not an answer: a page on the subject may not say what is asked. A few measured signals are
combined into one probability, by logistic regression on the tuning half of ``tools/evaluation``: questions
that a document answers, and plausible ones that none does. A threshold turns it into two outcomes. Abstaining
by calibrated confidence: Kamath, Jia and Liang, "Selective Question Answering under Domain Shift" (2020).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from itertools import pairwise

from bot.answers.generation.quote_selection import QuoteCandidate, terms_of
from bot.answers.understanding.answer_types import RequiredAnswer
from bot.answers.understanding.question_codes import code_words, holds_code
from bot.answers.understanding.question_terms import QuestionTerms, lookup_terms
from bot.core.models import AnalyzedQuestion, Passage
from storage.embeddings.cosine_scale import CosineCalibration
from storage.models import Rung
from storage.text.analyzer import analyze

# Minimum probability for a model to read the evidence, and for a compared document to be quoted.
NEAR_PROBABILITY = 0.2

# Distance in characters from the nearest sentence in which the required kind of answer may occur.
NEAR_CHARS = 300

# Number of nearest units in which an empty field counts: others are about something else.
NEAREST = 6


class Outcome(StrEnum):
    """Outcome of a search without a model."""

    PASSAGES = "passages"
    NOT_FOUND = "not_found"


@dataclass(frozen=True, slots=True)
class Signals:
    """Input of the judge."""

    # Cosine of the nearest sentence, row or item; None: no vectors were compared.
    sentence: float | None
    # Highest cosine of a passage; while a document is read by words alone, of its sentences.
    passage: float | None
    # Score (0-1) of the first passage.
    rank: float
    # The required kind of answer, such as a number or a date, does not occur near the nearest sentence.
    lacks: bool
    # Share (0-1) of the question's weight in the label of an empty form field.
    empty: float


@dataclass(frozen=True, slots=True)
class SignalWeights:
    """Weights of the signals of the same names, in log-odds.

    Measured with the bundled embedder, to whose scale the cosines of others are mapped.
    """

    bias: float
    rank: float
    lacks: float
    empty: float
    sentence: float = 0.0
    passage: float = 0.0

    @classmethod
    def of(cls, signals: Signals) -> SignalWeights:
        """Return the weights for signals with vectors, or with words alone."""
        is_compared = signals.sentence is not None and signals.passage is not None
        return _WITH_VECTORS if is_compared else _WORDS_ALONE


_WITH_VECTORS = SignalWeights(bias=-3.55, sentence=3.9, passage=1.85, rank=1.73, lacks=-1.72, empty=-6.4)
_WORDS_ALONE = SignalWeights(bias=-2.1, rank=3.6, lacks=-1.35, empty=-6.4)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Decision of the judge, and what it is based on."""

    outcome: Outcome
    # Probability that the evidence answers the question.
    probability: float
    signals: Signals
    # Minimum probability for passages to be shown.
    passages_from: float
    # Codes of the question that no candidate contains: if there are any, no passage is shown.
    missing_codes: tuple[str, ...] = ()
    # The question only names something that a candidate contains: passages are shown, however unlikely.
    is_exact_hit: bool = False

    def as_json(self) -> dict[str, object]:
        """Return the verdict for the record of a question."""
        return {
            "outcome": self.outcome.value,
            "probability": round(self.probability, 3),
            "signals": asdict(self.signals),
            "weights": {name: one for name, one in asdict(SignalWeights.of(self.signals)).items() if one},
            "passages_from": self.passages_from,
            "missing_codes": self.missing_codes,
            "is_exact_hit": self.is_exact_hit,
        }


class Judge:
    """Decides from a question and its evidence between passages and a not-found reply."""

    def __init__(self, answer_probability: float = 0.53, scale: CosineCalibration | None = None) -> None:
        """Set the threshold.

        Args:
            answer_probability: minimum probability for passages to be shown; below it the reply is not-found.
            scale: maps the embedder's cosines to the bundled embedder's; None: it is the bundled one.
        """
        self._scale = scale or CosineCalibration()
        self._threshold = answer_probability

    def verdict(
        self,
        question: AnalyzedQuestion,
        passages: Sequence[Passage],
        ranked: Sequence[QuoteCandidate],
        found: Sequence[Passage] | None = None,
    ) -> Verdict:
        """Judge whether the evidence answers the question.

        Args:
            question: as it was searched for.
            passages: candidates in their final order.
            ranked: quotable parts of the evidence, best first.
            found: where codes of the question may occur; None: in ``passages``.
        """
        signals = self._signals(question, passages, ranked)
        probability = _probability(signals) if ranked else 0.0
        missing = tuple(
            code
            for code in code_words(question.text)
            if not any(holds_code(code, one) for one in found or passages)
        )
        is_hit = bool(ranked) and _is_hit(lookup_terms(question.text), passages)
        is_shown = (is_hit or probability >= self._threshold) and not missing
        outcome = Outcome.PASSAGES if is_shown else Outcome.NOT_FOUND
        return Verdict(outcome, probability, signals, self._threshold, missing, is_hit)

    def _signals(
        self, question: AnalyzedQuestion, passages: Sequence[Passage], ranked: Sequence[QuoteCandidate]
    ) -> Signals:
        nearest = sorted(ranked, key=lambda one: -((one.cosine or 0.0) + 0.5 * one.coverage))
        cosines = [one.cosine for one in ranked if one.cosine is not None]
        likeness = [one.vector for one in passages if one.vector is not None]
        unread = [
            one.cosine
            for one in ranked
            if one.cosine is not None and one.item.passage.publication.rung is Rung.QUICK
        ]
        near = [
            one.unit.text
            for one in nearest
            if one.item is nearest[0].item and abs(one.unit.start - nearest[0].unit.start) < NEAR_CHARS
        ]
        return Signals(
            sentence=max(cosines, default=None),
            passage=max([self._scale.rescale(max(likeness)), *unread]) if cosines and likeness else None,
            rank=passages[0].score if passages else 0.0,
            lacks=not RequiredAnswer(question.text).is_held_by(*near),
            empty=_empty_fields(QuestionTerms(question).aspects, nearest[:NEAREST]),
        )


def _is_hit(terms: frozenset[str], passages: Sequence[Passage]) -> bool:
    """True if a passage with its headings and title contains all of these terms, if there are any."""
    return bool(terms) and any(
        terms.issubset(terms_of((one.publication.title, *one.heading_path, one.text))) for one in passages
    )


def _empty_fields(weights: Mapping[str, float], nearest: Sequence[QuoteCandidate]) -> float:
    """Return the highest share of the question's weight in the label of an empty field."""
    total = math.fsum(weights.values())
    shares = [
        math.fsum(weights.get(term, 0.0) for term in set(analyze(label))) / total
        for one in nearest
        if total and one.unit.is_row
        for label in _empty_labels(one.unit.text)
    ]
    return max(shares, default=0.0)


def _empty_labels(row: str) -> Iterator[str]:
    """Yield the labels of a row without a value, as the first of ``ELT:  | | Engine Model:  | O-360``."""
    cells = [cell.strip() for cell in (row.split("|") if "|" in row else re.split(r"\s{2,}", row))]
    for label, value in pairwise([*cells, ""]):
        if label.endswith(":") and (not value or value.endswith(":")):
            yield label


def _probability(signals: Signals) -> float:
    weights = SignalWeights.of(signals)
    measured = {"bias": 1.0} | {name: one for name, one in asdict(signals).items() if one is not None}
    log_odds = math.fsum(getattr(weights, name) * value for name, value in measured.items())
    return 1 / (1 + math.exp(-log_odds))
