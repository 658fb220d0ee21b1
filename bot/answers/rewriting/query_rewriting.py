"""Rewrites a follow-up as a standalone question, by a model if there is one.

The rewriting is an alternative to the question as typed: both are searched for, and the judge chooses. A
model's rewriting is used only if its words come from the thread.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import replace

from bot.answers.prompts import read_prompt
from bot.answers.rewriting.rule_rewriter import (
    add_subject,
    is_incomplete,
    last_question,
    match_contrast_opener,
    may_depend_on_thread,
    names_of,
    new_noun,
    replace_noun,
    replaceable_spans,
    rewrite_for_sibling,
    span_of_same_head,
)
from bot.answers.understanding.channel_documents import ChannelView
from bot.answers.understanding.question_terms import exact_words
from bot.answers.verification.facts import unsupported
from bot.core.errors import ModelError, ModelReplyUnusable
from bot.core.models import Language, Prompt, Question, auxiliary_call
from bot.core.plaintext import shorten
from bot.core.ports import Generator
from storage.chat.notifications import Notices
from storage.chat_models import Turn
from storage.embeddings.base import QueryEmbedder
from storage.embeddings.cosine_scale import CosineCalibration
from storage.errors import EmbedderUnavailable
from storage.text.analyzer import analyze, fold

log = logging.getLogger(__name__)

# Characters of the thread that a model reads, newest turns first.
MAX_HISTORY_CHARS = 2000
MAX_QUESTION_CHARS = 400
# Limits of one rewriting.
REWRITE_SECONDS, REWRITE_TOKENS = 6.0, 120

# Minimum cosine of two English nouns, by the bundled embedder, for one to replace the other.
SIMILAR_NOUNS = 0.3
# Document versions whose suggested questions are recognised.
MAX_VERSIONS = 50

_WORD = re.compile(r"[^\W_]+")
_LABEL = re.compile(r"^(?:(?:standalone |rewritten )?question|q)\s*:\s*", re.IGNORECASE)
_SPELLED = frozenset(
    "two three four five six seven eight nine ten eleven twelve fifteen twenty thirty forty fifty hundred "
    "thousand million zwei drei vier funf zehn deux trois quatre cinq dix dos tres cuatro cinco diez".split()
)


class FollowUpRewriter:
    """Rewrites the follow-up questions of all channels: by a model if there is one, else by rules."""

    def __init__(
        self,
        embedder: QueryEmbedder,
        rewriter: ModelRewriter | None = None,
        notices: Notices | None = None,
        scale: CosineCalibration | None = None,
    ) -> None:
        """Set the rewriter; rewrites nothing yet.

        Args:
            rewriter: rewrites questions by a model; None: rules do.
            notices: stores the questions suggested to users; None: none are suggested.
            scale: maps the embedder's cosines to the bundled embedder's; None: it is the bundled one.
        """
        self._embedder = embedder
        self._rewriter = rewriter
        self._notices = notices
        self._scale = scale or CosineCalibration()

    async def queries(self, question: Question, view: ChannelView) -> tuple[Question, ...]:
        """Return the questions to search for: as typed and, if it may depend on its thread, as standalone.

        A follow-up that only names something else, or little more than a pronoun, is not searched for as
        typed: any document would answer it.

        Raises:
            storage.errors.InfrastructureError: the channel's documents are unavailable.
        """
        if not question.history or not may_depend_on_thread(question.text):
            return (question,)
        if await self._is_suggested(question):
            return (question,)
        text = await self._by_model(question)
        if text is None:
            exchanged = await self._about_another(question, view)
            if exchanged and match_contrast_opener(question.text):
                return (replace(question, text=exchanged),)
            text = exchanged or add_subject(question.text, question.history[-1])
        if is_incomplete(question.text):
            return (replace(question, text=text),)
        return (question,) if text == question.text else (question, replace(question, text=text))

    async def _is_suggested(self, question: Question) -> bool:
        """True if it was suggested to users, because a document was found to answer it."""
        if self._notices is None:
            return False
        suggested = await self._notices.sample_questions(question.channel.id, MAX_VERSIONS)
        return any(text.split() == question.text.split() for _, text in suggested)

    async def _about_another(self, question: Question, view: ChannelView) -> str | None:
        """Return the last question about another document or noun; None if the follow-up says more."""
        last = question.history[-1]
        documents = await view.documents() if match_contrast_opener(question.text) else []
        if sibling := rewrite_for_sibling(question.text, last, names_of(documents)):
            return sibling
        noun, base = new_noun(question.text), last_question(last)
        if noun is None or set(analyze(noun)) <= set(analyze(base)):
            return None
        if span := span_of_same_head(base, noun):
            return replace_noun(base, span, noun)
        return await self._replace_similar_noun(base, noun) if question.language is Language.ENGLISH else None

    async def _replace_similar_noun(self, base: str, noun: str) -> str | None:
        """Return the last question with ``noun`` for its most similar noun; None if none is similar."""
        spans = replaceable_spans(base, len(noun.split()))
        if not spans:
            return None
        try:
            await self._scale.calibrate()
            vectors = await self._embedder.aembed([noun, *(base[start:end] for start, end in spans)])
        except EmbedderUnavailable as error:
            log.warning("embedder unavailable, appending the subject to the follow-up: %s", error)
            return None
        likeness = vectors[1:] @ vectors[0]
        nearest = int(likeness.argmax())
        if self._scale.rescale(float(likeness[nearest])) < SIMILAR_NOUNS:
            return None
        return replace_noun(base, spans[nearest], noun)

    async def _by_model(self, question: Question) -> str | None:
        """Return a model's rewriting; None without a model, or if it repeats an incomplete question."""
        if self._rewriter is None:
            return None
        try:
            text = await self._rewriter.rewrite(question.text, question.history)
        except ModelError as error:
            log.warning("question=%s rewriting by model failed, using rules: %s", question.id, error)
            return None
        is_echo = analyze(text) == analyze(question.text)
        return None if is_echo and match_contrast_opener(question.text) else text


class ModelRewriter:
    """Rewrites follow-up questions by one short call to a language model."""

    def __init__(self, model: Generator) -> None:
        self._model = model
        self._instructions = read_prompt("rewrite")

    async def rewrite(self, question: str, history: Sequence[Turn]) -> str:
        """Return the question as a standalone one; unchanged if it needs nothing from the thread.

        Raises:
            bot.core.errors.ModelError: the model failed, timed out, or added what the thread does not say.
        """
        request = f"{format_history(history)}\n\nLast question: {question}"
        with auxiliary_call("rewrite") as call:
            call.prompts.append(Prompt(self._instructions, request, with_schema=False))
            reply = await self._model.write(
                self._instructions, request, seconds=REWRITE_SECONDS, tokens=REWRITE_TOKENS
            )
            call.usage = reply.usage
            return _read(reply.text, question, history)


def _read(reply: str, question: str, history: Sequence[Turn]) -> str:
    """Return the question that a model wrote.

    Raises:
        ModelReplyUnusable: it is not a single question, or not faithful to the thread.
    """
    lines = [line for line in map(str.strip, reply.splitlines()) if line]
    text = _LABEL.sub("", lines[0]).strip("\"'“”` ") if len(lines) == 1 else ""
    if not text or len(text) > max(MAX_QUESTION_CHARS, 2 * len(question)):
        raise ModelReplyUnusable("the rewriting is not a single question")
    if not is_faithful(text, question, history):
        raise ModelReplyUnusable("the rewriting adds facts that are not in the thread")
    return text


def format_history(history: Sequence[Turn]) -> str:
    """Return the thread as a model reads it: the last turns that fit, at least one, oldest first."""
    shown: list[str] = []
    left = MAX_HISTORY_CHARS
    for turn in reversed(history):
        formatted = f"Question: {turn.standalone}\nAnswer: {shorten(turn.answer, 500)}"
        left -= len(formatted)
        if shown and left < 0:
            break
        shown.append(formatted[:MAX_HISTORY_CHARS])
    return "\n".join(reversed(shown))


def is_faithful(text: str, question: str, history: Sequence[Turn]) -> bool:
    """True if a rewriting adds no number, code or name that is neither in the question nor in its thread."""
    sources = [
        question,
        *(said for turn in history for said in (turn.question, turn.standalone, turn.answer)),
    ]
    known = _words("\n".join(sources))
    named = _words(" ".join(exact_words(text)))
    return not unsupported(text, sources) and named <= known and _words(text) & _SPELLED <= known


def _words(text: str) -> set[str]:
    return set(_WORD.findall(fold(text).lower()))
