"""Shows the sources of an answer again with fresh links, to a thread or to one person."""

from __future__ import annotations

from collections.abc import Sequence

from bot.answers.citations.citations import CitationService
from bot.core.models import Answer, AnsweredFrom, AnswerState, Citation, Language
from bot.core.plaintext import escape_markers, shorten
from bot.core.wording import ReplyWords, reply_words
from storage.chat.channels import Channels
from storage.chat.traces import QuestionRecords
from storage.errors import UnknownChannel

QUESTION_CHARS, QUOTE_CHARS = 100, 200


def renewed_sources(
    citations: Sequence[Citation], words: ReplyWords, lead: str, origin: AnsweredFrom | None = None
) -> Answer:
    """Return a message with these sources below ``lead``, or one that says there are none."""
    if not citations:
        return Answer(AnswerState.CHAT, words.no_sources, language=words.language)
    quotes = [f"[{one.number}] “{escape_markers(shorten(one.quote, QUOTE_CHARS))}”" for one in citations]
    text = "\n".join([lead, *quotes])
    return Answer(AnswerState.CHAT, text, tuple(citations), language=words.language, answered_from=origin)


class LinkRenewal:
    """Signs new links for an answer; the platform's adapter has checked that the asker may have them."""

    def __init__(self, records: QuestionRecords, channels: Channels, citations: CitationService) -> None:
        self._records = records
        self._channels = channels
        self._citations = citations

    async def renew(self, channel_id: int, question: str, language: Language) -> Answer:
        """Return the sources of the answer to a question of this channel, while its record is retained.

        Raises:
            storage.errors.InfrastructureError: SQL cannot be reached.
        """
        words = reply_words(language)
        kept = await self._records.get(channel_id, question)
        try:
            channel = await self._channels.get(kept.record["answered_from"]["channel_id"]) if kept else None
        except UnknownChannel:
            channel = None
        if kept is None or channel is None:
            return renewed_sources((), words, "")
        citations = await self._citations.renew_by_id(channel, kept.record["citations"])
        asked = escape_markers(shorten(kept.record["question"], QUESTION_CHARS))
        return renewed_sources(citations, words, words.links_renewed(question=asked))
