"""Erases what people wrote or were shown: after the days that the settings give it, or with its document.

``storage/erasure/kept_texts.py`` lists every table and folder with its owner and its retention.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, String, cast, delete, exists, or_, select, update
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import aliased
from sqlmodel import SQLModel, col

from storage.chat.notifications import WELCOME
from storage.chat_models import WORDS
from storage.clock import utc_now
from storage.settings import StorageSettings
from storage.sql.database import Database
from storage.sql.tables import (
    AuditRow,
    ChannelRow,
    CitationRow,
    DocumentRow,
    InboxRow,
    NoticeRow,
    OutboxRow,
    QuestionRecordRow,
    SubscriptionRow,
    TurnRow,
    VersionRow,
    WebCitationRow,
)

BATCH_SIZE = 500
"""Rows of a table erased by one transaction: other writers wait for it."""
_TOO_OLD = "it waited for longer than questions are kept (FOOTNOTE_MESSAGE_DAYS)"


class Retention:
    """Erases what has been kept long enough."""

    def __init__(self, database: Database, settings: StorageSettings) -> None:
        """Keep each kind of text for as many days as the settings say."""
        self._database = database
        self._settings = settings

    async def delete_expired(self) -> int:
        """Erase some of what has been kept long enough; returns how many rows that were.

        Raises:
            DatabaseUnavailable: the database does not work.
        """
        days, now = self._settings, utc_now()

        def is_older(column: Any, kept_days: float) -> ColumnElement[bool]:
            return col(column) < now - timedelta(days=kept_days)

        is_old_message = is_older(InboxRow.created_at, days.message_days)
        return (
            await self._delete(TurnRow, is_older(TurnRow.asked_at, days.memory_days))
            + await self._delete(QuestionRecordRow, is_older(QuestionRecordRow.asked_at, days.record_days))
            + await self._delete(CitationRow, is_older(CitationRow.created_at, days.citation_days))
            + await self._delete(WebCitationRow, is_older(WebCitationRow.created_at, days.citation_days))
            + await self._delete(
                NoticeRow,
                is_older(NoticeRow.created_at, days.message_days)
                & ~_is_last_told_of_its_folder()
                & (col(NoticeRow.kind) != WELCOME),  # no channel is welcomed twice; it holds no text
            )
            + await self._delete(AuditRow, is_older(AuditRow.at, days.audit_days))
            + await self._delete(InboxRow, is_old_message & _has_newer_question())
            + await self._blank(is_old_message & (col(InboxRow.text) != ""))
        )

    async def _delete(self, table: Any, is_expired: ColumnElement[bool]) -> int:
        """Searched for before the transaction begins: finding them may take long, erasing them does not."""
        ids = await self._ids(table, is_expired)
        if ids:
            async with self._database.transaction(exclusive=False) as session:
                if table is InboxRow:
                    await session.execute(delete(OutboxRow).where(col(OutboxRow.inbox_id).in_(ids)))
                await session.execute(delete(table).where(col(table.id).in_(ids)))
        return len(ids)

    async def _blank(self, is_expired: ColumnElement[bool]) -> int:
        """The newest question of a channel says where notices are posted: its words go, its address stays."""
        ids = await self._ids(InboxRow, is_expired & ~_has_newer_question())
        if ids:
            chosen = update(InboxRow).where(col(InboxRow.id).in_(ids))
            async with self._database.transaction(exclusive=False) as session:
                for row in await session.scalars(select(InboxRow).where(col(InboxRow.id).in_(ids))):
                    row.text, row.address = "", {key: row.address[key] for key in row.address.keys() - WORDS}
                waiting = chosen.where(col(InboxRow.state) == "waiting")
                await session.execute(waiting.values(state="failed", reason=_TOO_OLD))
                await session.execute(delete(OutboxRow).where(col(OutboxRow.inbox_id).in_(ids)))
        return len(ids)

    async def _ids(self, table: Any, is_chosen: ColumnElement[bool]) -> Sequence[int]:
        async with self._database.snapshot() as session:
            return list(await session.scalars(select(col(table.id)).where(is_chosen).limit(BATCH_SIZE)))


async def erase_quotes(database: Database, documents: Collection[UUID]) -> None:
    """Erase what was quoted from documents that are about to go for good, wherever it was shown.

    Citations, turns and notices know their document. Traces and answers name its file: one of another
    document whose path ends alike may go with them.

    Raises:
        DatabaseUnavailable: the database does not work; some of it may be erased already.
    """
    for document in documents:
        async with database.snapshot() as session:
            row = await session.get(DocumentRow, document)
            if row is None:
                continue
            versions = set(
                await session.scalars(
                    select(col(VersionRow.id)).where(col(VersionRow.document_id) == document)
                )
            )
            turns = await _citing_turns(session, row.channel_id, versions)
            traces = list(
                await session.scalars(
                    select(col(QuestionRecordRow.id))
                    .where(_may_show(QuestionRecordRow.channel_id, row.channel_id))
                    .where(_names(QuestionRecordRow.record, row.file))
                )
            )
            answers = list(await session.scalars(_citing_answers(row, versions)))
        await _delete_by_id(database, TurnRow, turns)
        await _delete_by_id(database, QuestionRecordRow, traces)
        async with database.transaction(exclusive=False) as session:
            await session.execute(delete(CitationRow).where(col(CitationRow.version_id).in_(versions)))
            followed = delete(SubscriptionRow).where(col(SubscriptionRow.version_id).in_(versions))
            await session.execute(followed)
            await session.execute(delete(NoticeRow).where(col(NoticeRow.document_id) == document))
            await session.execute(
                update(OutboxRow).where(col(OutboxRow.inbox_id).in_(answers)).values(answer=None)
            )


async def _citing_turns(session: AsyncSession, channel_id: int, versions: Collection[int]) -> list[int]:
    query = select(col(TurnRow.id), col(TurnRow.versions)).where(_may_show(TurnRow.channel_id, channel_id))
    return [id for id, cited in await session.execute(query) if not set(versions).isdisjoint(cited)]


def _citing_answers(document: DocumentRow, versions: Collection[int]) -> Any:
    """The inbox ids of answers whose JSON names one of the versions, or the file."""
    answer = cast(col(OutboxRow.answer), String)
    cites = [answer.contains(f'"version_id": {version},', autoescape=True) for version in versions]
    return (
        select(col(OutboxRow.inbox_id))
        .join(InboxRow, col(InboxRow.id) == OutboxRow.inbox_id)
        .where(_may_show(InboxRow.channel_id, document.channel_id))
        .where(or_(_names(OutboxRow.answer, document.file), *cites))
    )


def _may_show(column: Any, channel_id: int) -> ColumnElement[bool]:
    """Whether a column names a document's channel, or a direct chat, which may have asked its library."""
    direct = select(col(ChannelRow.id)).where(col(ChannelRow.is_direct))
    return or_(col(column) == channel_id, col(column).in_(direct))


def _names(column: Any, file: str) -> ColumnElement[bool]:
    """Whether a JSON column holds a text that begins with the file's path."""
    return cast(col(column), String).contains(json.dumps(file)[:-1], autoescape=True)


async def _delete_by_id(database: Database, table: type[SQLModel], ids: Sequence[int]) -> None:
    for start in range(0, len(ids), BATCH_SIZE):
        chosen = delete(table).where(table.id.in_(ids[start : start + BATCH_SIZE]))  # type: ignore[attr-defined]
        async with database.transaction(exclusive=False) as session:
            await session.execute(chosen)


def _has_newer_question() -> ColumnElement[bool]:
    newer = aliased(InboxRow)
    return exists().where(col(newer.channel_id) == InboxRow.channel_id, col(newer.id) > InboxRow.id)


def _is_last_told_of_its_folder() -> ColumnElement[bool]:
    """The last notice of a folder: none is posted again while that is true."""
    later = aliased(NoticeRow)
    has_later = exists().where(
        col(later.folder_id) == NoticeRow.folder_id,
        col(later.id) > NoticeRow.id,
        col(later.told_in).is_not(None),
    )
    return col(NoticeRow.folder_id).is_not(None) & col(NoticeRow.told_in).is_not(None) & ~has_later
