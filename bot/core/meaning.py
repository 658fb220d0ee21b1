"""The vectors of quotable units: kept ones where reading made them, new ones for all others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bot.core.models import Passage
from bot.core.ports import Embedder, FloatArray, SentenceReader
from storage.quotables import Quotable

Unit = tuple[Passage, Quotable]
"""A part of a passage's text."""


class Meaning:
    """Looks vectors up, and has the missing ones made in one go."""

    def __init__(self, embedder: Embedder, kept: SentenceReader | None) -> None:
        """``kept``: what reading made; None: nothing."""
        self._embedder = embedder
        self._kept = kept

    async def of(self, units: Sequence[Unit]) -> tuple[FloatArray, int]:
        """(L2-normalised vectors of at least one unit, shape (units, dimensions), tokens embedded for them).

        Raises:
            storage.errors.InfrastructureError: readings cannot be reached, or the embedder is late.
        """
        found = await self._look_up(units)
        missing = [unit.text for (_, unit), vector in zip(units, found, strict=True) if vector is None]
        made = iter(await self._embedder.aembed(missing) if missing else ())
        vectors = np.stack([next(made) if vector is None else vector for vector in found])
        return vectors, sum(map(self._embedder.count, missing))

    async def _look_up(self, units: Sequence[Unit]) -> list[FloatArray | None]:
        """The kept vector of each unit; each chunk is asked for once."""
        if self._kept is None:
            return [None] * len(units)
        passages = {_place(passage): passage for passage, _ in units}
        kept = {
            place: await self._kept.vectors(passage.publication.reading_id, passage.ordinal, passage.text)
            for place, passage in passages.items()
        }
        return [kept[_place(passage)].get((unit.start, unit.end)) for passage, unit in units]


def _place(passage: Passage) -> tuple[object, int]:
    return passage.publication.reading_id, passage.ordinal
