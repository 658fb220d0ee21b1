"""Embeddings from any OpenAI-compatible endpoint; in storage only this module knows the SDK.

Its own retries are off, because they may sleep for as long as a server's Retry-After says: documents
are tried again by the worker for ever, questions once more within their deadline.
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
from storage.text.token_counts import count_tokens, cut_tokens

KNOWN_DIMENSIONS = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
}
# Statuses by which an endpoint may refuse a text, or so many of them at once, for their length.
TOO_LARGE_STATUSES = (400, 413, 422)
# Tokens below which a text that is refused is not cut any further: its length is not what is wrong.
MIN_TEXT_TOKENS = 32
# Seconds; an endpoint that asks to be left alone for longer is asked again after this.
MAX_REST_SECONDS = 600.0


class EndpointEmbedder:
    """The embedder behind an endpoint; ``Embedder`` says what each member means.

    One model at one length is one space, wherever it is served: the name decides, not the address.
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
        """Send at most ``batch_items`` texts of ``batch_tokens`` tokens at once, and wait for ``seconds``."""
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
        """Return the embedder that the settings describe; nothing is sent yet.

        Raises:
            SettingsError: no model is named, or nobody knows how long its vectors are.
        """
        model, base_url = settings.embed_model, settings.embed_base_url or OPENAI
        if model is None:
            raise SettingsError("FOOTNOTE_EMBED_MODEL: name the model at FOOTNOTE_EMBED_BASE_URL")
        dimensions = settings.embed_dimensions or KNOWN_DIMENSIONS.get(model)
        if dimensions is None:
            raise SettingsError(f"FOOTNOTE_EMBED_DIMENSIONS: say how long the vectors of {model!r} are")
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
        """Tokens (cl100k_base) of a text; the endpoint's own may differ, so leave its window some room."""
        return count_tokens(text)

    async def aembed(self, texts: Sequence[str]) -> Vectors:
        """Vectors of length one, shape (texts, dimensions); what exceeds the window is not sent.

        Raises:
            EmbedderUnavailable: the endpoint is down, late or refusing, or sent no such vectors.
        """
        cut = [cut_tokens(text, self.window) or " " for text in texts]
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
        """One batch, halved when it is refused, down to a text, of which then less and less is sent.

        An endpoint's tokens are not ours, and one text that it does not take must not cost its document
        the vectors of all others.
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
        return await self._embed([cut_tokens(texts[0], tokens // 2)])

    async def _embed_batch(self, texts: list[str]) -> Vectors:
        """One request; longer vectors than wanted are asked for again at the wanted length, from then on."""
        vectors = _read(await self._ask(texts), len(texts))
        if vectors.shape[1] > self.dimensions and not self._asks_for_length:
            self._asks_for_length = True
            vectors = _read(await self._ask(texts), len(texts))
        if vectors.shape[1] != self.dimensions:
            raise EmbedderUnavailable(
                f"the embeddings endpoint makes vectors of {vectors.shape[1]} numbers, not of "
                f"{self.dimensions}: set FOOTNOTE_EMBED_DIMENSIONS to what the model makes"
            )
        return _unit(vectors)

    async def _ask(self, texts: list[str]) -> object:
        """What the SDK returns: a page of HTML with status 200 comes back as a str, despite its types."""
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
    """The endpoint does not take these texts."""


def _refusal(error: openai.APIStatusError) -> EmbedderUnavailable:
    """What a status means for an admin; never a word of the exchange."""
    meaning = {
        400: "takes no such texts: lower FOOTNOTE_EMBED_WINDOW or FOOTNOTE_EMBED_BATCH_TOKENS",
        401: "refuses the key: check FOOTNOTE_EMBED_API_KEY",
        403: "refuses the key: check FOOTNOTE_EMBED_API_KEY",
        404: "does not know the model: check FOOTNOTE_EMBED_MODEL and FOOTNOTE_EMBED_BASE_URL",
        413: "takes no such texts: lower FOOTNOTE_EMBED_BATCH_ITEMS or FOOTNOTE_EMBED_BATCH_TOKENS",
        422: "takes no such texts: lower FOOTNOTE_EMBED_WINDOW or FOOTNOTE_EMBED_BATCH_TOKENS",
        429: "has had enough requests for now",
    }.get(error.status_code, "failed")
    sentence = f"the embeddings endpoint {meaning} (status {error.status_code})"
    kind = _TextsRefused if error.status_code in TOO_LARGE_STATUSES else EmbedderUnavailable
    return kind(sentence, retry_after=_retry_after(error))


def _retry_after(error: openai.APIStatusError) -> float:
    try:
        seconds = float(error.response.headers["retry-after"])
    except (KeyError, ValueError):
        return 0.0
    return 0.0 if math.isnan(seconds) else min(max(seconds, 0.0), MAX_REST_SECONDS)


def _read(reply: object, expected: int) -> Vectors:
    """Return the vectors of a reply in the order of their texts.

    Raises:
        EmbedderUnavailable: it is no reply, or not to these texts.
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
        "the embeddings endpoint sent no vectors of the texts: does FOOTNOTE_EMBED_BASE_URL end as its "
        "maker says (often in /v1)?"
    )


def _unit(vectors: Vectors) -> Vectors:
    """Return the vectors at length one.

    Raises:
        EmbedderUnavailable: one has no direction, or is not made of numbers.
    """
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not np.isfinite(lengths).all() or not lengths.all():
        raise EmbedderUnavailable("the embeddings endpoint sent a vector that is none")
    unit: Vectors = vectors / lengths
    return unit
