"""Calibration of an embedder's cosine similarity to the scale of the bundled model.

Similarity thresholds were measured with the bundled model, and cosines of two models are not comparable:
some models put all texts near 0.8. Mean and standard deviation of the similarity of fixed questions and
answers are mapped linearly to those of the bundled model.
"""

from __future__ import annotations

import logging

import numpy as np

from storage.embeddings.base import QueryEmbedder

log = logging.getLogger(__name__)

# Calibration questions and their answers, worded unlike any document.
PAIRS = (
    ("How often are backups made?", "A backup of all servers runs every night at two."),
    ("Who approves a holiday?", "Leave has to be approved by the line manager beforehand."),
    ("What does a visit to the dentist cost?", "Dental care has a fee of 20 dollars for each appointment."),
    ("When does the warehouse open?", "Goods are received from seven in the morning until four."),
    ("How long may food be stored?", "Cooked meals are kept in the fridge for at most three days."),
    ("Which gloves protect against acid?", "Wear nitrile gloves when handling strong acids."),
    ("Where do I report an accident?", "Every injury at work is to be told to the safety officer at once."),
    ("How is the balance calibrated?", "Place the 100 g reference weight on the pan and press CAL."),
    ("What was revenue last year?", "Net sales of the company were 52 million in 2024."),
    ("May I work from home?", "Employees can work remotely up to two days a week."),
    ("What happens when the alarm rings?", "In case of fire leave the building by the nearest exit."),
    ("How do I reset my password?", "Choose Forgot password on the login page and follow the mail."),
)

# Over all question-answer combinations, with the bundled embedder.
MEAN, DEVIATION = 0.083, 0.157


class CosineCalibration:
    """Linear map from an embedder's cosines to the bundled model's scale."""

    def __init__(self, embedder: QueryEmbedder | None = None) -> None:
        """Calibrate ``embedder``; None: the bundled one, whose cosines are not changed."""
        self._embedder = embedder
        self._factor, self._shift = 1.0, 0.0

    async def calibrate(self) -> None:
        """Measure the embedder once. One that does not retrieve the right answers is left uncalibrated.

        Raises:
            storage.errors.EmbedderUnavailable: it failed or was late; the next call tries again.
        """
        if self._embedder is None:
            return
        vectors = await self._embedder.aembed([text for pair in PAIRS for text in pair])
        mean, deviation = mean_and_deviation(vectors)
        if finds_answers(vectors):
            self._factor = DEVIATION / deviation
            self._shift = MEAN - self._factor * mean
        else:
            log.warning("the embedder does not find plain answers: its cosines are judged as they are")
        self._embedder = None

    def rescale(self, cosine: float) -> float:
        """Return a cosine on the bundled model's scale."""
        return self._factor * cosine + self._shift


def mean_and_deviation(vectors: np.ndarray) -> tuple[float, float]:
    """Return (mean, standard deviation) of the cosines of every question with every answer.

    Args:
        vectors: (texts, dimensions) of ``PAIRS``, questions and answers alternating.
    """
    cosines = vectors[0::2] @ vectors[1::2].T
    return float(cosines.mean()), float(cosines.std())


def finds_answers(vectors: np.ndarray) -> bool:
    """True if most questions are nearest to their own answers. ``vectors`` as for ``mean_and_deviation``."""
    nearest = (vectors[0::2] @ vectors[1::2].T).argmax(axis=1)
    return int((nearest == np.arange(len(PAIRS))).sum()) > len(PAIRS) / 2
