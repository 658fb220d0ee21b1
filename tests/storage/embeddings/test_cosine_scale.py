"""Cosines of any embedder read on the bundled one's scale."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from storage.embeddings.base import QueryEmbedder
from storage.embeddings.cosine_scale import DEVIATION, MEAN, PAIRS, CosineScale, moments
from storage.embeddings.onnx_embedder import BundledEmbedder

# Length of what all squashed vectors have in common: their cosines begin at 0.8.
SHARED = 2.0


class SquashedEmbedder(QueryEmbedder):
    """The bundled embedder's vectors, drawn near to each other as some models' are."""

    def __init__(self, embedder: BundledEmbedder) -> None:
        super().__init__(embedder, seconds=60)
        self._own = embedder
        self.calls = 0

    async def aembed(self, texts: Sequence[str]) -> np.ndarray:
        """Return each with the same long part added."""
        self.calls += 1
        own = await self._own.aembed(texts)
        drawn = np.hstack([own, np.full((len(own), 1), SHARED, dtype=np.float32)])
        return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def bundled() -> Iterator[BundledEmbedder]:
    """The bundled embedder, loaded once."""
    embedder = BundledEmbedder.load()
    yield embedder
    embedder.close()


async def test_another_embedders_cosines_are_put_where_the_bundled_one_has_them(
    bundled: BundledEmbedder,
) -> None:
    """Shows that a cosine above 0.8 of a model that has no lower ones is read as the little that it is."""
    squashed = SquashedEmbedder(bundled)
    scale = CosineScale(squashed)
    texts = ["May I bring a dog?", "Dogs are not allowed in the office.", "Net sales rose by 5 %."]
    own, drawn = await bundled.aembed(texts), await squashed.aembed(texts)
    await scale.calibrate()
    for other in (1, 2):
        assert float(drawn[0] @ drawn[other]) > 0.75
        assert scale.of(float(drawn[0] @ drawn[other])) == pytest.approx(float(own[0] @ own[other]), abs=0.02)


async def test_it_is_measured_once_and_the_bundled_one_never(bundled: BundledEmbedder) -> None:
    """Shows that calibrating costs one batch, and none for the embedder that all was measured with."""
    squashed = SquashedEmbedder(bundled)
    for scale in (CosineScale(squashed), CosineScale()):
        await scale.calibrate()
        await scale.calibrate()
    assert squashed.calls == 1
    assert CosineScale().of(0.3) == 0.3


async def test_the_stored_moments_are_the_bundled_embedders(bundled: BundledEmbedder) -> None:
    """Shows that another bundled model, or other pairs, have others: they are measured again then."""
    measured = moments(await bundled.aembed([text for pair in PAIRS for text in pair]))
    assert measured == pytest.approx((MEAN, DEVIATION), abs=0.003)


class WordEmbedder(QueryEmbedder):
    """Puts texts together that share a word, and nothing else."""

    def __init__(self, embedder: BundledEmbedder) -> None:
        super().__init__(embedder, seconds=60)

    async def aembed(self, texts: Sequence[str]) -> np.ndarray:
        """One direction for each text."""
        return np.eye(len(texts), dtype=np.float32)


async def test_an_embedder_that_finds_no_answer_stays_as_it_is(
    bundled: BundledEmbedder, caplog: pytest.LogCaptureFixture
) -> None:
    """Shows that a scale without meaning is not stretched, and that the log says so."""
    scale = CosineScale(WordEmbedder(bundled))
    await scale.calibrate()
    assert scale.of(0.3) == 0.3
    assert "does not find plain answers" in caplog.text
