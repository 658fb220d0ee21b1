"""Query rewriting of follow-ups with a real language model server, and by rules if that fails."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import cast

import pytest
from engines.llm import LanguageModel
from fakes.core import ASKED_AT, HashEmbedder, Register, make_channel
from llmock.pytest_plugin import LLMock

from bot.answer_settings import AnswerSettings
from bot.answers.rewriting.query_rewriting import FollowUpRewriter, ModelRewriter, is_faithful
from bot.answers.trace import Trace
from bot.answers.understanding.channel_documents import ChannelView
from bot.core.errors import ModelReplyUnusable, ModelUnavailable
from bot.core.models import Question
from bot.llm.generator import ModelGenerator
from storage.chat_models import Turn
from storage.embeddings.base import QueryEmbedder

FIRST = "How many vacation days do employees get?"
HISTORY = (Turn(FIRST, FIRST, "25 a year."),)


@asynccontextmanager
async def model_at(url: str, key: str = "none", name: str = "m") -> AsyncIterator[ModelGenerator]:
    """Yield a model at an endpoint."""
    async with aclosing(ModelGenerator.connect(key, url, AnswerSettings(), model=name)) as model:
        yield model


async def reword(model: ModelGenerator) -> str:
    """Return the standalone form of a follow-up with this model."""
    question = Question("q", "and for contractors?", make_channel(), ASKED_AT, history=HISTORY)
    follow_ups = FollowUpRewriter(cast(QueryEmbedder, HashEmbedder()), ModelRewriter(model))
    return (await follow_ups.queries(question, ChannelView(Register(), question.channel)))[-1].text


@pytest.mark.long
@pytest.mark.engine("llm")
async def test_a_real_server_replies_or_reports_truncation(
    language_model: LanguageModel,
) -> None:
    """Shows that the reply is complete or refused, within the timeout."""
    async with model_at(language_model.url, language_model.key, language_model.name) as model:
        assert await model.write("Reply with the word yes.", "Say yes.", seconds=60, tokens=60)
        with pytest.raises(ModelReplyUnusable, match="finish_reason=length"):
            await model.write("Count to a thousand.", "Begin.", seconds=60, tokens=2)
        started = time.monotonic()
        with pytest.raises(ModelUnavailable):
            await model.write("Count to a thousand.", "Begin.", seconds=0.05, tokens=500)
        assert time.monotonic() - started < 30


@pytest.mark.long
@pytest.mark.engine("llm")
async def test_a_tiny_models_rewriting_invents_nothing(
    language_model: LanguageModel,
) -> None:
    """Shows that the standalone question contains only facts of the thread."""
    async with model_at(language_model.url, language_model.key, language_model.name) as model:
        text = await reword(model)
    assert is_faithful(text, "and for contractors?", HISTORY)


async def test_a_rewriting_is_recorded_with_its_usage(llmock: LLMock) -> None:
    """Shows the prompts of an accepted rewriting and of a refused one."""
    llmock.reply("How many vacation days do contractors get?").reply("How much is a day of Mr Smith?")
    async with model_at(llmock.base_url()) as model:
        trace = Trace(8)
        with trace.collecting_calls():
            assert await reword(model) == "How many vacation days do contractors get?"
            assert await reword(model) == "for contractors (vacation days do employees)?"
    believed, refused = trace.calls
    assert (believed.purpose, believed.error, refused.error) == ("rewrite", None, "ModelReplyUnusable")
    assert believed.usage is not None
    assert "and for contractors?" in believed.prompts[0].user
