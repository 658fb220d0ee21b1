"""Rewords a question with a model (multi-query), to find documents that use other words for the same thing.

The wordings are only searched for; the question itself is answered and shown.
"""

from __future__ import annotations

from collections.abc import Sequence

from bot.answers.prompts import read_prompt
from bot.answers.verification.facts import unsupported
from bot.llm.chat_model import JsonCalls, JsonRequest, object_schema

MAX_WORDINGS = 2
MAX_WORDING_CHARS = 300

_TOKENS = 160
_SCHEMA = object_schema({"wordings": {"type": "array", "items": {"type": "string"}}})


class MultiQueryModel:
    """Rewords questions with one short model call each."""

    def __init__(self, calls: JsonCalls) -> None:
        self._calls = calls

    async def paraphrases(self, question: str) -> Sequence[str]:
        """Return at most ``MAX_WORDINGS`` further wordings, without those that add a number, date or code.

        Raises:
            ModelUnavailable: the endpoint is down, too slow or refusing.
            ModelReplyUnusable: the reply contains no wordings.
        """
        ask = JsonRequest("reword", read_prompt("reword"), f"Question: {question}", _SCHEMA, _TOKENS)
        said = await self._calls.ask(
            ask, lambda reply: [" ".join(str(one).split()) for one in reply["wordings"]]
        )
        known = {question.casefold()}
        fresh = [one for one in dict.fromkeys(said) if one and one.casefold() not in known]
        return [one for one in fresh if len(one) <= MAX_WORDING_CHARS and not unsupported(one, [question])][
            :MAX_WORDINGS
        ]

    async def aclose(self) -> None:
        """Close the connections."""
        await self._calls.aclose()
