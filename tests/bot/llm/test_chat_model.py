"""Streaming of model replies: pieces arrive as they are sent, and only a complete one is a reply."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from engines.llm import LanguageModel
from fakes.model_server import (
    DONE,
    STREAM_HEAD,
    USAGE,
    Handler,
    always,
    byte_server,
    completion,
    event,
    in_turn,
    response,
    slowly,
    stream,
)
from harness.clocks import advance_clocks
from harness.tables import for_each

from bot.answers.generation.prompt import ReplyMisformatted
from bot.core.errors import ModelError, ModelReplyUnusable, ModelUnavailable
from bot.core.models import Usage
from bot.llm.chat_model import ChatModel, ChatRequest, Reply, SchemaRefused, model_timeout

TEXT = "Backups run daily at 2:00 AM."
PLAIN = ChatRequest("Be brief.", "When do backups run?", 60)
STRICT = ChatRequest("Be brief.", "When do backups run?", 60, {"type": "object"})
BAD_REQUEST = response(b"{}", status="400 Bad Request")


async def heard_from(url: str, ask: ChatRequest = PLAIN, *, seconds: float = 10.0) -> tuple[Reply, list[str]]:
    """Return a streamed reply and its pieces."""
    pieces: list[str] = []
    async with aclosing(ChatModel.connect("k", url, model="m", seconds=seconds)) as endpoint:
        async with model_timeout(seconds):
            return await endpoint.reply(ask, pieces.append), pieces


async def heard(
    handle: Handler, ask: ChatRequest = PLAIN, *, seconds: float = 10.0
) -> tuple[Reply, list[str]]:
    """Return the same from an endpoint with this handler."""
    async with byte_server(handle) as url:
        return await heard_from(url, ask, seconds=seconds)


async def test_a_stream_yields_pieces_and_usage_at_its_end() -> None:
    """The pieces make up the text, and the last event has the usage."""
    reply, pieces = await heard(always(stream(TEXT)))
    assert len(pieces) > 1
    assert (reply.text, "".join(pieces)) == (TEXT, TEXT)
    assert reply.usage == Usage(120, 30)


async def test_usage_of_a_complete_reply_is_read_too() -> None:
    """Without a listener a single completion is requested, with or without usage."""
    async with byte_server(
        in_turn(response(completion(TEXT, usage=USAGE)), response(completion(TEXT)))
    ) as url:
        async with aclosing(ChatModel.connect("k", url, model="m", seconds=5)) as endpoint:
            assert await endpoint.reply(PLAIN) == Reply(TEXT, Usage(120, 30))
            assert await endpoint.reply(PLAIN) == Reply(TEXT, None)


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": "many"}, "much"])
async def test_a_stream_without_usage_is_a_reply(usage: object) -> None:
    """Missing or malformed usage is reported as unknown."""
    reply, _ = await heard(always(stream(TEXT, usage=usage)))
    assert reply == Reply(TEXT, None)


@for_each(
    "raw",
    [
        stream(TEXT, finish=None),
        stream(TEXT, finish="length"),
        stream(TEXT, finish="content_filter"),
        stream(TEXT, finish=None) + DONE,
        stream(TEXT, finish=None) + b'data: {"choices": [{"del',
        stream(TEXT, finish=None) + b"data: {broken}\n\n",
        stream(TEXT, finish=None) + b'data: {"error": {"message": "boom"}}\n\n',
        stream(TEXT, finish=None) + b"data: \xff\xfe\n\n",
        stream("", finish="stop"),
        STREAM_HEAD + event(choices=[]) + DONE,
        STREAM_HEAD + b"data: null\n\n" + DONE,
        STREAM_HEAD + b"data: 7\n\n" + DONE,
    ],
)
async def test_an_incomplete_stream_is_no_reply(raw: bytes) -> None:
    """Truncated, broken, filtered and empty streams are never taken for complete ones."""
    with pytest.raises(ModelReplyUnusable):
        await heard(always(raw))


async def test_a_connection_broken_during_a_stream_is_not_retried() -> None:
    """The listener would get the same text twice."""
    asked = 0

    async def break_off(request: bytes, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        asked += 1
        writer.write(STREAM_HEAD + event(TEXT))
        await writer.drain()
        await asyncio.sleep(0.1)
        writer.transport.abort()

    with pytest.raises(ModelReplyUnusable):
        await heard(break_off)
    assert asked == 1


async def test_a_connection_broken_before_the_first_piece_is_retried() -> None:
    """The listener has got nothing yet."""
    reply, _ = await heard(in_turn(response(b"{}", status="503 Service Unavailable"), b"", stream(TEXT)))
    assert reply.text == TEXT


async def test_an_endpoint_without_streams_gets_a_plain_request() -> None:
    """JSON in place of a stream costs one more request, and none the next time."""
    requests: list[dict[str, Any]] = []

    async def handle(request: bytes, writer: asyncio.StreamWriter) -> None:
        requests.append(json.loads(request))
        writer.write(response(completion(TEXT)))
        await writer.drain()

    async with byte_server(handle) as url:
        async with aclosing(ChatModel.connect("k", url, model="m", seconds=5)) as endpoint:
            for _ in range(2):
                pieces: list[str] = []
                assert (await endpoint.reply(PLAIN, pieces.append)).text == TEXT
                assert pieces == [TEXT]
    assert [request.get("stream") for request in requests] == [True, None, None]


async def test_an_endpoint_that_refuses_stream_options_works() -> None:
    """After a 400 streams are requested without ``stream_options`` from then on; the schema is kept."""
    requests: list[dict[str, Any]] = []

    async def handle(request: bytes, writer: asyncio.StreamWriter) -> None:
        requests.append(json.loads(request))
        writer.write(BAD_REQUEST if "stream_options" in requests[-1] else stream(TEXT, usage=None))
        await writer.drain()

    async with byte_server(handle) as url:
        async with aclosing(ChatModel.connect("k", url, model="m", seconds=5)) as endpoint:
            for _ in range(2):
                assert (await endpoint.reply(STRICT, lambda _: None)).text == TEXT
    assert ["stream_options" in request for request in requests] == [True, False, False]
    assert all("response_format" in request for request in requests)


REASONING = {
    "temperature": "Unsupported value: 'temperature' does not support 0 with this model.",
    "max_tokens": "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
    "'max_completion_tokens' instead.",
}


@dataclass
class PickyServer:
    """An endpoint that refuses some parameters by name, with scripted replies."""

    refuses: dict[str, str] = field(default_factory=dict)
    names_param: bool = True
    answers: list[bytes] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)

    async def handle(self, request: bytes, writer: asyncio.StreamWriter) -> None:
        """Refuse the request, or answer it."""
        asked = json.loads(request)
        self.requests.append(asked)
        refused = next((name for name in self.refuses if name in asked), None)
        if refused:
            said = {"message": self.refuses[refused], "code": "unsupported_parameter"}
            named = {"param": refused} if self.names_param else {}
            body = json.dumps({"error": said | named}).encode()
            writer.write(response(body, status="400 Bad Request"))
        else:
            writer.write(self.answers.pop(0) if self.answers else _fitting(asked))
        await writer.drain()


def _fitting(asked: dict[str, Any]) -> bytes:
    return stream(TEXT) if asked.get("stream") else response(completion(TEXT))


@pytest.mark.parametrize("names_param", [True, False], ids=["by param", "in its message"])
async def test_parameters_that_a_reasoning_model_refuses_are_omitted(names_param: bool) -> None:
    """Shows that a refused temperature or limit is left out from then on; the schema is kept."""
    server = PickyServer(REASONING, names_param)
    async with byte_server(server.handle) as url:
        async with aclosing(ChatModel.connect("k", url, model="o9", seconds=5)) as model:
            assert (await model.reply(STRICT)).text == TEXT
            assert (await model.reply(STRICT, lambda _: None)).text == TEXT
    refused, taken = server.requests[:2], server.requests[2:]
    assert len(refused) == len(taken) == 2
    assert all("response_format" in asked for asked in server.requests)
    assert all("max_completion_tokens" in asked and "temperature" not in asked for asked in taken)


async def test_a_model_that_refuses_streaming_gets_a_plain_request() -> None:
    """Shows that a refusal of streaming costs neither the schema nor the answer."""
    server = PickyServer({"stream": "Your organization must be verified to stream this model."})
    async with byte_server(server.handle) as url:
        async with aclosing(ChatModel.connect("k", url, model="o9", seconds=5)) as model:
            for _ in range(2):
                assert (await model.reply(STRICT, lambda _: None)).text == TEXT
    assert ["stream" in asked for asked in server.requests] == [True, False, False]
    assert all("response_format" in asked for asked in server.requests)


async def test_refused_parameters_are_retried_after_a_while() -> None:
    """Shows that a gateway is asked for usage again after an hour."""
    server = PickyServer({"stream_options": "no"})
    async with byte_server(server.handle) as url:
        async with aclosing(ChatModel.connect("k", url, model="m", seconds=5)) as model:
            await model.reply(PLAIN, lambda _: None)
            server.refuses.clear()
            for later in (timedelta(minutes=59), timedelta(minutes=61)):
                with advance_clocks(later):
                    await model.reply(PLAIN, lambda _: None)
    assert ["stream_options" in asked for asked in server.requests] == [True, False, False, True]


async def test_one_empty_stream_does_not_disable_streaming() -> None:
    """Shows that an empty stream costs one more request, and that three in a row disable streaming."""
    empty = STREAM_HEAD + DONE
    server = PickyServer()
    async with byte_server(server.handle) as url:
        async with aclosing(ChatModel.connect("k", url, model="m", seconds=5)) as model:
            for is_empty in (True, False, True, True, True, False):
                server.answers = [empty] if is_empty else []
                assert (await model.reply(PLAIN, lambda _: None)).text == TEXT
    streamed = [bool(asked.get("stream")) for asked in server.requests]
    assert streamed == [True, False, True, True, False, True, False, True, False, False]


async def test_one_malformed_reply_does_not_disable_the_schema() -> None:
    """Shows that a malformed reply costs a plain one; only three in a row disable the schema."""
    asked: list[bool] = []
    slips = iter([True, False, True, True, True])

    async def structured() -> str:
        asked.append(True)
        if next(slips):
            raise ReplyMisformatted("not JSON")
        return TEXT

    async def plain() -> str:
        asked.append(False)
        return TEXT

    async with aclosing(ChatModel.connect("k", "http://127.0.0.1:9", model="m", seconds=5)) as model:
        for _ in range(6):
            assert await model.prefer_schema(structured, plain) == TEXT
    assert asked == [True, False, True, True, False, True, False, True, False, False]


async def test_a_refused_schema_is_distinct_from_a_refused_request() -> None:
    """Only a request with a schema may be repeated without it."""
    with pytest.raises(SchemaRefused):
        await heard(always(BAD_REQUEST), STRICT)
    with pytest.raises(ModelUnavailable) as refusal:
        await heard(always(BAD_REQUEST), PLAIN)
    assert not isinstance(refusal.value, SchemaRefused)


@for_each(
    ("raw", "error"),
    [
        (response(b"<html>Please log in</html>", kind="text/html"), ModelReplyUnusable),
        (response(b""), ModelReplyUnusable),
        (response(b'{"id": "1", "choices": [{"in'), ModelReplyUnusable),
        (response(b"{}", status="401 Unauthorized"), ModelUnavailable),
        (response(b"<html>", status="502 Bad Gateway", kind="text/html"), ModelUnavailable),
        (response(b"{}", status="429 Too Many Requests", more="Retry-After: 3600\r\n"), ModelUnavailable),
        (b"", ModelUnavailable),
        (b"not http at all\r\n\r\n", ModelUnavailable),
    ],
    at_once=True,
)
async def test_other_responses_raise_one_error(raw: bytes, error: type[ModelError]) -> None:
    """Login pages, error statuses and silence raise the same errors as without streaming, at once."""
    started = time.perf_counter()
    with pytest.raises(error):
        await heard(always(raw))
    assert time.perf_counter() - started < 30


async def test_a_slow_stream_is_cut_off_at_its_timeout() -> None:
    """A slow stream is cut off by the total timeout, although no single read times out."""
    with pytest.raises(ModelUnavailable, match="timed out"):
        await heard(slowly([STREAM_HEAD, *[event("word ")] * 30], 0.1), seconds=0.6)


async def test_a_stalled_stream_is_cut_off_at_its_timeout() -> None:
    """Silence after the first piece ends at the timeout."""
    with pytest.raises(ModelError):
        await heard(slowly([STREAM_HEAD + event("word ")], 3), seconds=0.5)


@pytest.mark.engine("llm")
async def test_a_real_server_streams_and_counts(language_model: LanguageModel) -> None:
    """llama.cpp's server sends pieces, usage and an end; a reply cut by its token limit is refused."""
    connected = ChatModel.connect(language_model.key, language_model.url, model="smollm2", seconds=100)
    async with aclosing(connected) as endpoint:
        pieces: list[str] = []
        reply = await endpoint.reply(ChatRequest("Reply with the word yes.", "Say yes.", 60), pieces.append)
        assert "".join(pieces) == reply.text
        assert reply.usage is not None
        assert reply.usage.prompt > 10
        with pytest.raises(ModelReplyUnusable, match="finish_reason=length"):
            await endpoint.reply(ChatRequest("Count to a thousand.", "Begin.", 2), pieces.append)
