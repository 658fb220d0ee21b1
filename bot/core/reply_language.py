"""Chooses the language that a reply is written in."""

from __future__ import annotations

import logging
from collections import Counter

from bot.core.languages import Language, language_of
from bot.core.models import Question
from bot.core.ports import ChannelDocuments
from storage.errors import InfrastructureError
from storage.models import Channel, DocumentStatus

log = logging.getLogger(__name__)

_BY_CODE = {language.value: language for language in Language}


class ReplyLanguages:
    """Knows what people speak: by their questions, else by their documents."""

    def __init__(self, documents: ChannelDocuments) -> None:
        self._documents = documents

    async def choose(self, question: Question) -> Language:
        """The question's own; else that of its thread; else that of most documents here; else English."""
        asked = (question.text, *(turn.question for turn in reversed(question.history)))
        spoken = next(filter(None, map(language_of, asked)), None)
        return spoken or await self._usual(question.channel) or Language.ENGLISH

    async def _usual(self, channel: Channel) -> Language | None:
        """What more than half of the documents are in; None, too, where nobody can say just now."""
        try:
            documents = await self._documents.documents(channel.id)
        except InfrastructureError as error:
            log.warning("channel=%d has no known language: %s", channel.id, type(error).__name__)
            return None
        counts = Counter(filter(None, map(_language, documents)))
        usual, count = counts.most_common(1)[0] if counts else (None, 0)
        return usual if 2 * count > len(documents) else None


def _language(document: DocumentStatus) -> Language | None:
    """What a document is in, if it is one of ours."""
    found = document.metadata.get("language")
    return _BY_CODE.get(found.value) if found else None
