"""Fixtures of the ingestion tests."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from harness.ingestion_home import Home, open_home

from storage.embeddings.onnx_embedder import BundledEmbedder
from storage.index.embedded.index import EmbeddedIndex


@pytest.fixture(scope="session")
def embedder() -> Iterator[BundledEmbedder]:
    """The bundled embedder."""
    loaded = BundledEmbedder.load(None, 2)
    yield loaded
    loaded.close()


@pytest.fixture
async def home(tmp_path: Path, embedder: BundledEmbedder) -> AsyncIterator[Home]:
    """A new home with real engines."""
    path = tmp_path / "home"
    async with open_home(path, embedder, EmbeddedIndex(path / "index", 10)) as made:
        yield made
