"""\"Not in your documents\": an answer of its own that says what was searched and what was not."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import PurePosixPath
from uuid import UUID

from bot.core import wording
from bot.core.citation_desk import CitationDesk
from bot.core.models import Answer, AnswerState, NearestPage, Passage, UnreadFile
from bot.core.ports import ChannelDocuments
from storage.models import Channel, DocumentStatus, Platform


class Refusals:
    """Writes the answer for a question that the channel's documents do not answer."""

    def __init__(self, documents: ChannelDocuments, desk: CitationDesk) -> None:
        self._documents = documents
        self._desk = desk

    async def refuse(
        self, channel: Channel, passages: Sequence[Passage], scope: Collection[UUID] | None = None
    ) -> Answer:
        """What was searched, the nearest page, what is still being read and what could not be.

        ``scope``: the documents that were asked; None: all of the channel.

        Raises:
            storage.errors.InfrastructureError: the channel's documents are not known just now.
        """
        if scope is not None and not scope:
            return Answer(AnswerState.NOT_FOUND, wording.NO_SUCH_DOCUMENT)
        statuses = [
            one
            for one in await self._documents.documents(channel.id)
            if scope is None or one.document in scope
        ]
        nearest = await self._desk.nearest(channel, passages[0]) if passages else None
        unread = tuple(
            UnreadFile(status.file, status.reason or "")
            for status in statuses
            if status.state == "quarantined"
        )
        return Answer(
            state=AnswerState.NOT_FOUND,
            text="\n".join(_sentences(statuses, nearest, unread, passages) or [_empty(channel)]),
            nearest=nearest,
            unread=unread,
        )


def _sentences(
    statuses: Sequence[DocumentStatus],
    nearest: NearestPage | None,
    unread: Sequence[UnreadFile],
    passages: Sequence[Passage],
) -> list[str]:
    live = sum(status.state == "live" for status in statuses)
    waiting = sum(status.state in {"waiting", "reading"} for status in statuses)
    said = [f"{wording.NOT_FOUND} {wording.searched(live)}"] if live else []
    if nearest:
        title = passages[0].publication.title or PurePosixPath(nearest.file).name
        said.append(wording.nearest(title, nearest.page))
    if waiting:
        said.append(wording.still_reading(waiting))
    if unread:
        said = said or [wording.NOT_FOUND]
        said.append(wording.unread([PurePosixPath(item.file).name for item in unread]))
    return said


def _empty(channel: Channel) -> str:
    """Where the channel's PDFs go: a local channel's folder has its name, any other the tenant's."""
    return wording.empty_channel(channel.name if channel.platform is Platform.LOCAL else channel.tenant)
