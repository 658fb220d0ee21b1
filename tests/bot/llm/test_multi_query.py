"""Query rewording by a language model, over real HTTP."""

from __future__ import annotations

import json
from contextlib import aclosing

import pytest
from llmock.pytest_plugin import LLMock

from bot.answers.trace import Trace
from bot.core.errors import ModelReplyUnusable, ModelUnavailable
from bot.llm.chat_model import JsonCalls
from bot.llm.multi_query import MultiQueryModel


def connect(url: str) -> MultiQueryModel:
    """Return a model at this URL."""
    return MultiQueryModel(JsonCalls.connect("k", url, model="smollm2", seconds=5))


async def reworded(url: str, question: str) -> list[str]:
    async with aclosing(
        MultiQueryModel(JsonCalls.connect("k", url, model="smollm2", seconds=5))
    ) as rewording:
        return list(await rewording.paraphrases(question))


async def test_wordings_are_few_short_new_and_bring_in_no_facts(llmock: LLMock) -> None:
    """Drops repetitions, long texts, and numbers or codes that are not in the question."""
    said = [
        "Parental  leave\nduration",
        "Leave under HR-17",
        "leave of 16 weeks",
        "x" * 301,
        "",
        "baby leave?",
    ]
    llmock.reply(json.dumps({"wordings": [*said, "maternity policy", "adoption"]}))
    assert await reworded(llmock.base_url(), "Baby leave?") == [
        "Parental leave duration",
        "maternity policy",
    ]
    llmock.reply(json.dumps({"wordings": ["HR-17 in 2024"]}))
    assert await reworded(llmock.base_url(), "what does HR-17 say, 2024?") == ["HR-17 in 2024"]


@pytest.mark.parametrize("reply", ["parental leave", "[]", '{"wordings": 3}', '{"words": []}'])
async def test_a_reply_without_wordings_is_unusable(llmock: LLMock, reply: str) -> None:
    """Shows that the search gets an error and continues without rewordings."""
    llmock.reply(reply)
    with pytest.raises(ModelReplyUnusable):
        await reworded(llmock.base_url(), "Baby leave?")


async def test_a_model_that_is_down_is_unavailable(llmock: LLMock) -> None:
    """Shows the other of the two errors."""
    llmock.outage()
    with pytest.raises(ModelUnavailable):
        await reworded(llmock.base_url(), "Baby leave?")


async def test_a_rewording_is_collected_too(llmock: LLMock) -> None:
    """Shows that rewording calls are recorded in the trace, including one without wordings."""
    llmock.reply(json.dumps({"wordings": ["When is data saved?"]})).reply('{"wordings": 5}')
    async with aclosing(
        MultiQueryModel(JsonCalls.connect("k", llmock.base_url(), model="smollm2", seconds=5))
    ) as rewording:
        trace = Trace(8)
        with trace.collecting_calls():
            assert await rewording.paraphrases("When do backups run?") == ["When is data saved?"]
            with pytest.raises(ModelReplyUnusable):
                await rewording.paraphrases("When do backups run?")
    assert [(call.purpose, call.error) for call in trace.calls] == [
        ("reword", None),
        ("reword", "ModelReplyUnusable"),
    ]
    assert trace.calls[0].usage is not None
