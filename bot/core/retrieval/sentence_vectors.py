"""The vectors of quotable units: kept ones where reading made them, new ones for all others."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from bot.core.models import Passage
from storage.embeddings.base import QueryEmbedder, Vectors
from storage.queues.reading_repair import SentenceVectorStore
from storage.text.sentences import Quotable

VectorUnit = tuple[Passage, Quotable]
"""A part of a passage's text."""


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
        found = await self._find_kept(units)
        missing = [place for place, vector in enumerate(found) if vector is None][:most_made]
        texts = [units[place][1].text for place in missing]
        made = await self._embedder.aembed(texts) if texts else ()
        for place, vector in zip(missing, made, strict=True):
            found[place] = vector
        return found, sum(map(self._embedder.count, texts))

    async def _find_kept(self, units: Sequence[VectorUnit]) -> list[Vectors | None]:
        """The kept vector of each unit; each chunk is asked for once."""
        if self._kept is None:
            return [None] * len(units)
        places = list(dict.fromkeys(chunk_place(passage) for passage, _ in units))
        kept = dict(zip(places, await self._kept.vectors(places), strict=True))
        return [kept[chunk_place(passage)].get((unit.start, unit.end)) for passage, unit in units]


def chunk_place(passage: Passage) -> tuple[UUID, int, str]:
    """What the vectors of a passage's parts are looked up by: its reading, ordinal and text."""
    return passage.publication.reading_id, passage.ordinal, passage.text
