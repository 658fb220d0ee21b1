"""Has a model say a question in other words, so that it is found where documents speak another language.

The words are only searched for: what answers, and what is shown, is the question as it was asked.
"""

from __future__ import annotations

from collections.abc import Sequence

from bot.core.verification.facts import unsupported
from bot.llm.chat_model import ModelCalls, ShortRequest, object_schema, prompt

MAX_WORDINGS = 2
# Characters of a wording.
MAX_WORDING_CHARS = 300

_TOKENS = 160
_SCHEMA = object_schema({"wordings": {"type": "array", "items": {"type": "string"}}})


class MultiQueryModel:
    """One short call for each question."""

    def __init__(self, calls: ModelCalls) -> None:
        self._calls = calls

    async def wordings(self, question: str) -> Sequence[str]:
        """At most two further wordings; none that brings in a number, date or code of its own.

        Raises:
            ModelUnavailable: the endpoint is down, late or refusing.
            ModelReplyUnusable: the reply holds no wordings.
        """
        ask = ShortRequest("reword", prompt("reword"), f"Question: {question}", _SCHEMA, _TOKENS)
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
