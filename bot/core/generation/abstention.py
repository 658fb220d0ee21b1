""" "Not in your documents": an answer of its own that says what was searched and what was not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

from bot.core.citations.citations import CitationService
from bot.core.models import (
    Answer,
    AnswerState,
    NearestPage,
    Passage,
    Question,
    UnreadFile,
)
from bot.core.understanding.channel_documents import ChannelView
from bot.core.wording import ReplyWords, reply_words
from storage.models import DocumentStatus


class Abstention:
    """Writes the answer for a question that the channel's documents do not answer."""

    def __init__(self, citations: CitationService) -> None:
        self._citations = citations

    async def abstain(self, question: Question, passages: Sequence[Passage], view: ChannelView) -> Answer:
        """What was searched, the nearest page, what is still being read and what could not be.

        Raises:
            storage.errors.InfrastructureError: SQL cannot be reached.
        """
        words, channel, scope = reply_words(question.language), question.channel, question.documents
        if scope is not None and not scope:
            return Answer(AnswerState.NOT_FOUND, words.no_such_document)
        statuses = [one for one in await view.documents() if scope is None or one.document in scope]
        nearest = await self._citations.nearest(channel, passages[0]) if passages else None
        unread = tuple(
            UnreadFile(status.file, status.reason or "")
            for status in statuses
            if status.state == "quarantined"
        )
        said = _sentences(words, statuses, nearest, unread, passages)
        if not said:
            said.append(words.no_documents(channel))
        return Answer(
            state=AnswerState.NOT_FOUND,
            text="\n".join(said),
            nearest=nearest,
            unread=unread,
        )


def _sentences(
    words: ReplyWords,
    statuses: Sequence[DocumentStatus],
    nearest: NearestPage | None,
    unread: Sequence[UnreadFile],
    passages: Sequence[Passage],
) -> list[str]:
    live = sum(status.state == "live" for status in statuses)
    waiting = sum(status.state in {"waiting", "reading"} for status in statuses)
    said = [f"{words.not_found} {words.searched(live)}"] if live else []
    if nearest:
        title = passages[0].publication.title or PurePosixPath(nearest.file).name
        said.append(words.nearest(title=title, page=nearest.page))
    if waiting:
        said.append(words.still_reading(waiting))
    if unread:
        said = said or [words.not_found]
        said.append(words.unread([PurePosixPath(item.file).name for item in unread]))
    return said
