"""Reranking by a language model over real HTTP: accepted replies and timeouts."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from contextlib import aclosing

import pytest
from engines.llm import LanguageModel
from fakes.core import Shelf, ask, make_passage
from llmock.pytest_plugin import LLMock

from bot.answers.trace import Trace
from bot.core.errors import ModelError, RerankerError
from bot.llm.chat_model import JsonCalls, JsonRequest
from bot.rerankers.llm_reranker import LlmReranker

QUESTION = ask("When do backups run?")
PASSAGES = [make_passage(f"text {number}", ordinal=number) for number in range(3)]


def calls(url: str, *, key: str = "k", seconds: float = 5) -> JsonCalls:
    return JsonCalls.connect(key, url, model="smollm2", seconds=seconds)


async def judged(url: str, *, seconds: float = 5) -> list[float]:
    async with aclosing(LlmReranker(calls(url, seconds=seconds), Shelf(PASSAGES))) as reranker:
        return list(await reranker.relevance(QUESTION, PASSAGES))


def points(*given: tuple[object, object]) -> str:
    return json.dumps({"points": [{"passage": passage, "points": score} for passage, score in given]})


async def test_points_are_read_by_the_number_of_their_passage(llmock: LLMock) -> None:
    """Shows that replies may come in any order, and with a code fence around the JSON."""
    llmock.reply(points((3, 9), (1, 0), (2, 4)))
    assert await judged(llmock.base_url()) == [0, 4, 9]
    llmock.reply(f"```json\n{points((1, 1), (2, 2), (3, 3))}\n```")
    assert await judged(llmock.base_url()) == [1, 2, 3]


async def test_extra_and_missing_passages_are_tolerated(llmock: LLMock) -> None:
    """Shows that unknown passages are ignored, scores clamped, and a missing passage scores 0."""
    llmock.reply(points((2, 99), (7, 5), (1, -3)))
    assert await judged(llmock.base_url()) == [0, 10, 0]


@pytest.mark.parametrize(
    "reply",
    [
        "Passage 2 is best.",
        "[]",
        "{}",
        '{"points": []}',
        '{"points": 3}',
        points((7, 5)),
        points((1, "high")),
        points((None, 5)),
        '{"points": [{"passage": 1, "points": 1e999}, {"passage": NaN, "points": 3}]}',
        '{"points": [{"passage": 1',
    ],
)
async def test_a_reply_without_points_raises_reranker_error(llmock: LLMock, reply: str) -> None:
    """Shows that chatter, other JSON and truncated replies raise the same error."""
    llmock.reply(reply)
    with pytest.raises(RerankerError):
        await judged(llmock.base_url())


@pytest.mark.parametrize(
    "trouble",
    [
        lambda mock: mock.outage(),
        lambda mock: mock.rate_limit(times=None, retry_after=60),
        lambda mock: mock.delay(5.0, times=None),
    ],
)
async def test_a_failing_model_is_cut_off_at_its_timeout(
    llmock: LLMock, trouble: Callable[[LLMock], LLMock]
) -> None:
    """Shows that an auxiliary call is never retried and never waits for Retry-After."""
    trouble(llmock)
    started = time.perf_counter()
    with pytest.raises(RerankerError):
        await judged(llmock.base_url(), seconds=1)
    assert time.perf_counter() - started < 30


@pytest.mark.long
@pytest.mark.engine("llm")
async def test_a_real_model_judges_or_fails_as_a_reranker_may(language_model: LanguageModel) -> None:
    """Shows that a real server accepts prompt and schema; so small a model may reply anything."""
    connected = calls(language_model.url, key=language_model.key, seconds=100)
    async with aclosing(LlmReranker(connected, Shelf(PASSAGES))) as reranker:
        outcome = await asyncio.gather(reranker.relevance(QUESTION, PASSAGES[:2]), return_exceptions=True)
    (scores,) = outcome
    if isinstance(scores, BaseException):
        assert isinstance(scores, RerankerError)
        assert "ModelUnavailable" not in str(scores)
    else:
        assert len(scores) == 2
        assert all(0 <= score <= 10 for score in scores)


@pytest.mark.long
@pytest.mark.engine("llm")
async def test_a_real_model_keeps_to_the_schema_of_a_short_call(language_model: LanguageModel) -> None:
    """Shows that constrained JSON is parsed, and that a wrong key is an error."""
    schema = {"type": "object", "properties": {"wet": {"type": "boolean"}}, "required": ["wet"]}
    wet = JsonRequest("test", "Reply in JSON.", "Is water wet?", schema, tokens=32)
    async with aclosing(calls(language_model.url, key=language_model.key, seconds=100)) as connected:
        assert await connected.ask(wet, lambda value: isinstance(value["wet"], bool))
    async with aclosing(calls(language_model.url, key="wrong", seconds=60)) as connected:
        with pytest.raises(ModelError, match="AuthenticationError"):
            await connected.ask(wet, lambda value: value["wet"])


async def test_every_call_is_recorded_with_its_prompt(llmock: LLMock) -> None:
    """Shows prompts, usage and failures of auxiliary calls, also of tasks started while collecting."""
    llmock.fail(400).reply(points((1, 1)))
    trace = Trace(8)
    with trace.collecting_calls():
        await asyncio.gather(judged(llmock.base_url()))
    (call,) = trace.calls
    assert (call.purpose, call.error) == ("rerank", None)
    assert [prompt.with_schema for prompt in call.prompts] == [True, False]
    assert all("--- Page 1 ---\ntext 1" in prompt.user for prompt in call.prompts)
    assert all("text 1" in prompt.user and "When do backups run?" in prompt.user for prompt in call.prompts)
    assert call.usage is not None
    assert call.usage.prompt > 0
    llmock.reply(points())
    trace = Trace(8)
    with trace.collecting_calls(), pytest.raises(RerankerError):
        await judged(llmock.base_url())
    assert trace.calls[0].error == "ModelReplyUnusable"
    assert trace.calls[0].prompts
