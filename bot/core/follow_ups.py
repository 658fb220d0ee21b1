"""Understands a question in its thread: worded to stand alone where it leans on it, else as it is."""

from __future__ import annotations

import logging
from dataclasses import replace

from bot.core.errors import ModelError
from bot.core.leaning import FollowUp, FollowUpKind, read_follow_up
from bot.core.models import Question
from bot.core.ports import ChannelDocuments
from bot.core.siblings import names_of
from bot.core.standalone import rewrite_standalone
from bot.core.thread_ports import QueryRewriter
from storage.analyzer import analyze
from storage.memory_models import Turn

log = logging.getLogger(__name__)


class FollowUps:
    """Words the follow-up questions of all channels: by a model where there is one, else by rules."""

    def __init__(self, documents: ChannelDocuments, rewriter: QueryRewriter | None) -> None:
        self._documents = documents
        self._rewriter = rewriter

    async def understand(self, question: Question) -> Question:
        """The question as it is searched for; itself when it says all that it asks.

        Raises:
            storage.errors.InfrastructureError: the channel's documents are not known just now.
        """
        if not question.history:
            return question
        follow_up = read_follow_up(question.text, _terms(question.history[-1]))
        if follow_up.kind is FollowUpKind.ALONE:
            return replace(question, text=follow_up.text)
        text = await self._rewritten(question, follow_up) or await self._reworded(question, follow_up)
        return replace(question, text=text)

    async def _rewritten(self, question: Question, follow_up: FollowUp) -> str | None:
        """A model's wording; None without one, or where the rules see that it missed something."""
        if self._rewriter is None:
            return None
        try:
            text = await self._rewriter.rewrite(question.text, question.history)
        except ModelError as error:
            log.warning("question %s is worded by rules: %s", question.id, error)
            return None
        is_echo = analyze(text) == analyze(question.text)
        return None if is_echo and follow_up.kind is not FollowUpKind.UNSURE else text

    async def _reworded(self, question: Question, follow_up: FollowUp) -> str:
        if follow_up.kind is FollowUpKind.UNSURE:
            return question.text
        is_contrast = follow_up.kind is FollowUpKind.CONTRAST
        documents = await self._documents.documents(question.channel.id) if is_contrast else []
        return rewrite_standalone(follow_up, question.history[-1], names_of(documents))


def _terms(turn: Turn) -> set[str]:
    return set(analyze(f"{turn.standalone}\n{turn.answer}"))
