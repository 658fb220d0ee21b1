"""What an embedder is, whoever makes the vectors; and one for questions, where somebody waits."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from storage.errors import EmbedderUnavailable
from storage.recent_items import RecentItems

Vectors = npt.NDArray[np.float32]

# Seconds between the two tries of a question; one that has to wait longer is not tried again.
MIN_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 0.1, 0.5
# Vectors of questions that are remembered: people ask the same again.
CACHE_SIZE = 256
_CHANCE = random.SystemRandom()


class Embedder(Protocol):
    """Texts in, vectors of length one out."""

    @property
    def id(self) -> str:
        """Changes with the model: vectors of two ids are never compared."""

    @property
    def space(self) -> str:
        """The id as a name that any index takes for its vectors."""

    @property
    def dimensions(self) -> int:
        """Length of a vector."""

    @property
    def window(self) -> int:
        """Most pieces of a text that are seen."""

    @property
    def batch(self) -> int:
        """Texts that are best given at once."""

    @property
    def tokenizer(self) -> Path | None:
        """The file that cuts a text into pieces; None when pieces are cl100k tokens."""

    def count(self, text: str) -> int:
        """Pieces of a text."""

    async def aembed(self, texts: Sequence[str]) -> Vectors:
        """(texts, dimensions) float32, each row of length one.

        Raises:
            EmbedderUnavailable: another machine makes them, and it does not.
        """

    async def aclose(self) -> None:
        """Let go of threads and connections."""


class QueryEmbedder:
    """An embedder for questions: it ends in time, forgives one short fault and asks nothing twice."""

    def __init__(self, embedder: Embedder, seconds: float) -> None:
        """Every call ends within ``seconds``."""
        self._embedder = embedder
        self._seconds = seconds
        self._recent: RecentItems[str, Vectors] = RecentItems(CACHE_SIZE)

    @property
    def space(self) -> str:
        """Where the vectors lie."""
        return self._embedder.space

    async def aembed(self, texts: Sequence[str]) -> Vectors:
        """As ``Embedder.aembed``, of at least one text.

        Raises:
            EmbedderUnavailable: it failed twice, or would be late.
        """
        known = {text: self._recent[text] for text in texts if text in self._recent}
        missing = [text for text in dict.fromkeys(texts) if text not in known]
        if missing:
            known |= zip(missing, await self._with_deadline(missing), strict=True)
        self._recent.update(known)
        return np.stack([known[text] for text in texts])

    def count(self, text: str) -> int:
        """Pieces of a text."""
        return self._embedder.count(text)

    async def _with_deadline(self, texts: Sequence[str]) -> Vectors:
        try:
            async with asyncio.timeout(self._seconds):
                return await self._embed(texts)
        except TimeoutError as error:
            raise EmbedderUnavailable(f"the embedder took over {self._seconds:g} s") from error

    async def _embed(self, texts: Sequence[str]) -> Vectors:
        try:
            return await self._embedder.aembed(texts)
        except EmbedderUnavailable as error:
            if error.retry_after > MAX_PAUSE_SECONDS:
                raise
        await asyncio.sleep(_CHANCE.uniform(MIN_PAUSE_SECONDS, MAX_PAUSE_SECONDS))
        return await self._embedder.aembed(texts)


def space_of(identity: str) -> str:
    """Return the vector space of an embedder's id, whose only mark is the hyphen."""
    return identity.replace("-", "_")
