"""Replies to users for faults of a model endpoint, over real HTTP and the whole answering pipeline."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack, aclosing

import pytest
from fakes.core import WORDS, Looker, World
from fakes.model_server import (
    STREAM_HEAD,
    Handler,
    always,
    byte_server,
    completion,
    event,
    pieces,
    response,
    slowly,
    stream,
)

from bot.answer_settings import AnswerSettings
from bot.core.models import Answer, AnswerState
from bot.llm.generator import ModelGenerator

QUESTION = "When do backups run?"
FIRST = {"text": "At 2 AM.", "quotes": [{"passage": 1, "quote": "Backups run daily at 2:00 AM"}]}
SECOND = {"text": "A failed one again within 4 hours.", "quotes": [{"passage": 1, "quote": "within 4 hours"}]}
REPLY = json.dumps({"sufficient": True, "claims": [FIRST, SECOND]})
# Up to the end of the first sentence.
HALF = REPLY[: REPLY.index(', {"text": "A failed')]
SHOWN = "At 2 AM."
WHOLE = f"{SHOWN} A failed one again within 4 hours. [1]"
BROKE_OFF = f"{SHOWN} [1]\n{WORDS.model_broke_off}\n"
FOR_EVER = 3600
BEGUN = [STREAM_HEAD, *map(event, pieces(HALF))]


async def read(
    world: World, *endpoints: Handler | None, looker: Looker | None = None, seconds: float = 2
) -> Answer:
    """Answer with models at these endpoints, each within ``seconds``; None is a closed port."""
    async with AsyncExitStack() as stack:
        models = []
        for handle in endpoints:
            url = await stack.enter_async_context(byte_server(handle)) if handle else await nobody()
            connected = ModelGenerator.connect("k", url, AnswerSettings(model_seconds=seconds), model="m")
            models.append(await stack.enter_async_context(aclosing(connected)))
        return await world.answering(*models).answer(world.question(QUESTION), looker)


async def nobody() -> str:
    """Return a URL where no server listens any more."""
    async with byte_server(always(b"")) as url:
        return url


FAULTS = {
    "nobody listens": (None, WORDS.model_failed),
    "a page of HTML": (
        always(response(b"<html>Please log in</html>", kind="text/html")),
        WORDS.model_unusable,
    ),
    "broken JSON": (always(stream('{"sufficient": true, "claims": [{"te')), WORDS.model_unusable),
    "chatter": (always(stream("I think at two, but ask somebody.")), WORDS.model_unusable),
    "a stream cut in its first sentence": (always(stream(REPLY[:60], finish=None)), WORDS.model_unusable),
    "429 for an hour": (
        always(response(b"{}", status="429 Too Many Requests", more="Retry-After: 3600\r\n")),
        WORDS.model_failed,
    ),
    "a gateway's 502": (always(response(b"<html>", status="502 Bad Gateway")), WORDS.model_failed),
    "a slow stream": (slowly([STREAM_HEAD, *map(event, pieces(REPLY))], 0.5), WORDS.model_failed),
    "silence": (slowly([b""], FOR_EVER), WORDS.model_failed),
    "a stream cut behind a sentence": (always(stream(HALF, finish=None)), BROKE_OFF),
    "a stream cut by its length": (always(stream(HALF, finish="length")), BROKE_OFF),
    "a whole stream that lacks its end": (always(stream(REPLY, finish=None)), WHOLE),
    "a stream that stalls behind a sentence": (slowly([b"".join(BEGUN)], FOR_EVER), BROKE_OFF),
    "JSON that breaks behind a sentence": (always(stream(HALF + ", {broken")), BROKE_OFF),
}
# Faults that never recover, so they need no long timeout.
FRUITLESS = {"nobody listens", "a gateway's 502", "a slow stream", "silence"}


@pytest.mark.parametrize("name", FAULTS)
async def test_every_fault_leads_to_a_message_and_quotes(world: World, name: str) -> None:
    """Shows it in bounded time; text shown before the fault stays, and is marked as incomplete."""
    handle, said = FAULTS[name]
    looker = Looker()
    answer = await read(world, handle, looker=looker, seconds=0.5 if name in FRUITLESS else 2)
    assert answer.text.startswith(said)
    assert all(answer.text.startswith(seen) for seen in looker.seen)
    assert "“Backups run daily at 2:00 AM.”" in answer.text
    assert answer.state is (AnswerState.PARTIAL if looker.seen else AnswerState.PASSAGES)
    assert WORDS.model_broke_off in answer.text or not looker.seen
    assert answer.is_generated == bool(looker.seen)


@pytest.mark.parametrize("name", ["nobody listens", "chatter", "a stream that stalls behind a sentence"])
async def test_a_second_endpoint_is_asked_once_and_answers(world: World, name: str) -> None:
    """The second endpoint continues the first one's shown text without repeating it."""
    handle, _ = FAULTS[name]
    requests: list[bytes] = []

    async def second(request: bytes, writer: asyncio.StreamWriter) -> None:
        requests.append(request)
        writer.write(stream(REPLY))
        await writer.drain()

    looker = Looker()
    answer = await read(world, handle, second, looker=looker)
    assert (answer.state, answer.text) == (AnswerState.GROUNDED, WHOLE)
    assert looker.seen[0] == SHOWN
    assert len(requests) == 1


async def test_the_first_sentence_is_shown_before_the_second_exists(world: World) -> None:
    """The endpoint continues only after the listener has seen it."""
    seen = asyncio.Event()

    class Eager(Looker):
        def show(self, text: str) -> None:
            super().show(text)
            seen.set()

    async def handle(request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"".join(BEGUN))
        await writer.drain()
        await asyncio.wait_for(seen.wait(), 1.5)
        writer.write(event(REPLY.removeprefix(HALF)) + event(finish="stop"))
        await writer.drain()

    looker = Eager()
    answer = await read(world, handle, looker=looker)
    assert looker.seen == [SHOWN, WHOLE.removesuffix(" [1]")]
    assert (answer.state, answer.text) == (AnswerState.GROUNDED, WHOLE)


async def test_without_a_listener_no_stream_is_requested(world: World) -> None:
    """A complete reply is requested instead, which more endpoints support well."""
    requests: list[dict[str, object]] = []

    async def handle(request: bytes, writer: asyncio.StreamWriter) -> None:
        requests.append(json.loads(request))
        writer.write(response(completion(REPLY)))
        await writer.drain()

    assert (await read(world, handle)).text == WHOLE
    assert [request.get("stream") for request in requests] == [None]
