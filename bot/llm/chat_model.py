"""Client of a chat model behind any OpenAI-compatible endpoint: whole replies, streams, short JSON calls.

The SDK's errors become ModelUnavailable or ModelReplyUnusable here. Its own retries are off, because they may
sleep for as long as a server's Retry-After says. Short calls are auxiliary: each is tried once within a
deadline, and its caller continues without it when it fails.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from json import JSONDecodeError
from typing import Any, TypeVar

import openai
from openai import AsyncOpenAI, AsyncStream
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from bot.answers.generation.prompt import PARSE_ERRORS, ReplyMisformatted, json_of
from bot.core.errors import ModelReplyUnusable, ModelUnavailable
from bot.core.models import AuxiliaryCall, Prompt, Reply, Usage, auxiliary_call
from bot.llm.capabilities import Capabilities, Feature, named_feature
from storage.task_group import retry

log = logging.getLogger(__name__)

_JITTER = secrets.SystemRandom()

MAX_TRIES = 3
# Longest Retry-After that is honoured; an endpoint that asks for more counts as unavailable.
MAX_PAUSE_SECONDS = 5.0

# The endpoint answered, but not with a completion; all other SDK errors mean that it is unavailable.
UNUSABLE: tuple[type[Exception], ...] = (
    openai.APIResponseValidationError,
    openai.LengthFinishReasonError,
    openai.ContentFilterFinishReasonError,
    JSONDecodeError,
    UnicodeDecodeError,
)

BROKEN: tuple[type[Exception], ...] = (openai.OpenAIError, *UNUSABLE)
TRANSIENT = (openai.APIConnectionError, openai.InternalServerError, openai.RateLimitError)
REFUSED = (openai.BadRequestError, openai.UnprocessableEntityError)

# Receives each piece of a reply's text as it arrives, at most once.
OnDelta = Callable[[str], None]

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A request to a chat model."""

    system: str
    user: str
    # Maximum length of the reply.
    tokens: int
    # JSON schema of the reply, within the subset that strict mode supports.
    schema: Mapping[str, Any] | None = None


class SchemaRefused(ModelUnavailable):
    """The endpoint refused a request with a JSON schema; it may accept one without."""


@asynccontextmanager
async def model_timeout(seconds: float) -> AsyncIterator[None]:
    """Raise ModelUnavailable if the block takes longer than ``seconds``."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as error:
        raise ModelUnavailable("model timed out") from error


class ChatModel:
    """Model at an endpoint; learns which request features it supports."""

    def __init__(self, client: AsyncOpenAI, *, model: str) -> None:
        self._client = client
        self._model = model
        self._capabilities = Capabilities()

    @classmethod
    def connect(cls, api_key: str, base_url: str | None, *, model: str, seconds: float) -> ChatModel:
        """Return a client of an endpoint; sends nothing yet.

        Args:
            base_url: up to and including the API version; None for OpenAI.
            seconds: longest silence of the endpoint; ``model_timeout`` limits a whole reply.
        """
        client = AsyncOpenAI(api_key=api_key, base_url=base_url, max_retries=0, timeout=seconds)
        return cls(client, model=model)

    async def reply(
        self, ask: ChatRequest, on_delta: OnDelta | None = None, *, tries: int = MAX_TRIES
    ) -> Reply:
        """Return the whole reply, after a few short retries; ``on_delta`` receives its pieces as they arrive.

        If an error follows, the pieces already passed on belong to no complete reply.

        Raises:
            ModelUnavailable: the endpoint is down, too slow, refusing or rate-limited.
            SchemaRefused: it refused the request, perhaps only its schema.
            ModelReplyUnusable: the reply was truncated, empty or no completion.
        """
        if on_delta and self._capabilities.supports(Feature.STREAM):
            if streamed := await self._try(lambda: self._stream(ask, on_delta), ask, tries):
                return streamed
            log.info("model endpoint did not stream, requesting the whole reply")
        whole = await self._try(lambda: self._complete(ask), ask, tries)
        if on_delta:
            on_delta(whole.text)
        return whole

    async def prefer_schema(
        self, structured: Callable[[], Awaitable[_T]], plain: Callable[[], Awaitable[_T]]
    ) -> _T:
        """Return the result of ``structured``, or of ``plain`` if the model does not follow a schema.

        Raises:
            ModelError: raised by either of them.
        """
        if not self._capabilities.supports(Feature.SCHEMA):
            return await plain()
        try:
            given = await structured()
        except (SchemaRefused, ReplyMisformatted) as error:
            log.info("model endpoint ignored or refused the JSON schema, retrying without it")
            given = await plain()
            self._capabilities.note_failure(Feature.SCHEMA, is_refusal=isinstance(error, SchemaRefused))
        else:
            self._capabilities.note_success(Feature.SCHEMA)
        return given

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def _try(self, send: Callable[[], Awaitable[_T]], ask: ChatRequest, tries: int) -> _T:
        """Send with retries on transient errors, and translate the SDK's errors."""
        try:
            return await retry(send, _pause, tries)
        except REFUSED as error:
            # A refusal that names no parameter may be about the schema.
            is_schema = ask.schema and _refused_feature(error) in (Feature.SCHEMA, None)
            raise (SchemaRefused if is_schema else ModelUnavailable)(_error_name(error)) from error
        except UNUSABLE as error:
            raise ModelReplyUnusable(_error_name(error)) from error
        except openai.OpenAIError as error:
            raise ModelUnavailable(_error_name(error)) from error

    async def _complete(self, ask: ChatRequest) -> Reply:
        reply = await self._send(ask)
        choices = reply.choices if isinstance(reply, ChatCompletion) else None
        if not choices:
            raise ModelReplyUnusable("the endpoint sent no completion")
        text = choices[0].message.content if choices[0].message else None
        return _whole(text, choices[0].finish_reason, _usage_of(reply))

    async def _stream(self, ask: ChatRequest, on_delta: OnDelta) -> Reply | None:
        """Return a streamed reply; None if no event came, or the endpoint refuses to stream.

        An error after the first piece is final: a retry would repeat what was passed on.
        """
        state = _StreamState(on_delta)
        try:
            opened = await self._open_stream(ask)
        except REFUSED as error:
            if _refused_feature(error) is not Feature.STREAM:
                raise
            self._capabilities.note_failure(Feature.STREAM, is_refusal=True)
            return None
        async with opened as stream:
            try:
                async for chunk in stream:
                    state.take(chunk)
            except BROKEN as error:
                if state.pieces:
                    raise ModelReplyUnusable(f"stream aborted: {_error_name(error)}") from error
                raise
            if not state.events:
                # Another content type proves that there is no streaming; an empty stream may be chance.
                is_other = "text/event-stream" not in stream.response.headers.get("content-type", "")
                self._capabilities.note_failure(Feature.STREAM, is_refusal=is_other)
                return None
        self._capabilities.note_success(Feature.STREAM)
        return _whole("".join(state.pieces), state.finish_reason, state.usage)

    async def _open_stream(self, ask: ChatRequest) -> AsyncStream[ChatCompletionChunk]:
        """Open a stream that ends with its token usage, if the endpoint supports that option."""
        stream: AsyncStream[ChatCompletionChunk]
        if not self._capabilities.supports(Feature.STREAM_USAGE):
            stream = await self._send(ask, stream=True)
            return stream
        try:
            stream = await self._send(ask, stream=True, stream_options={"include_usage": True})
        except REFUSED as error:
            if _refused_feature(error) not in (Feature.STREAM_USAGE, None):
                raise
            log.info("model endpoint refused stream_options, retrying without usage")
            stream = await self._send(ask, stream=True)
            self._capabilities.note_failure(Feature.STREAM_USAGE, is_refusal=True)
        return stream

    async def _send(self, ask: ChatRequest, **options: Any) -> Any:
        """Return what the SDK returns: despite its types, a str for an HTML page with status 200.

        A parameter that the model refuses by name is omitted at once, and then for ``RETRY_AFTER_SECONDS``.
        """
        messages = [{"role": "system", "content": ask.system}, {"role": "user", "content": ask.user}]
        if ask.schema:
            wanted = {"name": "reply", "strict": True, "schema": ask.schema}
            options["response_format"] = {"type": "json_schema", "json_schema": wanted}
        send: Any = self._client.chat.completions.create
        while True:
            try:
                return await send(
                    model=self._model, messages=messages, **self._capabilities.sampling(ask.tokens), **options
                )
            except REFUSED as error:
                feature = _refused_feature(error)
                if feature not in (Feature.TEMPERATURE, Feature.MAX_TOKENS):
                    raise
                if not self._capabilities.supports(feature):
                    raise
                log.info("model refused parameter %s, retrying without it", feature)
                self._capabilities.note_failure(feature, is_refusal=True)


@dataclass(slots=True)
class _StreamState:
    """State of a stream that is being read."""

    on_delta: OnDelta
    events: int = 0
    pieces: list[str] = field(default_factory=list)
    finish_reason: str | None = None
    usage: Usage | None = None

    def take(self, chunk: object) -> None:
        """Add an event; the last one may contain only the token usage, and no choices."""
        self.events += 1
        self.usage = _usage_of(chunk) or self.usage
        choices = chunk.choices if isinstance(chunk, ChatCompletionChunk) else None
        if not choices:
            return
        self.finish_reason = choices[0].finish_reason or self.finish_reason
        piece = choices[0].delta.content if choices[0].delta else None
        if piece:
            self.pieces.append(piece)
            self.on_delta(piece)


def _whole(text: str | None, finish_reason: str | None, usage: Usage | None) -> Reply:
    """Return a complete reply.

    Raises:
        ModelReplyUnusable: it is empty or was truncated.
    """
    if finish_reason != "stop":
        raise ModelReplyUnusable(f"reply incomplete: finish_reason={finish_reason}")
    if not text:
        raise ModelReplyUnusable("the reply is empty")
    return Reply(text, usage)


def _usage_of(reply: object) -> Usage | None:
    """Return the token usage that the endpoint reports; None if it reports none."""
    counted = getattr(reply, "usage", None)
    prompt, completion = (getattr(counted, f"{part}_tokens", None) for part in ("prompt", "completion"))
    if isinstance(prompt, int) and isinstance(completion, int):
        return Usage(prompt, completion)
    return None


def _pause(error: Exception, tries: int) -> float | None:
    """Return the seconds before a retry: Retry-After, else backoff with jitter; None: do not retry."""
    if not isinstance(error, TRANSIENT) or isinstance(error, openai.APITimeoutError):
        return None
    if error.code == "insufficient_quota":
        return None
    headers = error.response.headers if isinstance(error, openai.APIStatusError) else {}
    try:
        asked = max(float(headers["retry-after"]), 0.0)
    except (KeyError, ValueError):
        return _JITTER.uniform(0.2, 0.5) * 2.0**tries
    return asked if asked <= MAX_PAUSE_SECONDS else None


def _refused_feature(error: openai.APIStatusError) -> Feature | None:
    return named_feature(error.param, str(error.message))


def _error_name(error: Exception) -> str:
    """Return the type and status of an error, without its message, which may quote the conversation."""
    status = getattr(error, "status_code", None)
    return f"{type(error).__name__}{f' {status}' if status else ''}"


def object_schema(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON schema of an object with exactly these properties, as strict mode requires it."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": [*properties],
        "additionalProperties": False,
    }


@dataclass(frozen=True, slots=True)
class JsonRequest:
    """A request for a little JSON."""

    # Name of the call in the question's record.
    purpose: str
    system: str
    user: str
    schema: Mapping[str, Any]
    # Maximum length of the reply.
    tokens: int


class JsonCalls:
    """Short auxiliary calls of a model that return a little JSON."""

    def __init__(self, endpoint: ChatModel, *, seconds: float) -> None:
        self._endpoint = endpoint
        self._seconds = seconds

    @classmethod
    def connect(cls, api_key: str, base_url: str | None, *, model: str, seconds: float) -> JsonCalls:
        """Return calls at an endpoint, limited to ``seconds`` each; sends nothing yet."""
        return cls(ChatModel.connect(api_key, base_url, model=model, seconds=seconds), seconds=seconds)

    async def ask(self, short: JsonRequest, read: Callable[[Any], _T]) -> _T:
        """Return what ``read`` makes of the JSON of a reply.

        Raises:
            ModelUnavailable: the endpoint is down, too slow or refusing.
            ModelReplyUnusable: the reply is truncated, or not the requested JSON.
        """
        structured = ChatRequest(short.system, short.user, short.tokens, short.schema)
        with auxiliary_call(short.purpose) as call:
            async with model_timeout(self._seconds):
                reply = await self._endpoint.prefer_schema(
                    lambda: self._send(structured, call),
                    lambda: self._send(replace(structured, schema=None), call),
                )
            call.usage = reply.usage
            try:
                return read(json_of(reply.text))
            except PARSE_ERRORS as error:
                raise ModelReplyUnusable("the reply does not match the requested JSON") from error

    async def _send(self, ask: ChatRequest, call: AuxiliaryCall) -> Reply:
        call.prompts.append(Prompt(ask.system, ask.user, ask.schema is not None))
        return await self._endpoint.reply(ask, tries=1)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._endpoint.aclose()
