"""Retention: erases people's words and quotes after the configured days, or with their document.

``storage/erasure/data_inventory.py`` lists every table and folder with its owner and its retention.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import JSON, ColumnElement, String, cast, delete, exists, or_, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import aliased
from sqlmodel import SQLModel, col

from storage.chat.notifications import WELCOME
from storage.chat_models import PERSONAL_KEYS
from storage.clock import utc_now
from storage.settings import StorageSettings
from storage.sql.database import Database
from storage.sql.leased_queue import revoke
from storage.sql.tables import (
    AnswerSourceRow,
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
)

# Rows erased per transaction: other writers wait for it.
BATCH_SIZE = 500
# Maximum names for which one statement searches every row.
MAX_COMPARISONS = 50
_ERASED = "it was erased"
_TOO_OLD = "expired: older than FOOTNOTE_MESSAGE_DAYS"


class Retention:
    """Erases rows whose retention has ended."""

    def __init__(self, database: Database, settings: StorageSettings) -> None:
        """Apply the retention periods of the settings."""
        self._database = database
        self._settings = settings

    async def delete_expired(self) -> int:
        """Erase a batch of expired rows; return their number.

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
        """Delete a batch of expired rows; return their number."""
        # Found outside the transaction: searching may take long, deleting does not.
        ids = await self._ids(table, is_expired)
        if ids:
            async with self._database.transaction(exclusive=False) as session:
                if table is InboxRow:
                    await session.execute(delete(OutboxRow).where(col(OutboxRow.inbox_id).in_(ids)))
                await session.execute(delete(table).where(col(table.id).in_(ids)))
        return len(ids)

    async def _blank(self, is_expired: ColumnElement[bool]) -> int:
        """Blank each channel's expired newest question; keep its address, where notices are posted."""
        ids = await self._ids(InboxRow, is_expired & ~_has_newer_question())
        if ids:
            async with self._database.transaction(exclusive=False) as session:
                for row in await session.scalars(select(InboxRow).where(col(InboxRow.id).in_(ids))):
                    _blank_question(row, _TOO_OLD)
                await session.execute(delete(OutboxRow).where(col(OutboxRow.inbox_id).in_(ids)))
        return len(ids)

    async def _ids(self, table: Any, is_chosen: ColumnElement[bool]) -> Sequence[int]:
        async with self._database.snapshot() as session:
            return list(await session.scalars(select(col(table.id)).where(is_chosen).limit(BATCH_SIZE)))


async def erase_quotes(database: Database, documents: Collection[UUID]) -> None:
    """Erase all quotes of documents that are about to be purged, wherever they were shown.

    Raises:
        DatabaseUnavailable: the database does not work; some may be erased already.
    """
    for document in documents:
        async with database.snapshot() as session:
            row = await session.get(DocumentRow, document)
        if row is not None:
            await (await quoted_rows(database, row.channel_id, [document])).erase(database)


@dataclass(frozen=True, slots=True)
class WordRows:
    """Rows with words to be erased."""

    # Ids of rows to delete, by table.
    deleted: dict[type[SQLModel], set[int]] = field(default_factory=dict)
    # Inbox ids of questions that stay and lose their answer.
    answers: set[int] = field(default_factory=set)
    # Inbox ids of questions that lose words, asker and answer; the id of their message stays.
    questions: set[int] = field(default_factory=set)

    def add(self, table: type[SQLModel], ids: Iterable[int]) -> None:
        """Add rows of a table to delete."""
        self.deleted.setdefault(table, set()).update(ids)

    def counts(self) -> dict[str, int]:
        """Return row counts by table, including rows that only lose their words."""
        counts = {str(table.__tablename__): len(ids) for table, ids in self.deleted.items()}
        return counts | {"inbox": len(self.questions), "outbox": len(self.answers | self.questions)}

    async def erase(self, database: Database, *, told: bool = False) -> int:
        """Erase them; return the number of messages that will say that their answer was removed.

        ``told``: have the messages that are still in a chat say so.

        Raises:
            DatabaseUnavailable: some may be erased already.
        """
        for table, ids in self.deleted.items():
            await _delete_by_id(database, table, sorted(ids))
        count = 0
        for some in _portions(sorted(self.answers | self.questions)):
            async with database.transaction(exclusive=False) as session:
                count += await _erase_answers(session, some, told=told)
                for row in await session.scalars(
                    select(InboxRow).where(col(InboxRow.id).in_(self.questions.intersection(some)))
                ):
                    _blank_question(row, _ERASED)
        return count


async def _erase_answers(session: AsyncSession, ids: Sequence[int], *, told: bool) -> int:
    """Erase these answers; return the number of messages that show one."""
    count = 0
    for reply in await session.scalars(select(OutboxRow).where(col(OutboxRow.inbox_id).in_(ids))):
        if told and reply.answer and reply.message and reply.state == "delivered":
            reply.removed_in, reply.changed_at = reply.answer.get("language") or "", utc_now()
            reply.shown_changes = None
            count += 1
        reply.answer = None
    await session.execute(delete(AnswerSourceRow).where(col(AnswerSourceRow.inbox_id).in_(ids)))
    return count


def _blank_question(row: InboxRow, reason: str) -> None:
    """Erase a question's words and asker; its address stays for messages to be posted or updated there."""
    row.text, row.address = "", {key: row.address[key] for key in row.address.keys() - PERSONAL_KEYS}
    if row.state == "waiting":
        row.state, row.reason = "failed", reason
        revoke(row)


async def quoted_rows(
    database: Database, channel_id: int, documents: Collection[UUID], titles: Collection[str] = ()
) -> WordRows:
    """Find all quotes of a channel's documents, wherever they were shown.

    Citations, subscriptions, turns and notices reference their document. Traces, answers, turns and notices
    also count if they contain a file's path, or one of ``titles``, as a whole word.
    """
    found = WordRows()
    async with database.snapshot() as session:
        rows = await session.execute(
            select(col(DocumentRow.file), col(VersionRow.id))
            .outerjoin(VersionRow, col(VersionRow.document_id) == DocumentRow.id)
            .where(col(DocumentRow.id).in_(documents))
        )
        pairs: list[tuple[str, int | None]] = [(file, version) for file, version in rows]
        if not pairs:
            return found
        versions = {version for _, version in pairs if version is not None}
        mentions = _Mentions({file for file, _ in pairs} | set(titles), versions, channel_id)
        for table in (CitationRow, SubscriptionRow):
            cited: Any = table
            query = select(col(cited.id)).where(col(cited.version_id).in_(versions))
            found.add(table, await session.scalars(query))
        of_files = select(col(NoticeRow.id)).where(col(NoticeRow.document_id).in_(documents))
        found.add(NoticeRow, await session.scalars(of_files))
        notice, turn, record, reply = NoticeRow, TurnRow, QuestionRecordRow, OutboxRow
        found.add(notice, await mentions.keys(session, notice.id, notice.text, notice.channel_id))
        found.add(turn, await _citing_turns(session, channel_id, versions))
        found.add(turn, await mentions.keys(session, turn.id, turn.answer, turn.channel_id))
        found.add(record, await mentions.keys(session, record.id, record.record, record.channel_id))
        found.answers.update(await mentions.keys(session, reply.inbox_id, reply.answer))
    return found


class _Mentions:
    """Finds mentions of documents in text or JSON."""

    def __init__(self, names: Collection[str], versions: Set[int], channel_id: int) -> None:
        self._names = names
        self._versions = versions
        self._channel_id = channel_id
        self._pattern = re.compile("|".join(rf"(?<!\w){re.escape(one)}(?!\w)" for one in names))

    async def keys(self, session: AsyncSession, key: Any, column: Any, channel: Any = None) -> list[int]:
        """Return the keys of rows whose column mentions a document, in the channel and in direct chats.

        ``channel``: the column with the row's channel; None: that of its inbox row.
        """
        query = select(col(key), col(column)).where(self._may_mention(column))
        if channel is None:
            query, channel = query.join(InboxRow, col(InboxRow.id) == key), InboxRow.channel_id
        found: list[int] = []
        rows = await session.stream(query.where(_may_show(channel, self._channel_id)))
        async for some in rows.partitions(BATCH_SIZE):
            found += [id for id, value in some if self._is_in(value)]
        return found

    def _may_mention(self, column: Any) -> ColumnElement[bool]:
        """Return a prefilter without JSON decoding; for many names, comparing takes longer than reading."""
        is_json = isinstance(column.type, JSON)
        written = cast(col(column), String) if is_json else col(column)
        spelled = [json.dumps(one)[1:-1] if is_json else one for one in self._names]
        spelled += [f'"version_id": {version}' for version in self._versions] if is_json else []
        if len(spelled) > MAX_COMPARISONS:
            return written.is_not(None)
        return or_(*(written.contains(one, autoescape=True) for one in spelled))

    def _is_in(self, value: Any) -> bool:
        if isinstance(value, str):
            return self._pattern.search(value) is not None
        if isinstance(value, Mapping):
            return value.get("version_id") in self._versions or any(map(self._is_in, value.values()))
        return isinstance(value, Sequence) and any(map(self._is_in, value))


async def _citing_turns(session: AsyncSession, channel_id: int, versions: Set[int]) -> list[int]:
    query = select(col(TurnRow.id), col(TurnRow.versions)).where(_may_show(TurnRow.channel_id, channel_id))
    return [id for id, cited in await session.execute(query) if not versions.isdisjoint(cited)]


def _may_show(column: Any, channel_id: int) -> ColumnElement[bool]:
    """True if a column names a document's channel, or a direct chat, which may have searched its library."""
    direct = select(col(ChannelRow.id)).where(col(ChannelRow.is_direct))
    return or_(col(column) == channel_id, col(column).in_(direct))


def _portions(ids: Sequence[int]) -> Iterator[Sequence[int]]:
    for start in range(0, len(ids), BATCH_SIZE):
        yield ids[start : start + BATCH_SIZE]


async def _delete_by_id(database: Database, table: type[SQLModel], ids: Sequence[int]) -> None:
    for some in _portions(ids):
        chosen = delete(table).where(table.id.in_(some))  # type: ignore[attr-defined]
        async with database.transaction(exclusive=False) as session:
            await session.execute(chosen)


def _has_newer_question() -> ColumnElement[bool]:
    newer = aliased(InboxRow)
    return exists().where(col(newer.channel_id) == InboxRow.channel_id, col(newer.id) > InboxRow.id)


def _is_last_told_of_its_folder() -> ColumnElement[bool]:
    """True for a folder's last posted notice: while it exists, the same is not posted again."""
    later = aliased(NoticeRow)
    has_later = exists().where(
        col(later.folder_id) == NoticeRow.folder_id,
        col(later.id) > NoticeRow.id,
        col(later.told_in).is_not(None),
    )
    return col(NoticeRow.folder_id).is_not(None) & col(NoticeRow.told_in).is_not(None) & ~has_later
