"""An embedder that costs nothing, remembers what it was asked, and stops when told to."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fakes.embedding_server import embed_by_terms
from storage.embeddings.base import Vectors
from storage.errors import EmbedderUnavailable


class TermEmbedder:
    """Satisfies ``Embedder``; each ``name`` is a space of its own."""

    def __init__(self, name: str, dimensions: int = 32) -> None:
        self.id = self.space = name
        self.dimensions = dimensions
        self.window, self.batch = 4096, 2
        self.tokenizer: Path | None = None
        self.texts: list[str] = []
        # Texts that are still embedded before it is unavailable; None: all.
        self.left: int | None = None

    def count(self, text: str) -> int:
        """Words of a text."""
        return len(text.split())

    async def aembed(self, texts: Sequence[str]) -> Vectors:
        """Vectors by terms."""
        if self.left is not None and len(texts) > self.left:
            raise EmbedderUnavailable("the embeddings endpoint does not answer")
        self.left = None if self.left is None else self.left - len(texts)
        self.texts += texts
        made = np.array([embed_by_terms(text, self.dimensions) for text in texts], dtype=np.float32)
        return made / np.linalg.norm(made, axis=1, keepdims=True)

    async def aclose(self) -> None:
        """Nothing is held."""
