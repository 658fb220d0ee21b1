"""Parts what a search found into chunks and figures, which the index holds behind a publication's chunks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from uuid import UUID

from bot.core.models import FoundFigure
from bot.core.ports import SearchHitsPort
from storage.index.contract import Hit
from storage.models import LivePublication


@dataclass(frozen=True, slots=True)
class ChunkHits:
    """What a search found but for the figures."""

    words: Sequence[Hit]
    vectors: Sequence[Hit]
    publications: Mapping[UUID, LivePublication]
    words_only: frozenset[UUID]
    not_live: int


def chunks_of(found: SearchHitsPort, limit: int) -> ChunkHits:
    """The best ``limit`` chunks of each leg."""
    words, vectors = (
        [hit for hit in leg if not _is_figure(hit, found)][:limit] for leg in (found.words, found.vectors)
    )
    shown = {hit.publication for hit in chain(words, vectors)}
    publications = {id_: one for id_, one in found.publications.items() if id_ in shown}
    return ChunkHits(words, vectors, publications, frozenset(shown & set(found.words_only)), found.not_live)


def is_short(found: SearchHitsPort, asked: int, limit: int) -> bool:
    """Whether figures took places of a leg that chunks should have had.

    Args:
        found: what was found.
        asked: how many hits of each leg were asked for.
        limit: how many of them should be chunks.
    """
    return any(
        len(leg) >= asked and sum(not _is_figure(hit, found) for hit in leg) < limit
        for leg in (found.words, found.vectors)
    )


def figures_of(found: SearchHitsPort) -> tuple[FoundFigure, ...]:
    """Every figure once, the most like the question first; those found by words alone come last."""
    words, vectors = (
        {(hit.publication, hit.ordinal): hit.score for hit in leg if _is_figure(hit, found)}
        for leg in (found.words, found.vectors)
    )
    figures = [
        FoundFigure(one, ordinal - one.chunks, words.get(key), vectors.get(key))
        for key in {**vectors, **words}
        for ordinal, one in [(key[1], found.publications[key[0]])]
    ]
    return tuple(sorted(figures, key=lambda one: (-(one.vector or 0.0), -(one.bm25 or 0.0))))


def _is_figure(hit: Hit, found: SearchHitsPort) -> bool:
    return hit.ordinal >= found.publications[hit.publication].chunks
