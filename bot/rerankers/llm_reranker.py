"""A reranker that asks the answering model: one short call in which it gives each passage 0 to 10 points."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from typing import Any

from bot.core.errors import ModelError, RerankerError
from bot.core.models import AnalyzedQuestion, Passage
from bot.core.retrieval.reranking import reranker_text
from bot.llm.chat_model import ModelCalls, ShortRequest, object_schema, prompt
from storage.text.token_counts import cut_tokens

PASSAGE_TOKENS = 400
"""Of each passage that the model reads."""

POINT_TOKENS, MIN_TOKENS = 24, 32
"""Of the reply, for each passage and around them."""

MAX_POINTS = 10

_POINTS = object_schema({"passage": {"type": "integer"}, "points": {"type": "integer"}})
_SCHEMA = object_schema({"points": {"type": "array", "items": _POINTS}})


class LlmReranker:
    """Lets a language model judge."""

    def __init__(self, calls: ModelCalls, *, fence: Callable[[], str] = lambda: secrets.token_hex(8)) -> None:
        """``fence`` gives text that no document can know, to stand around the passages of one call."""
        self._calls = calls
        self._fence = fence

    async def relevance(self, question: AnalyzedQuestion, passages: Sequence[Passage]) -> Sequence[float]:
        """The points of each passage; none for one that the model left out.

        Raises:
            RerankerError: the model failed, was late, or wrote no points.
        """
        fence = self._fence()
        texts = [cut_tokens(reranker_text(passage), PASSAGE_TOKENS) for passage in passages]
        shown = [
            f"<passage {number} {fence}>\n{text}\n</passage {fence}>"
            for number, text in enumerate(texts, start=1)
        ]
        ask = ShortRequest(
            "rerank",
            prompt("rerank").format(fence=fence),
            "\n\n".join([*shown, f"Question: {question.text}"]),
            _SCHEMA,
            MIN_TOKENS + POINT_TOKENS * len(passages),
        )
        try:
            return await self._calls.ask(ask, lambda reply: _points(reply, len(passages)))
        except ModelError as error:
            raise RerankerError(f"the model gave no points ({type(error).__name__})") from error

    async def aclose(self) -> None:
        """Close the connections."""
        await self._calls.aclose()


def _points(reply: Any, passages: int) -> list[float]:
    """The points in the order of the passages.

    Raises:
        ValueError: there are none for any of them.
    """
    given = {int(one["passage"]): min(max(float(one["points"]), 0.0), MAX_POINTS) for one in reply["points"]}
    if not any(number in given for number in range(1, passages + 1)):
        raise ValueError("no passage has points")
    return [given.get(number, 0.0) for number in range(1, passages + 1)]
