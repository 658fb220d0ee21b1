"""The vectors that reading gave to what can be quoted, for the questions of one embedder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from storage.mended_readings import RepairingReadings
from storage.sentence_vectors import TextRange, Vector, by_span


class SentenceVectorStore:
    """Looks vectors up; whatever has none, or none that fits, is simply not there."""

    def __init__(self, readings: RepairingReadings, space: str) -> None:
        """``space`` is where the vectors of all questions lie."""
        self._readings = readings
        self._space = space

    async def vectors(self, chunks: Sequence[tuple[UUID, int, str]]) -> list[Mapping[TextRange, Vector]]:
        """(start, end) -> vector, of length one, of what may be quoted from each (reading, ordinal, text).

        Empty for a reading without them (a quick one, or one made before there were any), for one made
        by another embedder, for another text than the chunk's, and where the disk damaged them.

        Raises:
            BlobsUnavailable: the files of readings cannot be reached.
        """
        kept = await self._readings.sentences([(reading_id, ordinal) for reading_id, ordinal, _ in chunks])
        fitting = [
            one if one and one.is_of(self._space, text) else None
            for one, (_, _, text) in zip(kept, chunks, strict=True)
        ]
        return by_span(fitting)
