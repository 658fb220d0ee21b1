"""Translates a question into the language of its channel's documents, with one short model call.

The translation is only searched for: the model that answers reads the question as typed.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from bot.answers.prompts import read_prompt
from bot.answers.understanding.channel_documents import ChannelView
from bot.answers.verification.facts import unsupported
from bot.core.errors import ModelError
from bot.core.models import Language, Prompt, Question, auxiliary_call
from bot.core.ports import Generator
from storage.lru_cache import LRUCache

SECONDS, TOKENS = 6.0, 160
MAX_CHARS = 400
MAX_CACHED = 1000

log = logging.getLogger(__name__)


class QuestionTranslator:
    """Translates the questions of all channels, and caches the translations."""

    def __init__(self, model: Generator) -> None:
        self._model = model
        self._instructions = read_prompt("translate")
        self._translations: LRUCache[tuple[str, Language], str] = LRUCache(MAX_CACHED)

    async def reading(self, question: Question, view: ChannelView) -> Question | None:
        """Return the question in the language of its channel's documents; None if it is already in it.

        Also None if the documents have no language in common, or the model fails.
        """
        language = await view.language()
        if language is None or language is question.language or len(question.text) > MAX_CHARS:
            return None
        try:
            text = await self._translate(question.text, language)
        except ModelError as error:
            log.warning("question=%s translation failed: %s", question.id, type(error).__name__)
            return None
        is_faithful = text and len(text) <= MAX_CHARS and not unsupported(text, [question.text])
        return replace(question, text=text) if is_faithful else None

    async def _translate(self, text: str, language: Language) -> str:
        if (known := self._translations.get((text, language))) is not None:
            return known
        request = f"Language: {language.name.title()}\nQuestion: {text}"
        with auxiliary_call("translate") as call:
            call.prompts.append(Prompt(self._instructions, request, with_schema=False))
            reply = await self._model.write(self._instructions, request, seconds=SECONDS, tokens=TOKENS)
            call.usage = reply.usage
        translated = " ".join(reply.text.split())
        self._translations[text, language] = translated
        return translated
