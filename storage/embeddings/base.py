"""Embedder interface, and the embedder of questions with deadline, retry and cache."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from storage.errors import EmbedderUnavailable
from storage.lru_cache import LRUCache
from storage.task_group import retry

Vectors = npt.NDArray[np.float32]

# Random pause before the one retry of a question; an endpoint with a longer Retry-After is not retried.
MIN_PAUSE_SECONDS, MAX_BACKOFF_SECONDS = 0.1, 0.5
# Query vectors in the LRU cache: people repeat questions.
CACHE_SIZE = 256
_CHANCE = random.SystemRandom()


class Embedder(Protocol):
    """An embedding model: texts in, L2-normalised vectors out."""

    @property
    def id(self) -> str:
        """Model identity; vectors of different ids must not be compared."""

    @property
    def space(self) -> str:
        """The id in a form that every index accepts as a vector name."""

    @property
    def dimensions(self) -> int:
        """Vector dimension."""

    @property
    def window(self) -> int:
        """Context window in pieces; the rest of a text is ignored."""

    @property
    def batch(self) -> int:
        """Preferred batch size in texts."""

    @property
    def tokenizer(self) -> Path | None:
        """The tokenizer file; None if pieces are cl100k tokens."""

    def count(self, text: str) -> int:
        """Return the number of pieces of a text."""

    async def aembed(self, texts: Sequence[str]) -> Vectors:
        """Return L2-normalised float32 vectors of shape (texts, dimensions).

        Raises:
            EmbedderUnavailable: the remote endpoint failed.
        """

    async def aclose(self) -> None:
        """Release threads and connections."""


class QueryEmbedder:
    """Embeds questions: with a deadline, one retry and an LRU cache."""

    def __init__(self, embedder: Embedder, seconds: float) -> None:
        """Limit every call to ``seconds``."""
        self._embedder = embedder
        self._seconds = seconds
        self._recent: LRUCache[str, Vectors] = LRUCache(CACHE_SIZE)

    @property
    def space(self) -> str:
        """Vector space."""
        return self._embedder.space

    async def aembed(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of at least one text, as ``Embedder.aembed``.

        Raises:
            EmbedderUnavailable: it failed twice, or missed the deadline.
        """
        known = {text: self._recent[text] for text in texts if text in self._recent}
        missing = [text for text in dict.fromkeys(texts) if text not in known]
        if missing:
            known |= zip(missing, await self._with_deadline(missing), strict=True)
        self._recent.update(known)
        return np.stack([known[text] for text in texts])

    def count(self, text: str) -> int:
        """Return the number of pieces of a text."""
        return self._embedder.count(text)

    async def _with_deadline(self, texts: Sequence[str]) -> Vectors:
        try:
            async with asyncio.timeout(self._seconds):
                return await retry(lambda: self._embedder.aembed(texts), _pause, tries=2)
        except TimeoutError as error:
            raise EmbedderUnavailable(f"the embedder did not answer within {self._seconds:g} s") from error


def _pause(error: Exception, _tries: int) -> float | None:
    is_brief = isinstance(error, EmbedderUnavailable) and error.retry_after <= MAX_BACKOFF_SECONDS
    return _CHANCE.uniform(MIN_PAUSE_SECONDS, MAX_BACKOFF_SECONDS) if is_brief else None


def space_of(identity: str) -> str:
    """Return the vector space of an embedder's id; index names allow no hyphens."""
    return identity.replace("-", "_")
