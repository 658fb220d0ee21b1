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
from bot.core.ports import FloatArray, SentenceVectorReader
from storage.errors import InfrastructureError


class SentenceReranker:
    """Judges a passage by its sentence nearest to the question."""

    def __init__(self, kept: SentenceVectorReader) -> None:
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
        nearest = _nearest(asked, kept)
        usual = mean(nearest.values()) if nearest else 0.0
        return [nearest.get(place, usual) for place in range(len(passages))]


def _nearest(asked: FloatArray, kept: Sequence[Mapping[tuple[int, int], FloatArray]]) -> dict[int, float]:
    """Place of a passage -> its highest cosine; of those that have vectors."""
    known = {place: vectors for place, vectors in enumerate(kept) if vectors}
    if not known:
        return {}
    cosines = np.stack([vector for vectors in known.values() for vector in vectors.values()]) @ asked
    starts = np.cumsum([0, *map(len, known.values())][:-1])
    return dict(zip(known, np.maximum.reduceat(cosines, starts).tolist(), strict=True))
