"""Cosines of any embedder are mapped to the bundled one's scale."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from storage.embeddings.base import QueryEmbedder
from storage.embeddings.cosine_scale import DEVIATION, MEAN, PAIRS, CosineCalibration, mean_and_deviation
from storage.embeddings.onnx_embedder import BundledEmbedder

# Length of the component that all squashed vectors share: their cosines start at 0.8.
SHARED = 2.0


class SquashedEmbedder(QueryEmbedder):
    """The bundled embedder with its vectors squeezed together, as those of some models are."""

    def __init__(self, embedder: BundledEmbedder) -> None:
        super().__init__(embedder, seconds=60)
        self._own = embedder
        self.calls = 0

    async def aembed(self, texts: Sequence[str]) -> np.ndarray:
        """Add the same long component to each vector."""
        self.calls += 1
        own = await self._own.aembed(texts)
        drawn = np.hstack([own, np.full((len(own), 1), SHARED, dtype=np.float32)])
        return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def bundled() -> Iterator[BundledEmbedder]:
    """The bundled embedder, loaded once."""
    embedder = BundledEmbedder.load(None, 2)
    yield embedder
    embedder.close()


async def test_cosines_are_mapped_to_the_bundled_embedders_scale(
    bundled: BundledEmbedder,
) -> None:
    """Shows that 0.8 from a model without lower cosines is read as low similarity."""
    squashed = SquashedEmbedder(bundled)
    scale = CosineCalibration(squashed)
    texts = ["May I bring a dog?", "Dogs are not allowed in the office.", "Net sales rose by 5 %."]
    own, drawn = await bundled.aembed(texts), await squashed.aembed(texts)
    await scale.calibrate()
    for other in (1, 2):
        assert float(drawn[0] @ drawn[other]) > 0.75
        assert scale.rescale(float(drawn[0] @ drawn[other])) == pytest.approx(
            float(own[0] @ own[other]), abs=0.02
        )


async def test_calibration_runs_once_and_never_for_the_bundled_one(bundled: BundledEmbedder) -> None:
    """A batch per embedder; none for the bundled one, whose scale is the reference."""
    squashed = SquashedEmbedder(bundled)
    for scale in (CosineCalibration(squashed), CosineCalibration()):
        await scale.calibrate()
        await scale.calibrate()
    assert squashed.calls == 1
    assert CosineCalibration().rescale(0.3) == 0.3


async def test_the_stored_moments_are_the_bundled_embedders(bundled: BundledEmbedder) -> None:
    """Fails when the bundled model or the pairs change: measure the moments again."""
    measured = mean_and_deviation(await bundled.aembed([text for pair in PAIRS for text in pair]))
    assert measured == pytest.approx((MEAN, DEVIATION), abs=0.003)


class WordEmbedder(QueryEmbedder):
    """An embedder without meaning: all its texts are orthogonal."""

    def __init__(self, embedder: BundledEmbedder) -> None:
        super().__init__(embedder, seconds=60)

    async def aembed(self, texts: Sequence[str]) -> np.ndarray:
        """Return one axis per text."""
        return np.eye(len(texts), dtype=np.float32)


async def test_an_embedder_without_meaning_is_not_calibrated(
    bundled: BundledEmbedder, caplog: pytest.LogCaptureFixture
) -> None:
    """The scale stays linear, and a warning is logged."""
    scale = CosineCalibration(WordEmbedder(bundled))
    await scale.calibrate()
    assert scale.rescale(0.3) == 0.3
    assert "does not find plain answers" in caplog.text
