"""Has a model judge whether sentences mean what their sources say: one short call for an answer.

Judging each sentence of an answer against the source that it names: Rashkin et al., "Measuring Attribution in
Natural Language Generation Models" (2023).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from typing import Any

from bot.core.generation.prompt import format_question, format_sources
from bot.core.models import AnalyzedQuestion, Judgement, QuotedSentence
from bot.llm.chat_model import ModelCalls, ShortRequest, object_schema, prompt

# Tokens of a reply, for each sentence and around them.
SENTENCE_TOKENS, MIN_TOKENS = 8, 96

_VERDICT = {"type": "string", "enum": ["yes", "partly", "no"]}
_SCHEMA = object_schema({"verdicts": {"type": "array", "items": _VERDICT}, "missing": {"type": "string"}})


class ModelSentenceJudge:
    """A language model that reads the question, the sentences and their sources, and nothing else."""

    def __init__(self, calls: ModelCalls, *, fence: Callable[[], str] = lambda: secrets.token_hex(3)) -> None:
        """Send nothing yet; ``fence`` gives text that no document can know, to stand around the sources."""
        self._calls = calls
        self._fence = fence

    async def judge(self, question: AnalyzedQuestion, sentences: Sequence[QuotedSentence]) -> Judgement:
        """Judge all sentences at once; one that is borne out in part is not borne out.

        Raises:
            ModelUnavailable: the endpoint is down, late or refusing.
            ModelReplyUnusable: the reply has no verdict on each sentence.
        """
        fence = self._fence()
        ask = ShortRequest(
            "verify",
            prompt("verify").format(),
            f"{format_question(question)}\n\n{format_sources(sentences, fence)}",
            _SCHEMA,
            MIN_TOKENS + SENTENCE_TOKENS * len(sentences),
        )
        return await self._calls.ask(ask, lambda reply: _read(reply, len(sentences)))


def _read(reply: Any, sentences: int) -> Judgement:
    """Read the verdicts.

    Raises:
        ValueError: they are not as many as the sentences.
    """
    verdicts = [str(one).strip().lower() for one in reply["verdicts"]]
    if len(verdicts) != sentences:
        raise ValueError(f"{len(verdicts)} verdicts on {sentences} sentences")
    return Judgement([one == "yes" for one in verdicts], str(reply.get("missing") or ""))
