"""The one door to a language model: any OpenAI-compatible endpoint writes drafts from evidence.

Nothing of the SDK leaves this module: its errors become ModelUnavailable or ModelReplyUnusable. Its
own retries are off, because they may sleep for as long as a server's Retry-After says.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Sequence
from json import JSONDecodeError
from typing import Any

import openai
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletion

from bot.core.errors import ModelReplyUnusable, ModelUnavailable
from bot.core.models import AnalyzedQuestion, Draft, Evidence
from bot.core.prompting import (
    REPLY_SCHEMA,
    ReplyFormat,
    ReplyMisformatted,
    instructions,
    read_reply,
    request,
)

log = logging.getLogger(__name__)

_JITTER = secrets.SystemRandom()

TRIES = 3
LONGEST_PAUSE = 5.0
"""Seconds; an endpoint that asks for a longer pause counts as unavailable."""

UNUSABLE: tuple[type[Exception], ...] = (
    openai.APIResponseValidationError,
    openai.LengthFinishReasonError,
    openai.ContentFilterFinishReasonError,
    JSONDecodeError,
    UnicodeDecodeError,
)
"""The endpoint answered, but not with a completion; all other errors of the SDK mean it is unavailable."""

TRANSIENT = (openai.APIConnectionError, openai.InternalServerError, openai.RateLimitError)

_RESPONSE_FORMAT: dict[str, Any] = {
    "type": "json_schema",
    "json_schema": {"name": "answer", "strict": True, "schema": REPLY_SCHEMA},
}


class ModelAnswerer:
    """Lets a model write the draft; knows which reply format its endpoint takes."""

    def __init__(self, client: AsyncOpenAI, *, model: str, seconds: float = 60, tokens: int = 800) -> None:
        self._client = client
        self._model = model
        self._seconds = seconds
        self._tokens = tokens
        self._format = ReplyFormat.JSON

    @classmethod
    def connect(
        cls, api_key: str, base_url: str | None, *, model: str, seconds: float = 60, tokens: int = 800
    ) -> ModelAnswerer:
        """An answerer at an endpoint; nothing is sent yet.

        Args:
            api_key: the endpoint's key.
            base_url: the endpoint, up to and with its version; None for OpenAI's own.
            model: name of the model there.
            seconds: how long one draft may take, retries included.
            tokens: longest reply the model may write.
        """
        client = AsyncOpenAI(api_key=api_key, base_url=base_url, max_retries=0, timeout=seconds)
        return cls(client, model=model, seconds=seconds, tokens=tokens)

    async def draft(
        self, question: AnalyzedQuestion, evidence: Sequence[Evidence], faults: Sequence[str] = ()
    ) -> Draft:
        """A draft in the model's words with the quotes it claims.

        Raises:
            ModelUnavailable: the endpoint is down, late, refusing or rate-limited.
            ModelReplyUnusable: the reply was cut off, empty or not what was asked for.
        """
        try:
            async with asyncio.timeout(self._seconds):
                return await self._draft(question, evidence, faults)
        except TimeoutError as error:
            raise ModelUnavailable("the model did not answer in time") from error

    async def write(self, instructions: str, request: str, *, seconds: float, tokens: int) -> str:
        """A short text in the model's words.

        Raises:
            ModelUnavailable: the endpoint is down, late, refusing or rate-limited.
            ModelReplyUnusable: the reply was cut off or empty.
        """
        messages = [{"role": "system", "content": instructions}, {"role": "user", "content": request}]
        try:
            async with asyncio.timeout(seconds):
                return await self._complete(messages, {"max_tokens": tokens})
        except TimeoutError as error:
            raise ModelUnavailable("the model did not answer in time") from error

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def _draft(
        self, question: AnalyzedQuestion, evidence: Sequence[Evidence], faults: Sequence[str]
    ) -> Draft:
        """In JSON where the endpoint takes a schema; else, from then on, in marked lines."""
        if self._format is ReplyFormat.JSON:
            try:
                return await self._ask(ReplyFormat.JSON, question, evidence, faults)
            except (_FormatRefused, ReplyMisformatted):
                log.info("the model's endpoint does not keep to a JSON schema, trying marked lines")
        draft = await self._ask(ReplyFormat.MARKED, question, evidence, faults)
        self._format = ReplyFormat.MARKED
        return draft

    async def _ask(
        self,
        reply_format: ReplyFormat,
        question: AnalyzedQuestion,
        evidence: Sequence[Evidence],
        faults: Sequence[str],
    ) -> Draft:
        fence = secrets.token_hex(8)
        messages = [
            {"role": "system", "content": instructions(reply_format, fence)},
            {"role": "user", "content": request(question, evidence, fence, faults)},
        ]
        structure = {"response_format": _RESPONSE_FORMAT} if reply_format is ReplyFormat.JSON else {}
        return read_reply(await self._complete(messages, structure), reply_format)

    async def _complete(self, messages: list[dict[str, str]], structure: dict[str, Any]) -> str:
        """The text of one complete reply, after a few short retries of what may pass."""
        for tries_left in reversed(range(TRIES)):
            try:
                return _text_of(await self._send(messages, structure))
            except TRANSIENT as error:
                pause = _pause(error, TRIES - tries_left)
                if pause is None or not tries_left:
                    raise ModelUnavailable(_named(error)) from error
            except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
                raise (_FormatRefused if structure else ModelUnavailable)(_named(error)) from error
            except UNUSABLE as error:
                raise ModelReplyUnusable(_named(error)) from error
            except openai.OpenAIError as error:
                raise ModelUnavailable(_named(error)) from error
            await asyncio.sleep(pause)
        raise AssertionError("the last try returns or raises")

    async def _send(self, messages: list[dict[str, str]], structure: dict[str, Any]) -> object:
        """What the SDK returns: a page of HTML with status 200 comes back as a str, despite its types."""
        send: Any = self._client.chat.completions.create
        asked = {"max_tokens": self._tokens, **structure}
        reply: object = await send(model=self._model, messages=messages, temperature=0, **asked)
        return reply


class _FormatRefused(ModelUnavailable):
    """The endpoint refused a request that asked for a JSON schema; it may take one without."""


def _text_of(reply: object) -> str:
    """The whole text of a completion.

    Raises:
        ModelReplyUnusable: no completion, no choice, no text, or cut off before its end.
    """
    choices = reply.choices if isinstance(reply, ChatCompletion) else None
    if not choices:
        raise ModelReplyUnusable("the endpoint sent no completion")
    if choices[0].finish_reason != "stop":
        raise ModelReplyUnusable(f"the reply ended by {choices[0].finish_reason}")
    if not choices[0].message or not choices[0].message.content:
        raise ModelReplyUnusable("the reply is empty")
    return choices[0].message.content


def _pause(error: openai.APIError, tries: int) -> float | None:
    """Seconds to wait before trying again; None when it is not worth it."""
    if isinstance(error, openai.APITimeoutError) or error.code == "insufficient_quota":
        return None
    asked = _retry_after(error)
    if asked is None:
        return _JITTER.uniform(0.2, 0.5) * 2.0**tries
    return asked if asked <= LONGEST_PAUSE else None


def _retry_after(error: openai.APIError) -> float | None:
    headers = error.response.headers if isinstance(error, openai.APIStatusError) else {}
    try:
        return max(float(headers["retry-after"]), 0.0)
    except (KeyError, ValueError):
        return None


def _named(error: Exception) -> str:
    """What happened without a word of the exchange."""
    status = getattr(error, "status_code", None)
    return f"{type(error).__name__}{f' {status}' if status else ''}"
