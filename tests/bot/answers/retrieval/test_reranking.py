"""Reranking with any reranker: a good one decides the order, a failing one only costs time."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import replace

import pytest
from fakes.core import ASKED_AT, ask, make_channel, make_passage, make_publication

from bot.answer_settings import AnswerSettings
from bot.answers.retrieval.reranking import Reranker, RerankingRetriever
from bot.core.errors import RerankerError
from bot.core.models import AnalyzedQuestion, Passage, Question, Retrieval

FOUND = tuple(make_passage(f"passage {number}", ordinal=number, score=1 - number / 10) for number in range(6))


class Fixed:
    """A retriever with a fixed result."""

    def __init__(self, passages: Sequence[Passage] = FOUND) -> None:
        self._retrieval = Retrieval(ask("which passage?"), tuple(passages))

    async def retrieve(self, question: Question) -> Retrieval:
        return self._retrieval


class Scoring:
    """A reranker with scripted scores or a scripted error."""

    def __init__(self, scores: Sequence[float] | Exception) -> None:
        self._scores = scores
        self.judged: list[int] = []

    async def relevance(self, question: AnalyzedQuestion, passages: Sequence[Passage]) -> Sequence[float]:
        self.judged = [passage.ordinal for passage in passages]
        if isinstance(self._scores, Exception):
            raise self._scores
        return self._scores


def limited(weight: float, seconds: float = 5, most: int = 24) -> AnswerSettings:
    return AnswerSettings(rerank_weight=weight, rerank_seconds=seconds, rerank_candidates=most)


async def reranked(
    reranker: Reranker, *, weight: float = 1.0, seconds: float = 5, most: int = 24
) -> list[int]:
    retriever = RerankingRetriever(Fixed(), reranker, limited(weight, seconds, most))
    passages = (await retriever.retrieve(Question("q7", "which passage?", make_channel(), ASKED_AT))).passages
    scores = [passage.score for passage in passages]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    return [passage.ordinal for passage in passages]


async def test_the_best_judged_comes_first_on_any_scale() -> None:
    """Shows that logits, percentages and points give the same order."""
    for scores in ([0, 1, 2, 3, 4, 5], [-9.0, -8, -7, -6, -5, -4], [0.1, 0.11, 0.12, 0.13, 0.14, 0.15]):
        assert await reranked(Scoring(scores)) == [5, 4, 3, 2, 1, 0]


async def test_the_search_score_keeps_its_weight() -> None:
    """Shows that a small weight only swaps close passages, and that equal scores change nothing."""
    assert await reranked(Scoring([0, 1, 0, 0, 0, 0]), weight=0.2) == [1, 0, 2, 3, 4, 5]
    assert await reranked(Scoring([3] * 6), weight=0.9) == [0, 1, 2, 3, 4, 5]


async def test_passages_beyond_the_limit_come_last() -> None:
    """Shows that the reranker gets a limited number, and that no candidate is lost."""
    reranker = Scoring([0, 2, 1])
    assert await reranked(reranker, weight=0.7, most=3) == [1, 2, 0, 3, 4, 5]
    assert reranker.judged == [0, 1, 2]


@pytest.mark.parametrize(
    "reranker",
    [
        Scoring(RerankerError("the endpoint does not answer")),
        Scoring([1.0, 2.0]),
        Scoring([1.0, 2.0, float("nan"), 0, 0, 0]),
        Scoring([1.0, 2.0, float("inf"), 0, 0, 0]),
    ],
    ids=["down", "too few", "not a number", "endless"],
)
async def test_a_failing_reranker_keeps_the_order_and_is_logged(
    reranker: Scoring, caplog: pytest.LogCaptureFixture
) -> None:
    """Shows that no answer is lost; the log has the question's id."""
    with caplog.at_level(logging.WARNING):
        assert await reranked(reranker) == [0, 1, 2, 3, 4, 5]
    assert "question=q7 reranking failed, keeping the search order" in caplog.text


async def test_a_slow_reranker_keeps_the_order_at_its_timeout(caplog: pytest.LogCaptureFixture) -> None:
    """Shows that a question waits no longer than the timeout."""

    class Slow:
        async def relevance(self, question: AnalyzedQuestion, passages: Sequence[Passage]) -> Sequence[float]:
            await asyncio.sleep(30)
            return []

    started = time.perf_counter()
    assert await reranked(Slow(), seconds=0.2) == [0, 1, 2, 3, 4, 5]
    assert time.perf_counter() - started < 25
    assert "timed out after 0.2 s" in caplog.text


async def test_reranked_documents_still_alternate() -> None:
    """Shows that a comparison still alternates between documents, each with its best passage first."""
    files = "aaabab"
    found = [
        replace(passage, publication=make_publication(file, file))
        for passage, file in zip(FOUND, files, strict=True)
    ]
    retriever = RerankingRetriever(Fixed(found), Scoring([0, 1, 2, 3, 4, 5]), limited(1.0))
    question = Question("q7", "compare both passages", make_channel(), ASKED_AT)
    passages = (await retriever.retrieve(question)).passages
    assert [passage.publication.file for passage in passages] == list(files)
    assert [passage.ordinal for passage in passages] == [4, 2, 1, 5, 0, 3]
