"""Reranker that asks the answering model, in one short call, for 0 to 10 points per passage."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from typing import Any

from bot.answers.generation.prompt import format_passages
from bot.answers.prompts import read_prompt
from bot.answers.retrieval.reranking import gather_evidence
from bot.core.errors import ModelError, RerankerError
from bot.core.models import AnalyzedQuestion, Passage
from bot.llm.chat_model import JsonCalls, JsonRequest, object_schema
from storage.errors import InfrastructureError
from storage.queues.reading_repair import SelfHealingReadings

# Average token budget of a passage; the lowest-ranked ones are left out when it is exceeded.
PASSAGE_TOKENS = 400

# Token budget of the reply: for each passage, and for the JSON around them.
POINT_TOKENS, MIN_TOKENS = 24, 32

MAX_POINTS = 10

_POINTS = object_schema({"passage": {"type": "integer"}, "points": {"type": "integer"}})
_SCHEMA = object_schema({"points": {"type": "array", "items": _POINTS}})


class LlmReranker:
    """Scores passages with a language model, which reads them as it does for an answer."""

    def __init__(
        self,
        calls: JsonCalls,
        readings: SelfHealingReadings,
        *,
        fence: Callable[[], str] = lambda: secrets.token_hex(8),
    ) -> None:
        """Set the model; sends nothing yet.

        Args:
            readings: provide the page starts within a passage.
            fence: returns a delimiter that no document can know, for the passages of one call.
        """
        self._calls = calls
        self._readings = readings
        self._fence = fence

    async def relevance(self, question: AnalyzedQuestion, passages: Sequence[Passage]) -> Sequence[float]:
        """Return the points of each passage; 0 for one that the model left out.

        Raises:
            RerankerError: the model failed, timed out or gave no points; or readings are unavailable.
        """
        fence = self._fence()
        budget = PASSAGE_TOKENS * len(passages)
        try:
            evidence = await gather_evidence(
                passages, self._readings, max_passages=len(passages), tokens=budget
            )
        except InfrastructureError as error:
            raise RerankerError(f"readings unavailable: {type(error).__name__}") from error
        ask = JsonRequest(
            "rerank",
            read_prompt("rerank").format(fence=fence),
            f"{format_passages(evidence, fence)}\n\nQuestion: {question.text}",
            _SCHEMA,
            MIN_TOKENS + POINT_TOKENS * len(passages),
        )
        try:
            return await self._calls.ask(ask, lambda reply: _points(reply, len(passages)))
        except ModelError as error:
            raise RerankerError(f"reranking by model failed: {type(error).__name__}") from error

    async def aclose(self) -> None:
        """Close the connections."""
        await self._calls.aclose()


def _points(reply: Any, passages: int) -> list[float]:
    """Return the points in the order of the passages.

    Raises:
        ValueError: no passage has any.
    """
    given = {int(one["passage"]): min(max(float(one["points"]), 0.0), MAX_POINTS) for one in reply["points"]}
    if not any(number in given for number in range(1, passages + 1)):
        raise ValueError("no passage has points")
    return [given.get(number, 0.0) for number in range(1, passages + 1)]
