"""The reranker that needs nothing: a passage is as near to a question as the nearest of its sentences.

The vector of a whole passage blurs what its sentences say. Reading has given each of them a vector, so that
looking at them costs no embedding. Source: Dai & Callan, "Deeper Text Understanding for IR with Contextual
Neural Language Modeling" (2019), whose MaxP scores a document by its best part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean

import numpy as np

from bot.core.errors import RerankerError
from bot.core.meaning import chunk_place
from bot.core.models import AnalyzedQuestion, Passage
from bot.core.ports import FloatArray, SentenceReader
from storage.errors import InfrastructureError


class SentenceReranker:
    """Judges a passage by its sentence nearest to the question."""

    def __init__(self, kept: SentenceReader) -> None:
        """``kept``: the vectors that reading made."""
        self._kept = kept

    async def relevance(self, question: AnalyzedQuestion, passages: Sequence[Passage]) -> Sequence[float]:
        """The highest cosine of each passage; one whose sentences have no vectors counts as an average one.

        Raises:
            RerankerError: readings cannot be reached.
        """
        if question.vector is None:
            return [0.0] * len(passages)
        asked = np.asarray(question.vector, dtype=np.float32)
        try:
            kept = await self._kept.vectors(list(map(chunk_place, passages)))
        except InfrastructureError as error:
            raise RerankerError(f"no vectors of sentences: {type(error).__name__}") from error
        nearest = [_nearest(asked, vectors) for vectors in kept]
        known = [cosine for cosine in nearest if cosine is not None]
        usual = mean(known) if known else 0.0
        return [usual if cosine is None else cosine for cosine in nearest]


def _nearest(asked: FloatArray, vectors: Mapping[tuple[int, int], FloatArray]) -> float | None:
    return float((np.stack([*vectors.values()]) @ asked).max()) if vectors else None
