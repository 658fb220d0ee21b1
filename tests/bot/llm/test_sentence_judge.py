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


async def judged(url: str) -> Judgement:
    async with aclosing(
        ModelGenerator.connect("k", url, AnswerSettings(model_seconds=5), model="smollm2")
    ) as model:
        return await model.judge().judge(ask("How long is the ride?"), SENTENCES)


async def test_only_fully_supported_sentences_count(llmock: LLMock) -> None:
    """A partly supported sentence counts as unsupported."""
    llmock.reply(json.dumps({"verdicts": ["yes", "partly"], "missing": "the price"}))
    assert await judged(llmock.base_url()) == Judgement([True, False], "the price")


@pytest.mark.parametrize("reply", ["yes", '{"verdicts": ["yes"], "missing": ""}', '{"verdicts": 2}', "[]"])
async def test_a_reply_without_a_verdict_on_each_is_unusable(llmock: LLMock, reply: str) -> None:
    """The lexical check decides instead."""
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
