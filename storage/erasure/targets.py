"""Targets of an erasure: documents, whole channels or one person's words; and checks that may refuse it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Select, exists, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from storage.chat.feedback import hash_person
from storage.chat.notification_events import UPLOADS_FOLDER
from storage.chat.retention import WordRows, quoted_rows
from storage.errors import SettingsError, StillInFolder
from storage.models import Channel
from storage.sql.database import Database
from storage.sql.tables import (
    ChannelRow,
    CitationRow,
    DocumentRow,
    FeedbackRow,
    FolderRow,
    InboxRow,
    NoticeRow,
    QuestionRecordRow,
    ReadingRow,
    SubscriptionRow,
    TurnRow,
    UploadRow,
    VersionRow,
)

# Shorter titles occur in too many texts.
MIN_TITLE_CHARS = 8
_OF_CHANNEL = (
    CitationRow,
    SubscriptionRow,
    NoticeRow,
    TurnRow,
    QuestionRecordRow,
)


@dataclass(frozen=True, slots=True)
class ErasureTarget:
    """Target of an erasure."""

    # All of one channel.
    documents: tuple[UUID, ...] = ()
    # Channel of the documents.
    channel: Channel | None = None
    is_whole_channel: bool = False
    # Person, in the format of FOOTNOTE_ADMINS or of the audit log.
    person: str = ""
    # Channels whose questions and answers are erased, of all askers.
    conversations: tuple[int, ...] = ()

    @property
    def subject(self) -> str:
        """Identifier in the audit log, without personal data."""
        if self.person:
            return hash_person(*self.person.split(":", 2)[1:])
        return " ".join(map(str, self.documents)) if not self.conversations else "channel"


async def document_target(database: Database, channel: Channel, file: str) -> ErasureTarget:
    """Return the target of every document of a channel that has or once had this path.

    Raises:
        SettingsError: there is none.
        StillInFolder: it lies in a watched folder.
    """
    query = (
        select(DocumentRow, FolderRow)
        .join(FolderRow, col(FolderRow.id) == DocumentRow.folder_id)
        .where(col(DocumentRow.channel_id) == channel.id, col(DocumentRow.file) == file)
    )
    async with database.snapshot() as session:
        rows = list(await session.execute(query))
    if not rows:
        raise SettingsError(f"the channel has no document {file}; see footnote documents")
    for document, folder in rows:
        if folder.watched and await asyncio.to_thread(_is_there, folder.location, document):
            raise StillInFolder(
                f"{file} is still in the watched folder {folder.location} and would be ingested again: "
                "delete it there first. Nothing was erased"
            )
    return ErasureTarget(tuple(document.id for document, _ in rows), channel)


def _is_there(location: str, document: DocumentRow) -> bool:
    """True if a scan may still find the file; for a share or a missing folder, as of the last scan."""
    if "://" in location or not Path(location).is_dir():
        return document.state != "deleted"
    return (Path(location) / document.file).exists()


async def channel_target(database: Database, channel: Channel) -> ErasureTarget:
    """Return the target of everything that a channel has.

    Raises:
        StillInFolder: a folder that feeds it still exists.
    """
    async with database.snapshot() as session:
        holds = exists().where(
            col(DocumentRow.folder_id) == FolderRow.id, col(DocumentRow.state) != "deleted"
        )
        watched = await session.execute(
            select(FolderRow, holds).where(col(FolderRow.channel_id) == channel.id, col(FolderRow.watched))
        )
        for folder, holds_documents in watched:
            if folder.origin == "map" or "://" in folder.location:
                raise StillInFolder(
                    f"folders.toml still maps {folder.location} to the channel: remove the entry, wait for "
                    "footnote serve to reload it, then erase the channel. Nothing was erased"
                )
            if await asyncio.to_thread(_may_come_back, Path(folder.location), holds_documents):
                raise StillInFolder(
                    f"{folder.location} still feeds the channel: take the folder out of the inbox, then "
                    "erase the channel. Nothing was erased"
                )
        documents = await session.scalars(
            select(col(DocumentRow.id)).where(col(DocumentRow.channel_id) == channel.id)
        )
        return ErasureTarget(tuple(documents), channel, is_whole_channel=True, conversations=(channel.id,))


def _may_come_back(folder: Path, holds_documents: bool) -> bool:
    """True if an inbox folder holds a file or cannot be read, or the inbox itself is missing.

    An empty folder may be an unmounted disk, until scans have deleted its documents.
    """
    if not folder.exists():
        return not folder.parent.is_dir()
    if holds_documents:
        return True
    unreadable: list[OSError] = []
    holds_files = any(
        files or any((Path(place) / one).is_symlink() for one in folders)
        for place, folders, files in os.walk(folder, onerror=unreadable.append)
    )
    return holds_files or bool(unreadable)


async def person_target(database: Database, person: str) -> ErasureTarget:
    """Return the target of a person's questions, their answers, and the person's feedback.

    Raises:
        SettingsError: this is not the name of a person.
    """
    platform, _, rest = person.partition(":")
    if not platform.isalpha() or not platform.islower() or not all(rest.partition(":")):
        raise SettingsError(
            f"{person!r} is not a person: use the format of FOOTNOTE_ADMINS, slack:T0ACME001:U0ANNA001 or "
            "teams:<tenant>:<object id>, or as the audit names who signed in to the console, "
            "oidc:<host>:<address> or oidc:<host>:sub:<id>"
        )
    asked = select(col(InboxRow.channel_id)).where(_asker() == person)
    query = select(col(ChannelRow.id)).where(col(ChannelRow.is_direct), col(ChannelRow.id).in_(asked))
    async with database.snapshot() as session:
        return ErasureTarget(person=person, conversations=tuple(await session.scalars(query)))


async def words_of(database: Database, target: ErasureTarget) -> WordRows:
    """Return every row that now holds words of the target."""
    found = WordRows()
    if target.channel and target.documents:
        titles = await _own_titles(database, target, target.channel.id)
        found = await quoted_rows(database, target.channel.id, target.documents, titles)
    async with database.snapshot() as session:
        if target.channel and target.documents:
            found.add(UploadRow, await session.scalars(_uploads_of(target.channel.id, target.documents)))
        if target.person:
            await _add_person(session, found, target.person)
        for conversation in target.conversations:
            await _add_conversation(session, found, conversation)
        if target.is_whole_channel and target.channel:  # else uploaded files still exist
            of_channel = col(UploadRow.channel_id) == target.channel.id
            found.add(UploadRow, await session.scalars(select(col(UploadRow.id)).where(of_channel)))
    return found


def _uploads_of(channel_id: int, documents: Collection[UUID]) -> Select[int]:
    """Select the uploads of these documents: uploads lie in one folder, under their name."""
    return (
        select(col(UploadRow.id))
        .join(DocumentRow, col(DocumentRow.file) == f"{UPLOADS_FOLDER}/" + col(UploadRow.name))
        .where(col(UploadRow.channel_id) == channel_id, col(DocumentRow.id).in_(documents))
    )


async def _own_titles(database: Database, target: ErasureTarget, channel_id: int) -> set[str]:
    """Return titles by which answers may call the documents, and no other document of the channel."""
    query = (
        select(col(VersionRow.document_id), col(ReadingRow.title))
        .join(DocumentRow, col(DocumentRow.id) == VersionRow.document_id)
        .join(ReadingRow, col(ReadingRow.sha256) == VersionRow.sha256)
        .where(col(DocumentRow.channel_id) == channel_id)
        .distinct()
    )
    async with database.snapshot() as session:
        rows = [(document, title) for document, title in await session.execute(query)]
    others = {title for document, title in rows if document not in target.documents}
    own = {title for document, title in rows if document in target.documents}
    return {title for title in own - others if len(title) >= MIN_TITLE_CHARS}


async def _add_conversation(session: AsyncSession, found: WordRows, channel_id: int) -> None:
    """Add all that was asked, answered and announced in a channel."""
    for table in _OF_CHANNEL:
        rows: Any = table
        query = select(col(rows.id)).where(col(rows.channel_id) == channel_id)
        found.add(table, await session.scalars(query))
    asked = select(col(InboxRow.id)).where(col(InboxRow.channel_id) == channel_id)
    found.questions.update(await session.scalars(asked))


async def _add_person(session: AsyncSession, found: WordRows, person: str) -> None:
    """Add a person's questions with all that came of them, and the person's feedback."""
    query = select(col(InboxRow.id), col(InboxRow.event_key)).where(_asker() == person)
    asked = [(id, event) for id, event in await session.execute(query)]
    found.questions.update(id for id, _ in asked)
    keys, events = [str(id) for id, _ in asked], [event for _, event in asked]
    for turn in (TurnRow, QuestionRecordRow):
        rows: Any = turn
        found.add(turn, await session.scalars(select(col(rows.id)).where(col(rows.key).in_(keys))))
    of_events = col(SubscriptionRow.event_key).in_(events)
    found.add(SubscriptionRow, await session.scalars(select(col(SubscriptionRow.id)).where(of_events)))
    uploaded = select(col(UploadRow.id)).where(col(UploadRow.uploader) == person)
    found.add(UploadRow, await session.scalars(uploaded))
    said = col(FeedbackRow.person) == hash_person(*person.split(":", 2)[1:])
    found.add(FeedbackRow, await session.scalars(select(col(FeedbackRow.id)).where(said)))


def _asker() -> ColumnElement[str]:
    asker: ColumnElement[str] = col(InboxRow.address)["asker"].as_string()
    return asker
