"""Notes below search results: documents still being read and, once per channel, how to set up a model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

from bot.core.models import Question, Retrieval
from bot.core.wording import reply_words
from storage.chat.traces import QuestionRecords
from storage.models import Rung


class SearchNotes:
    """Writes the notes below search results."""

    def __init__(self, records: QuestionRecords | None = None, *, last_rung: Rung = Rung.FULL) -> None:
        """Detect a channel's first question with ``records``; None: no note on the first search.

        ``last_rung``: the reading stage at which ingestion stops.
        """
        self._records = records
        self._stops_at = last_rung
        self._known: set[int] = set()

    async def write(self, question: Question, retrieval: Retrieval) -> Sequence[str]:
        """Return the notes in the question's language; usually none.

        Raises:
            storage.errors.DatabaseUnavailable: the records cannot be read.
        """
        words, notes = reply_words(question.language), []
        if files := self._partly_read(retrieval):
            notes.append(words.partly_searchable(files))
        if retrieval.passages and await self._is_first(question):
            notes.append(words.first_search)
        return notes

    def _partly_read(self, retrieval: Retrieval) -> list[str]:
        sources = [one.publication for one in retrieval.passages if not one.publication.web]
        files = (PurePosixPath(one.file).name for one in sources if one.rung is not self._stops_at)
        return list(dict.fromkeys(files)) if self._stops_at is Rung.FULL else []

    async def _is_first(self, question: Question) -> bool:
        channel = question.conversation_channel.id
        if self._records is None or channel in self._known:
            return False
        self._known.add(channel)
        return await self._records.is_first(channel)
