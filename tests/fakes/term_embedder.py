"""A cheap embedder that records its texts and can become unavailable."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fakes.embedding_server import embed_by_terms
from storage.embeddings.base import Vectors
from storage.errors import EmbedderUnavailable


class TermEmbedder:
    """An ``Embedder``; each ``name`` is a space."""

    def __init__(self, name: str, dimensions: int = 32) -> None:
        self.id = self.space = name
        self.dimensions = dimensions
        self.window, self.batch = 4096, 2
        self.tokenizer: Path | None = None
        self.texts: list[str] = []
        # Texts left to embed before it is unavailable; None: unlimited.
        self.left: int | None = None

    def count(self, text: str) -> int:
        """Count words."""
        return len(text.split())

    async def aembed(self, texts: Sequence[str]) -> Vectors:
        """Embed by terms."""
        if self.left is not None and len(texts) > self.left:
            raise EmbedderUnavailable("the embeddings endpoint does not answer")
        self.left = None if self.left is None else self.left - len(texts)
        self.texts += texts
        made = np.array([embed_by_terms(text, self.dimensions) for text in texts], dtype=np.float32)
        return made / np.linalg.norm(made, axis=1, keepdims=True)

    async def aclose(self) -> None:
        """Do nothing."""
