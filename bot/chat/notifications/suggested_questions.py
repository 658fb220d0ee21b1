"""Suggested questions for a new document, from a model or its headings; each is tried before it is shown."""

from __future__ import annotations

import logging
import re
import secrets
from collections.abc import Iterable, Sequence

from bot.answers.prompts import read_prompt
from bot.core.errors import ModelError
from bot.core.models import AnswerState, Question
from bot.core.plaintext import shorten
from bot.core.ports import Generator, QuestionAnswering
from storage.chat_models import Notice
from storage.clock import utc_now
from storage.models import Channel, Chunk
from storage.queues.reading_repair import SelfHealingReadings

MAX_QUESTION_CHARS = 140
MIN_WORDS = 3
MAX_OFFERED = 3
# Candidates tried per document: each costs as much as a user's question.
MAX_TRIED = 6
# Sampled chunks, evenly spaced: a long document often begins with a table of contents.
MAX_CHUNKS_READ = 12
MAX_EXCERPT_CHARS = 1000
SECONDS, TOKENS = 20.0, 300

_BULLET = re.compile(r"^\W*(?:\d+[.)]\s*)?")
# Plain words only: nothing that a chat client parses as a link, mention or markup.
_PLAIN_QUESTION = re.compile(r"¿?[^\W_][\w\s'’,&/()+%-]*\s?\?")

log = logging.getLogger(__name__)


def asking_headings(chunks: Iterable[Chunk]) -> list[str]:
    """Return the headings that are questions, as in an FAQ."""
    paths = (path for one in chunks for _, path in one.sections)
    headings = (heading for path in paths for heading in path[-1:])
    return plain_questions(headings)


def plain_questions(texts: Iterable[str]) -> list[str]:
    """Return the texts that are questions in plain words, without duplicates."""
    lines = dict.fromkeys(" ".join(text.split()) for text in texts)
    return [
        line
        for line in lines
        if len(line) <= MAX_QUESTION_CHARS
        and len(line.rstrip("? ").split()) >= MIN_WORDS
        and _PLAIN_QUESTION.fullmatch(line)
    ]


class SuggestedQuestions:
    """Asks candidate questions in the document's channel and keeps those that it answers."""

    def __init__(
        self, answering: QuestionAnswering, chunks: SelfHealingReadings, model: Generator | None = None
    ) -> None:
        """Let ``model`` write candidates; None: use only headings that are questions."""
        self._answering = answering
        self._chunks = chunks
        self._model = model
        self._instructions = read_prompt("suggest")

    async def questions(self, channel: Channel, notice: Notice) -> tuple[str, ...]:
        """Return at most three questions that this version answered when tried.

        Raises:
            storage.errors.InfrastructureError: the reading is unavailable.
        """
        chunks = await self._sample(notice)
        candidates = asking_headings(chunks)
        if len(candidates) < MAX_OFFERED:
            candidates += await self._written(chunks, notice)
        passed: list[str] = []
        for text in candidates[:MAX_TRIED]:
            if len(passed) < MAX_OFFERED and await self._is_answered(channel, notice, text):
                passed.append(text)
        return tuple(passed)

    async def _sample(self, notice: Notice) -> Sequence[Chunk]:
        if notice.reading_id is None:
            return []
        step = max(1, notice.chunks // MAX_CHUNKS_READ)
        ordinals = range(0, notice.chunks, step)[:MAX_CHUNKS_READ]
        return await self._chunks.chunks_at([(notice.reading_id, ordinal) for ordinal in ordinals])

    async def _written(self, chunks: Sequence[Chunk], notice: Notice) -> list[str]:
        """Return questions written by the model from excerpts; none without a model or if it fails."""
        if self._model is None or not chunks:
            return []
        # A random fence, so that a document cannot close it (prompt injection).
        fence = secrets.token_hex(8)
        excerpts = "\n\n".join(shorten(chunk.text, MAX_EXCERPT_CHARS) for chunk in chunks)
        document = f"{shorten(notice.title, MAX_QUESTION_CHARS)}\n\n{excerpts}"
        request = f"<document {fence}>\n{document}\n</document {fence}>"
        try:
            reply = await self._model.write(self._instructions, request, seconds=SECONDS, tokens=TOKENS)
        except ModelError as error:
            log.warning("notice=%d question generation failed: %s", notice.id, type(error).__name__)
            return []
        return plain_questions(_BULLET.sub("", line) for line in reply.text.splitlines())

    async def _is_answered(self, channel: Channel, notice: Notice, text: str) -> bool:
        question = Question(f"notice-{notice.id}", text, channel, utc_now(), is_trial=True)
        answer = await self._answering.answer(question)
        is_shown = answer.state in {AnswerState.GROUNDED, AnswerState.PASSAGES}
        return is_shown and answer.citations[0].version_id == notice.version_id
