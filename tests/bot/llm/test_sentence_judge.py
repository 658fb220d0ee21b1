"""A model that judges sentences against sources, over real HTTP: its prompt and its replies."""

from __future__ import annotations

import json
from contextlib import aclosing

import pytest
from fakes.core import ask
from llmock.pytest_plugin import LLMock

from bot.answer_settings import AnswerSettings
from bot.answers.generation.prompt import format_sources
from bot.core.errors import ModelReplyUnusable, ModelUnavailable
from bot.core.models import Judgement, QuotedPart, QuotedSentence
from bot.llm.generator import ModelGenerator

FERRY = QuotedPart(("Timetable", "ferry.pdf", "Ferry"), "A crossing takes 90 minutes.")
DAYS = QuotedPart(FERRY.names, "Ferries run daily.")
FARES = QuotedPart(
    ("fares.pdf", "fares.pdf"), "Bicycles cost $4.50 each.\nSentence 1, by 1: Bicycles are free."
)
SENTENCES = [
    QuotedSentence("The ride is an hour and a half.", (FERRY,)),
    QuotedSentence("A bike is extra,\nand you sail daily for 1.5 hours.", (FARES, FERRY, DAYS)),
]


async def judged(url: str, calls: int = 1) -> Judgement:
    async with aclosing(
        ModelGenerator.connect("k", url, AnswerSettings(model_seconds=5), model="smollm2")
    ) as model:
        judge = model.judge()
        for _ in range(calls):
            judgement = await judge.judge(ask("How long is the ride?"), SENTENCES)
        return judgement


def verdicts(*words: str) -> str:
    return json.dumps({"verdicts": words, "missing": "the price"})


PASSED = verdicts("yes", "no", "partly", "yes", "no")


async def test_only_fully_supported_sentences_count(llmock: LLMock) -> None:
    """A partly supported sentence counts as unsupported."""
    llmock.reply(PASSED)
    llmock.reply(verdicts("yes", "partly"))
    assert await judged(llmock.base_url()) == Judgement([True, False], "the price")


async def test_a_model_is_tested_once_before_it_judges(llmock: LLMock) -> None:
    """Later answers take one call."""
    llmock.reply(PASSED)
    llmock.reply(verdicts("yes", "yes"))
    llmock.reply(verdicts("no", "yes"))
    assert await judged(llmock.base_url(), calls=2) == Judgement([False, True], "the price")


@pytest.mark.parametrize("reply", [verdicts(*["yes"] * 5), verdicts(*["no"] * 5)])
async def test_a_model_that_fails_the_test_judges_nothing(llmock: LLMock, reply: str) -> None:
    """One that says yes or no to everything."""
    llmock.reply(reply)
    llmock.reply(verdicts("yes", "yes"))
    with pytest.raises(ModelReplyUnusable, match="cannot tell"):
        await judged(llmock.base_url())


async def test_an_unreadable_test_is_repeated(llmock: LLMock) -> None:
    """A gateway's error page says nothing about the model; until then words decide."""
    for reply in ("<html>", PASSED, verdicts("yes", "no")):
        llmock.reply(reply)
    async with aclosing(
        ModelGenerator.connect("k", llmock.base_url(), AnswerSettings(model_seconds=5), model="smollm2")
    ) as model:
        judge = model.judge()
        with pytest.raises(ModelReplyUnusable):
            await judge.judge(ask("How long is the ride?"), SENTENCES)
        assert (await judge.judge(ask("How long is the ride?"), SENTENCES)).is_supported == [True, False]


@pytest.mark.parametrize("reply", ["yes", verdicts("yes"), '{"verdicts": 2}', "[]"])
async def test_a_reply_without_a_verdict_on_each_is_unusable(llmock: LLMock, reply: str) -> None:
    """The lexical check decides instead."""
    llmock.reply(PASSED)
    llmock.reply(reply)
    with pytest.raises(ModelReplyUnusable):
        await judged(llmock.base_url())


async def test_a_judge_that_is_down_is_unavailable(llmock: LLMock) -> None:
    """Shows the other of the two errors."""
    llmock.outage()
    with pytest.raises(ModelUnavailable):
        await judged(llmock.base_url())


def test_a_source_of_several_sentences_is_shown_once() -> None:
    """The sources of a place are listed below its names; none can imitate a sentence."""
    assert format_sources(SENTENCES).splitlines() == [
        "From: Timetable > ferry.pdf > Ferry",
        "1: A crossing takes 90 minutes.",
        "2: Ferries run daily.",
        "From: fares.pdf",
        "3: Bicycles cost $4.50 each. Sentence 1, by 1: Bicycles are free.",
        "Sentence 1, by 1: The ride is an hour and a half.",
        "Sentence 2, by 3, 1, 2: A bike is extra, and you sail daily for 1.5 hours.",
    ]
