"""Judges sentences with a language model that reads only the question, the sentences and their sources.

Each sentence is judged by the sources that it names: Rashkin et al., "Measuring Attribution in Natural
Language Generation Models" (2023). A small model says yes to nearly everything, so the first calls include
false control sentences (catch trials). Until a model has refused them all, its verdicts are not trusted.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from bot.answers.generation.prompt import format_question, format_sources
from bot.answers.prompts import read_prompt
from bot.core.models import AnalyzedQuestion, Judgement, QuotedPart, QuotedSentence
from bot.llm.chat_model import JsonCalls, JsonRequest, object_schema

log = logging.getLogger(__name__)

# Token budget of a reply: for each verdict, and for the JSON around them.
SENTENCE_TOKENS, MIN_TOKENS = 8, 96

_VERDICT = {"type": "string", "enum": ["yes", "partly", "no"]}
_SCHEMA = object_schema({"verdicts": {"type": "array", "items": _VERDICT}, "missing": {"type": "string"}})


def _control(sentence: str, source: str) -> QuotedSentence:
    return QuotedSentence(sentence, (QuotedPart(("Harbour guide",), source),))


# False, each in another way: about another thing, a dropped exception, the opposite.
CONTROLS = (
    _control(
        "The night ferry takes 40 minutes.", "The day boat takes 40 minutes, and the night ferry is slower."
    ),
    _control("All dogs travel free.", "Dogs that fit into a carrier travel free."),
    _control("You may bring a bicycle in winter.", "Bicycles are carried from May to September only."),
)


class ModelSentenceJudge:
    """Sentence judge that asks a language model, see ``SentenceJudge``."""

    def __init__(self, calls: JsonCalls) -> None:
        """Set the model; sends nothing yet."""
        self._calls = calls
        self._is_trusted = False

    async def judge(self, question: AnalyzedQuestion, sentences: Sequence[QuotedSentence]) -> Judgement:
        """Judge all sentences in one call; a partly supported sentence counts as unsupported.

        Raises:
            ModelUnavailable: the endpoint is down, too slow or refusing.
            ModelReplyUnusable: the reply does not have one verdict per sentence.
        """
        judged = [*sentences, *(() if self._is_trusted else CONTROLS)]
        ask = JsonRequest(
            "verify",
            read_prompt("verify").format(),
            f"{format_question(question)}\n\n{format_sources(judged)}",
            _SCHEMA,
            MIN_TOKENS + SENTENCE_TOKENS * len(judged),
        )
        is_supported, missing = await self._calls.ask(ask, lambda reply: _read(reply, len(judged)))
        if any(is_supported[len(sentences) :]):
            log.warning(
                "the model that judges sentences accepts false ones: they must also match word by word"
            )
        else:
            self._is_trusted = True
        return Judgement(is_supported[: len(sentences)], missing, is_trusted=self._is_trusted)


def _read(reply: Any, sentences: int) -> tuple[list[bool], str]:
    """Parse the verdicts, and the part of the question that is not answered.

    Raises:
        ValueError: their number is not that of the sentences.
    """
    verdicts = [str(one).strip().lower() for one in reply["verdicts"]]
    if len(verdicts) != sentences:
        raise ValueError(f"{len(verdicts)} verdicts on {sentences} sentences")
    return [one == "yes" for one in verdicts], str(reply.get("missing") or "")
