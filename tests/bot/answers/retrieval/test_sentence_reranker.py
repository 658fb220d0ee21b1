"""Sentence reranking: a passage scores as its most similar sentence, with vectors stored at reading."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

import numpy as np
import pytest
from fakes.core import HashEmbedder, ask, make_passage

from bot.answers.retrieval.reranking import SentenceReranker
from bot.core.errors import RerankerError
from bot.core.models import Passage
from storage.errors import BlobsUnavailable
from storage.text.sentences import quotables

Vectors = dict[tuple[int, int], np.ndarray]

QUESTION = "When are filters changed?"
NEAR = "The pump is red. The room is blue. The door is green. Filters are changed on Monday."
FAR = "Filters of the kitchen are in stock. Nobody is on duty."


class Kept:
    """Stored vectors of all passages except those of one file."""

    def __init__(self, passages: Sequence[Passage], *, without: str = "") -> None:
        self._known = {one.publication.reading_id for one in passages if one.publication.file != without}

    async def vectors(self, chunks: Sequence[tuple[UUID, int, str]]) -> list[Vectors]:
        """Return the vectors of all quotable units."""
        return [await self._of(text) if reading_id in self._known else {} for reading_id, _, text in chunks]

    async def _of(self, text: str) -> Vectors:
        units = list(quotables(text))
        vectors = await HashEmbedder().aembed([unit.text for unit in units])
        return {(unit.start, unit.end): vector for unit, vector in zip(units, vectors, strict=True)}


class NoBlobs:
    """Readings that cannot be reached."""

    async def vectors(self, chunks: Sequence[tuple[UUID, int, str]]) -> list[Vectors]:
        raise BlobsUnavailable("gone")


PASSAGES = [make_passage(FAR, file="far.pdf"), make_passage(NEAR, file="near.pdf")]


async def judged(kept: Kept | NoBlobs, passages: Sequence[Passage] = PASSAGES) -> Sequence[float]:
    vector = (await HashEmbedder().aembed([QUESTION]))[0]
    return await SentenceReranker(kept).relevance(ask(QUESTION, vector=vector), passages)


async def test_the_most_similar_sentence_scores_its_passage() -> None:
    """Shows that surrounding text does not dilute a sentence's similarity."""
    far, near = await judged(Kept(PASSAGES))
    assert near > far


async def test_a_passage_without_vectors_counts_as_an_average_one() -> None:
    """Shows that a new document loses no rank for not being fully read yet."""
    fresh = make_passage(FAR, file="fresh.pdf")
    far, near, unknown = await judged(Kept([*PASSAGES, fresh], without="fresh.pdf"), [*PASSAGES, fresh])
    assert far < unknown < near


async def test_without_a_vector_the_search_order_is_kept() -> None:
    """Shows that without a question vector all scores are 0."""
    assert await SentenceReranker(Kept(PASSAGES)).relevance(ask(QUESTION), PASSAGES) == [0.0, 0.0]


async def test_unreachable_readings_raise_reranker_error() -> None:
    """Shows that the error becomes a RerankerError, which costs no answer."""
    with pytest.raises(RerankerError):
        await judged(NoBlobs())


async def test_another_text_of_the_same_reading_is_not_mixed_up() -> None:
    """Shows that each passage is scored by its own chunk."""
    passages = [replace(PASSAGES[1], ordinal=number, text=text) for number, text in enumerate((FAR, NEAR))]
    far, near = await judged(Kept(passages), passages)
    assert near > far
