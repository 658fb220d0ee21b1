"""Drafts from a model endpoint: a draft or one of two errors, always within the timeout."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from contextlib import aclosing
from typing import Any

import openai
import pytest
from engines.llm import LanguageModel
from fakes.core import BACKUPS, ask, make_evidence, make_passage, verify_sentences
from fakes.model_server import USAGE, always, byte_server, completion, response
from harness.tables import for_each
from llmock.pytest_plugin import LLMock
from openai import AsyncOpenAI

from bot.answer_settings import AnswerSettings
from bot.answers.generation.prompt import REPLY_SCHEMA, ReplyFormat, read_reply
from bot.core.errors import ModelError, ModelReplyUnusable, ModelUnavailable
from bot.core.models import Draft, Evidence, Usage
from bot.llm import chat_model
from bot.llm.generator import ModelGenerator

EVIDENCE = make_evidence(make_passage(BACKUPS))
QUESTION = ask("When do backups run?", BACKUPS)
REPLY = json.dumps(
    {
        "sufficient": True,
        "claims": [{"text": "At 2 AM.", "quotes": [{"passage": 1, "quote": "daily at 2:00 AM"}]}],
    }
)
MARKED = "CLAIM: At 2 AM.\nQUOTE 1: daily at 2:00 AM"


async def draft(
    url: str,
    *,
    evidence: Sequence[Evidence] = EVIDENCE,
    seconds: float = 10.0,
    key: str = "k",
    tokens: int = 800,
) -> Draft:
    connected = ModelGenerator.connect(
        key, url, AnswerSettings(model_seconds=seconds, model_tokens=tokens), model="smollm2"
    )
    async with aclosing(connected) as answerer:
        return await answerer.draft(QUESTION, evidence)


async def draft_from(raw: bytes) -> Draft:
    async with byte_server(always(raw)) as url:
        return await draft(url)


async def test_a_valid_reply_becomes_a_draft() -> None:
    """A completion in the schema is parsed, and its quote is found in the evidence."""
    read = await draft_from(response(completion(REPLY, usage=USAGE)))
    assert verify_sentences(read, EVIDENCE).text == "At 2 AM. [1]"
    assert read.usage == Usage(120, 30)


@for_each(
    ("raw", "error"),
    [
        (response(b"<html>Please log in</html>", kind="text/html"), ModelReplyUnusable),
        (response(b""), ModelReplyUnusable),
        (response(b'{"id": "1", "choices": [{"in'), ModelReplyUnusable),
        (response(completion(REPLY).replace(b"2 AM", b"\xff\xfe")), ModelReplyUnusable),
        (response(completion(REPLY, choices=[])), ModelReplyUnusable),
        (response(completion(REPLY, choices=None)), ModelReplyUnusable),
        (response(b"[]"), ModelReplyUnusable),
        (response(b"null"), ModelReplyUnusable),
        (response(completion(None)), ModelReplyUnusable),
        (response(completion("")), ModelReplyUnusable),
        (response(completion(REPLY[:30], "length")), ModelReplyUnusable),
        (response(completion(None, "content_filter")), ModelReplyUnusable),
        (response(completion("I think at two.")), ModelReplyUnusable),
        (response(b'{"error": {"message": "boom"}}'), ModelReplyUnusable),
        (response(b"{}", status="401 Unauthorized"), ModelUnavailable),
        (response(b"{}", status="403 Forbidden"), ModelUnavailable),
        (response(b"{}", status="404 Not Found"), ModelUnavailable),
        (response(b"{}", status="409 Conflict"), ModelUnavailable),
        (response(b"{}", status="422 Unprocessable Entity"), ModelUnavailable),
        (response(b"<html>", status="502 Bad Gateway", kind="text/html"), ModelUnavailable),
        (response(b"{}", status="302 Found"), ModelUnavailable),
        (b"", ModelUnavailable),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n{", ModelUnavailable),
        (b"not http at all\r\n\r\n", ModelUnavailable),
    ],
    at_once=True,
)
async def test_every_broken_reply_ends_in_one_error(raw: bytes, error: type[ModelError]) -> None:
    """Login pages, truncated bodies, wrong encodings, empty choices and error statuses are all translated."""
    with pytest.raises(error):
        await draft_from(raw)


async def test_an_endpoint_without_schemas_gets_marked_lines() -> None:
    """A 400 to the JSON schema leads to the plain format, which is then kept."""
    formats: list[str | None] = []

    async def old(request: bytes, writer: asyncio.StreamWriter) -> None:
        asked = json.loads(request).get("response_format", {}).get("type")
        formats.append(asked)
        raw = response(b"{}", status="400 Bad Request") if asked else response(completion(MARKED))
        writer.write(raw)
        await writer.drain()

    async with byte_server(old) as url:
        async with aclosing(ModelGenerator.connect("k", url, AnswerSettings(), model="m")) as answerer:
            for _ in range(2):
                read = await answerer.draft(QUESTION, EVIDENCE)
                assert verify_sentences(read, EVIDENCE).text == "At 2 AM. [1]"
    assert formats == ["json_schema", None, None]


async def test_each_request_has_its_own_delimiter() -> None:
    """The delimiter around passages is random, so that no document can contain it; the temperature is 0."""
    requests: list[dict[str, Any]] = []

    async def listen(request: bytes, writer: asyncio.StreamWriter) -> None:
        requests.append(json.loads(request))
        writer.write(response(completion(REPLY)))
        await writer.drain()

    async with byte_server(listen) as url:
        await draft(url)
        await draft(url)
    first, second = ([message["content"] for message in request["messages"]] for request in requests)
    assert first != second
    assert all(request["temperature"] == 0 for request in requests)
    assert all("0.0" not in content for content in first)


async def test_transient_errors_are_retried(llmock: LLMock) -> None:
    """A 500 and a short rate limit are retried."""
    llmock.fail(500).rate_limit(retry_after=0.1).reply(REPLY)
    assert (await draft(llmock.base_url())).claims


@pytest.mark.parametrize(
    "trouble",
    [
        lambda mock: mock.outage(),
        lambda mock: mock.rate_limit(times=None, retry_after=0.1),
        lambda mock: mock.rate_limit(retry_after=60),
        lambda mock: mock.fail(429, code="insufficient_quota"),
        lambda mock: mock.context_overflow(times=2),
        lambda mock: mock.delay(3.0, times=None),
    ],
)
async def test_persistent_errors_raise_unavailable(
    llmock: LLMock, trouble: Callable[[LLMock], LLMock]
) -> None:
    """Outages, exhausted quotas, overflows and delays raise ModelUnavailable in bounded time."""
    trouble(llmock)
    started = time.perf_counter()
    with pytest.raises(ModelUnavailable):
        await draft(llmock.base_url(), seconds=2.5)
    assert time.perf_counter() - started < 30


def test_every_public_error_of_the_sdk_is_translated() -> None:
    """A new exception of the SDK fails this test until its translation is decided."""
    public = {
        name
        for name, member in vars(openai).items()
        # isinstance() and inspect.isclass() would load all lazy parts of the SDK
        if issubclass(type(member), type) and issubclass(member, Exception) and not name.startswith("_")
    }
    elsewhere = {
        "InvalidWebhookSignatureError",  # webhooks
        "WebSocketConnectionClosedError",  # realtime
        "WebSocketQueueFullError",
    }
    unusable = {error.__name__ for error in chat_model.UNUSABLE if error.__module__.startswith("openai")}
    unavailable = {
        "APIConnectionError",
        "APIError",
        "APIStatusError",
        "APITimeoutError",
        "AuthenticationError",
        "BadRequestError",
        "ConflictError",
        "InternalServerError",
        "NotFoundError",
        "OAuthError",
        "OpenAIError",
        "PermissionDeniedError",
        "RateLimitError",
        "UnprocessableEntityError",
    }
    assert public == elsewhere | unusable | unavailable
    assert all(issubclass(getattr(openai, name), openai.OpenAIError) for name in unavailable)


@pytest.mark.engine("llm")
async def test_a_real_server_accepts_our_request(language_model: LanguageModel) -> None:
    """Messages, schema and limits are accepted; a reply truncated after four tokens is refused."""
    with pytest.raises(ModelReplyUnusable, match="finish_reason=length"):
        await draft(language_model.url, key=language_model.key, tokens=16, seconds=120)


@pytest.mark.engine("llm")
async def test_a_real_server_keeps_to_our_schema(language_model: LanguageModel) -> None:
    """Constrained decoding yields JSON of our schema; without claims, so that a tiny model finishes."""
    claims = {**REPLY_SCHEMA["properties"]["claims"], "maxItems": 0}
    schema = {**REPLY_SCHEMA, "properties": {**REPLY_SCHEMA["properties"], "claims": claims}}
    async with AsyncOpenAI(api_key=language_model.key, base_url=language_model.url, max_retries=0) as client:
        reply = await client.chat.completions.create(
            model=language_model.name,
            messages=[{"role": "user", "content": "Is water wet? Reply in JSON."}],
            response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": schema}},
            temperature=0,
            max_tokens=64,
        )
    content = reply.choices[0].message.content or ""
    assert set(json.loads(content)) == {"sufficient", "claims", "missing"}
    assert read_reply(content, ReplyFormat.JSON).claims == ()


@pytest.mark.engine("llm")
async def test_a_real_server_refuses_a_wrong_key(language_model: LanguageModel) -> None:
    """A 401 raises ModelUnavailable."""
    with pytest.raises(ModelUnavailable, match="401"):
        await draft(language_model.url, key="wrong", seconds=60)


@pytest.mark.long
@pytest.mark.engine("llm")
async def test_a_real_server_refuses_too_long_a_prompt(language_model: LanguageModel) -> None:
    """More passages than fit the context window get a 400 in both formats, and raise ModelUnavailable."""
    long = make_evidence(make_passage("backup daily " * 4000))
    with pytest.raises(ModelUnavailable, match="400"):
        await draft(language_model.url, key=language_model.key, evidence=long, seconds=60)


@pytest.mark.engine("llm")
async def test_a_real_server_that_is_slow_is_cut_off(language_model: LanguageModel) -> None:
    """A draft is cancelled at its timeout, and the server answers the next request."""
    with pytest.raises(ModelUnavailable):
        await draft(language_model.url, key=language_model.key, seconds=1.5)
    async with AsyncOpenAI(api_key=language_model.key, base_url=language_model.url, max_retries=0) as client:
        assert [model.id for model in (await client.models.list()).data] == [language_model.name]
