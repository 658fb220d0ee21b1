"""Cross-encoder reranking with a small generated model on the real ONNX runtime."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest
from fakes.core import ask, make_passage
from fakes.tiny_cross_encoder import write_cross_encoder

from bot.answer_settings import AnswerSettings
from bot.core.errors import RerankerError
from bot.core.models import Passage
from bot.rerankers.cross_encoder import CrossEncoder
from storage.errors import EngineStartError

WORDS = "when do backups run the in cellar at night every tape filler is kept pump".split()
QUESTION = ask("When do backups run?")


def passages(*texts: str) -> list[Passage]:
    return [make_passage(text, title="", ordinal=number) for number, text in enumerate(texts)]


def load(folder: Path, **settings: int) -> CrossEncoder:
    return CrossEncoder.load(AnswerSettings(rerank_folder=folder, **settings))


@pytest.fixture
async def encoder(tmp_path: Path) -> AsyncIterator[CrossEncoder]:
    """Yield a model that counts the question's words in the passage."""
    async with aclosing(load(write_cross_encoder(tmp_path, WORDS), rerank_window=64)) as loaded:
        yield loaded


async def test_each_passage_gets_its_own_score_in_any_batch(encoder: CrossEncoder) -> None:
    """Shows that scores are in the order of the passages, although batches are sorted by length."""
    texts = [
        f"{'backups ' * (number % 2)}{'run ' * (number % 3 > 0)}{'filler ' * number}" for number in range(11)
    ]
    scores = await encoder.relevance(QUESTION, passages(*texts))
    assert scores == [float(number % 2 + (number % 3 > 0)) for number in range(11)]


async def test_padding_does_not_affect_scores(encoder: CrossEncoder) -> None:
    """Shows that a short passage has the same score alone and next to a long one."""
    short, long = "backups run at night", "filler " * 40
    assert encoder.score("when do backups run", [short]) == [2.0]
    assert encoder.score("when do backups run", [short, long]) == [2.0, 0.0]


async def test_the_passage_is_truncated_instead_of_the_question(encoder: CrossEncoder) -> None:
    """Shows that our window replaces the tokenizer's limit, and that the passage is truncated."""
    question = "when do backups run"
    seen = 64 - len(question.split()) - 3
    assert encoder.score(question, ["filler " * (seen - 1) + "backups"]) == [1.0]
    assert encoder.score(question, ["filler " * seen + "backups"]) == [0.0]


async def test_a_question_longer_than_the_window_still_leaves_room(encoder: CrossEncoder) -> None:
    """Shows that a very long question is truncated in favour of the passage."""
    assert encoder.score("backups " + "pump " * 500, ["backups tape"]) == [1.0]


async def test_title_and_headings_are_read_with_the_text(encoder: CrossEncoder) -> None:
    """Shows that a passage under a matching heading outranks its twin."""
    under = make_passage("every night", title="", heading_path=("Backups",))
    bare = make_passage("every night", title="", ordinal=1)
    assert await encoder.relevance(QUESTION, [bare, under]) == [0.0, 1.0]


async def test_two_classes_become_one_score(tmp_path: Path) -> None:
    """Shows that the score of a two-class model is the logit difference of "fits" and "does not fit"."""
    folder = write_cross_encoder(tmp_path, WORDS, classes=2)
    async with aclosing(load(folder)) as encoder:
        assert encoder.score("backups run", ["backups at night", "tape"]) == [1.0, 0.0]


async def test_questions_at_the_same_time_do_not_mix(encoder: CrossEncoder) -> None:
    """Shows that one session serves concurrent questions, each with its own scores."""
    texts = passages("backups run", "the pump", "the tape is kept")
    asked = [ask(text) for text in ("backups run", "the pump", "tape is kept")] * 4
    found = await asyncio.gather(*(encoder.relevance(one, texts) for one in asked))
    assert [scores.index(max(scores)) for scores in found] == [0, 1, 2] * 4


async def test_a_model_failure_raises_reranker_error(encoder: CrossEncoder) -> None:
    """Shows that errors of the runtime, and calls after closing, raise RerankerError."""
    await encoder.aclose()
    with pytest.raises(RerankerError):
        await encoder.relevance(QUESTION, passages("a", "b"))


def test_an_invalid_cross_encoder_is_refused_at_startup(tmp_path: Path) -> None:
    """Covers a missing file, a damaged one, and a model of another kind."""
    with pytest.raises(EngineStartError, match=r"model\.onnx cannot be read"):
        load(tmp_path / "nowhere")
    folder = write_cross_encoder(tmp_path / "three", WORDS, classes=3)
    with pytest.raises(EngineStartError, match="not a usable cross-encoder"):
        load(folder)
    (folder / "model.onnx").write_bytes(b"\x08")
    with pytest.raises(EngineStartError, match="not a usable cross-encoder"):
        load(folder)
