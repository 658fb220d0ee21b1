"""Judges sentences with a language model that reads only the question, the sentences and their sources.

Each sentence is judged by the sources that it names: Rashkin et al., "Measuring Attribution in Natural
Language Generation Models" (2023). A small model says yes to nearly everything, so a model is tested once,
with sentences whose verdicts are known, before it judges any answer.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from bot.answers.generation.prompt import format_question, format_sources
from bot.answers.prompts import read_prompt
from bot.core.errors import ModelReplyUnusable
from bot.core.models import AnalyzedQuestion, Judgement, QuotedPart, QuotedSentence
from bot.llm.chat_model import JsonCalls, JsonRequest, object_schema

log = logging.getLogger(__name__)

# Token budget of a reply: for each verdict, and for the JSON around them.
SENTENCE_TOKENS, MIN_TOKENS = 8, 96

_VERDICT = {"type": "string", "enum": ["yes", "partly", "no"]}
_SCHEMA = object_schema({"verdicts": {"type": "array", "items": _VERDICT}, "missing": {"type": "string"}})


def _control(sentence: str, source: str) -> QuotedSentence:
    return QuotedSentence(sentence, (QuotedPart(("Harbour guide",), source),))


CONTROL_QUESTION = "What do I need to know about the night ferry?"
# Each with its verdict. The false ones are of another boat, drop a condition, or say the opposite.
CONTROLS = (
    (_control("It leaves at nine in the evening.", "The night ferry leaves at 21:00."), True),
    (_control("The night ferry takes 40 minutes.", "The day boat takes 40 minutes."), False),
    (
        _control(
            "Every dog may come on the night ferry.", "The night ferry takes dogs if they wear a muzzle."
        ),
        False,
    ),
    (
        _control(
            "You can buy a ticket on the night ferry.", "Tickets for the night ferry are sold on board."
        ),
        True,
    ),
    (_control("It takes bicycles all year.", "The night ferry takes no bicycles in winter."), False),
)


class ModelSentenceJudge:
    """Sentence judge that asks a language model, see ``SentenceJudge``."""

    def __init__(self, calls: JsonCalls) -> None:
        """Set the model; sends nothing yet."""
        self._calls = calls
        # Its verdicts on the controls are right; None: it was not tested yet.
        self._is_reliable: bool | None = None

    async def judge(self, question: AnalyzedQuestion, sentences: Sequence[QuotedSentence]) -> Judgement:
        """Judge all sentences in one call; a partly supported sentence counts as unsupported.

        Raises:
            ModelUnavailable: the endpoint is down, too slow or refusing.
            ModelReplyUnusable: the model failed its test, or the reply lacks a verdict.
        """
        if self._is_reliable is None:
            self._is_reliable = await self._passes_test()
        if not self._is_reliable:
            raise ModelReplyUnusable("the model cannot tell true sentences from false ones")
        return await self._ask(format_question(question), sentences)

    async def _passes_test(self) -> bool:
        """Judge the controls; a reply that cannot be read decides nothing: the next answer tests again."""
        judgement = await self._ask(f"Question: {CONTROL_QUESTION}", [one for one, _ in CONTROLS])
        is_passed = list(judgement.is_supported) == [is_true for _, is_true in CONTROLS]
        if not is_passed:
            log.warning("the model is too weak to judge sentences: they must match their quotes word by word")
        return is_passed

    async def _ask(self, question: str, sentences: Sequence[QuotedSentence]) -> Judgement:
        ask = JsonRequest(
            "verify",
            read_prompt("verify").format(),
            f"{question}\n\n{format_sources(sentences)}",
            _SCHEMA,
            MIN_TOKENS + SENTENCE_TOKENS * len(sentences),
        )
        return await self._calls.ask(ask, lambda reply: _read(reply, len(sentences)))


def _read(reply: Any, sentences: int) -> Judgement:
    """Parse the verdicts.

    Raises:
        ValueError: their number is not that of the sentences.
    """
    verdicts = [str(one).strip().lower() for one in reply["verdicts"]]
    if len(verdicts) != sentences:
        raise ValueError(f"{len(verdicts)} verdicts on {sentences} sentences")
    return Judgement([one == "yes" for one in verdicts], str(reply.get("missing") or ""))
