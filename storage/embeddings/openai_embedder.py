"""Embeddings from OpenAI-compatible endpoints; the only module of storage that knows the SDK.

The SDK's retries are off because they may sleep for as long as Retry-After says. The worker retries
documents without limit; questions are retried once within their deadline.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import openai
from openai import AsyncOpenAI

from storage.embeddings.base import Vectors, space_of
from storage.errors import EmbedderUnavailable, SettingsError
from storage.settings import OPENAI, StorageSettings
from storage.text.token_counts import count_tokens, truncate_tokens

KNOWN_DIMENSIONS = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
}
# Statuses that may mean that a text, or the batch, is too long.
TOO_LARGE_STATUSES = (400, 413, 422)
# A refused text below this length is not truncated further: its length is not the cause.
MIN_TEXT_TOKENS = 32
# Upper bound of Retry-After in seconds.
MAX_RETRY_AFTER_SECONDS = 600.0


class EndpointEmbedder:
    """Embedder of a remote endpoint; see ``Embedder`` for the members.

    Model name and dimension define the vector space, whatever the address.
    """

    def __init__(
        self,
        client: AsyncOpenAI,
        *,
        model: str,
        dimensions: int,
        window: int,
        batch_items: int,
        batch_tokens: int,
        seconds: float,
    ) -> None:
        """Limit requests to ``batch_items`` texts, ``batch_tokens`` tokens and ``seconds``."""
        self._client = client
        self._model = model
        self._batch_tokens = batch_tokens
        self._seconds = seconds
        self._asks_for_length = False
        self.id = f"endpoint-{hashlib.sha256(f'{dimensions} {model}'.encode()).hexdigest()[:16]}"
        self.space = space_of(self.id)
        self.dimensions = dimensions
        self.window = window
        self.batch = batch_items
        self.tokenizer: Path | None = None

    @classmethod
    def connect(cls, settings: StorageSettings, api_key: str | None) -> EndpointEmbedder:
        """Return the configured embedder; sends nothing yet.

        Raises:
            SettingsError: the model is not set, or its dimension is unknown.
        """
        model, base_url = settings.embed_model, settings.embed_base_url or OPENAI
        if model is None:
            raise SettingsError("FOOTNOTE_EMBED_MODEL: name the model at FOOTNOTE_EMBED_BASE_URL")
        dimensions = settings.embed_dimensions or KNOWN_DIMENSIONS.get(model)
        if dimensions is None:
            raise SettingsError(
                f"set FOOTNOTE_EMBED_DIMENSIONS: the vector dimension of {model!r} is unknown"
            )
        client = AsyncOpenAI(
            api_key=api_key or "none", base_url=base_url, max_retries=0, timeout=settings.embed_seconds
        )
        return cls(
            client,
            model=model,
            dimensions=dimensions,
            window=settings.embed_window,
            batch_items=settings.embed_batch_items,
            batch_tokens=settings.embed_batch_tokens,
            seconds=settings.embed_seconds,
        )

    def count(self, text: str) -> int:
        """Return cl100k_base tokens. The endpoint's tokenizer may differ, so leave a margin in its window."""
        return count_tokens(text)

    async def aembed(self, texts: Sequence[str]) -> Vectors:
        """Return L2-normalised vectors of shape (texts, dimensions); texts are truncated to the window.

        Raises:
            EmbedderUnavailable: the endpoint is down, slow or refusing, or sent no valid vectors.
        """
        cut = [truncate_tokens(text, self.window) or " " for text in texts]
        made = [await self._embed(batch) for batch in self._batches(cut)]
        return np.concatenate(made) if made else np.zeros((0, self.dimensions), np.float32)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.close()

    def _batches(self, texts: Iterable[str]) -> Iterator[list[str]]:
        batch: list[str] = []
        left = self._batch_tokens
        for text in texts:
            tokens = count_tokens(text)
            if batch and (tokens > left or len(batch) == self.batch):
                yield batch
                batch, left = [], self._batch_tokens
            batch.append(text)
            left -= tokens
        if batch:
            yield batch

    async def _embed(self, texts: list[str]) -> Vectors:
        """Embed a batch, halving it when refused; a single refused text is truncated step by step.

        The endpoint's tokenizer is not ours, and one refused text must not cost its document all other
        vectors.
        """
        try:
            return await self._embed_batch(texts)
        except _TextsRefused:
            half = len(texts) // 2
            tokens = count_tokens(texts[0])
            if not half and tokens < MIN_TEXT_TOKENS:
                raise
        if half:
            return np.concatenate([await self._embed(texts[:half]), await self._embed(texts[half:])])
        return await self._embed([truncate_tokens(texts[0], tokens // 2)])

    async def _embed_batch(self, texts: list[str]) -> Vectors:
        """Send one request; if the vectors are too long, ask for ``dimensions`` from then on."""
        vectors = _read(await self._ask(texts), len(texts))
        if vectors.shape[1] > self.dimensions and not self._asks_for_length:
            self._asks_for_length = True
            vectors = _read(await self._ask(texts), len(texts))
        if vectors.shape[1] != self.dimensions:
            raise EmbedderUnavailable(
                f"the embeddings endpoint returned vectors of dimension {vectors.shape[1]} instead of "
                f"{self.dimensions}: set FOOTNOTE_EMBED_DIMENSIONS to {vectors.shape[1]}"
            )
        return _unit(vectors)

    async def _ask(self, texts: list[str]) -> object:
        """Return the SDK's reply. Despite its types this may be a str: a page of HTML with status 200."""
        length = {"dimensions": self.dimensions} if self._asks_for_length else {}
        create: Any = self._client.embeddings.create
        try:
            async with asyncio.timeout(self._seconds):
                reply: object = await create(
                    model=self._model, input=texts, encoding_format="float", **length
                )
                return reply
        except (TimeoutError, openai.APIConnectionError) as error:
            raise EmbedderUnavailable("the embeddings endpoint does not answer") from error
        except openai.APIStatusError as error:
            raise _refusal(error) from error
        except (openai.OpenAIError, ValueError) as error:
            raise _unreadable() from error


class _TextsRefused(EmbedderUnavailable):
    """Raised if the endpoint refuses these texts."""


def _refusal(error: openai.APIStatusError) -> EmbedderUnavailable:
    """Return the error for a status, worded for an admin; it quotes nothing of the exchange."""
    meaning = {
        400: "rejected the request: lower FOOTNOTE_EMBED_WINDOW or FOOTNOTE_EMBED_BATCH_TOKENS",
        401: "refuses the key: check FOOTNOTE_EMBED_API_KEY",
        403: "refuses the key: check FOOTNOTE_EMBED_API_KEY",
        404: "does not know the model: check FOOTNOTE_EMBED_MODEL and FOOTNOTE_EMBED_BASE_URL",
        413: "rejected the request: lower FOOTNOTE_EMBED_BATCH_ITEMS or FOOTNOTE_EMBED_BATCH_TOKENS",
        422: "rejected the request: lower FOOTNOTE_EMBED_WINDOW or FOOTNOTE_EMBED_BATCH_TOKENS",
        429: "is rate-limiting us",
    }.get(error.status_code, "failed")
    sentence = f"the embeddings endpoint {meaning} (status {error.status_code})"
    kind = _TextsRefused if error.status_code in TOO_LARGE_STATUSES else EmbedderUnavailable
    return kind(sentence, retry_after=_retry_after(error))


def _retry_after(error: openai.APIStatusError) -> float:
    try:
        seconds = float(error.response.headers["retry-after"])
    except (KeyError, ValueError):
        return 0.0
    return 0.0 if math.isnan(seconds) else min(max(seconds, 0.0), MAX_RETRY_AFTER_SECONDS)


def _read(reply: object, expected: int) -> Vectors:
    """Return the vectors of a reply in the order of the texts.

    Raises:
        EmbedderUnavailable: the reply is malformed or does not match the texts.
    """
    data: Any = getattr(reply, "data", None)
    try:
        by_index = {item.index: item.embedding for item in data}
        vectors = np.array([by_index[index] for index in range(expected)], dtype=np.float32)
    except (TypeError, ValueError, AttributeError, KeyError) as error:
        raise _unreadable() from error
    if len(data) != expected or vectors.ndim != 2:
        raise _unreadable()
    return vectors


def _unreadable() -> EmbedderUnavailable:
    return EmbedderUnavailable(
        "invalid response from the embeddings endpoint: check FOOTNOTE_EMBED_BASE_URL (it often ends in /v1)"
    )


def _unit(vectors: Vectors) -> Vectors:
    """Return the vectors L2-normalised.

    Raises:
        EmbedderUnavailable: a vector is zero or not finite.
    """
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not np.isfinite(lengths).all() or not lengths.all():
        raise EmbedderUnavailable("the embeddings endpoint returned a zero or non-finite vector")
    unit: Vectors = vectors / lengths
    return unit
