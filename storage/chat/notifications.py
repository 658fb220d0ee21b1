"""Notices for channels and admins: batching, claiming and delivery of recorded events.

Several notices become one message, a batch: waiting -> posting -> posted, or kept (shown in the console only)
or dropped. A batch is leased to the process that made it. Notices are read together with the rows that they
are about, and outdated ones are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import zip_longest
from pathlib import PurePosixPath
from typing import Any
from uuid import uuid4

from sqlalchemy import ColumnElement, ScalarSelect, case, exists, func, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import aliased
from sqlmodel import col

from storage.chat.notification_events import UNSUPPORTED_KEY, outage_of, record_welcome
from storage.chat_models import Notice, NoticeAudience, NoticeBatch, NoticeGroup
from storage.clock import utc_now
from storage.errors import LeaseLost
from storage.models import Rung
from storage.sql.database import Database
from storage.sql.leased_queue import LeasedQueue
from storage.sql.tables import (
    ChannelRow,
    DocumentRow,
    FolderRow,
    InboxRow,
    NoticeRow,
    PublicationRow,
    ReadingRow,
    VersionRow,
    WebPageRow,
)

FAILED, LIVE, FOLDER, SOURCE, WELCOME, DIGEST = "failed", "live", "folder", "source", "welcome", "digest"
SOURCE_FAILED, SOURCE_CHANGED = "source failed", "source changed"
OUTAGE, SUMMARY = "outage", "summary"
_STRANGER = "stranger"
_FOR_ADMINS = (FOLDER, SOURCE_FAILED, SOURCE_CHANGED, OUTAGE, SUMMARY)
_AUDIENCE: ColumnElement[str] = case(
    (col(NoticeRow.kind).in_(_FOR_ADMINS), NoticeAudience.ADMINS.value),
    (col(NoticeRow.kind) == WELCOME, NoticeAudience.NEWCOMERS.value),
    (col(NoticeRow.kind) == DIGEST, NoticeAudience.OWNERS.value),
    else_=NoticeAudience.CHANNEL.value,
)
_MAX_LISTED_PAGES = 50


async def relevant(
    session: AsyncSession, kind: str, chosen: ColumnElement[bool], most: int, *, newest_first: bool = False
) -> tuple[int, list[Notice]]:
    """Return (number of chosen notices of a kind that are still true, the first ``most`` of them)."""
    query = _QUERIES[kind]().where(col(NoticeRow.kind) == kind, chosen)
    count = select(func.count()).select_from(query.with_only_columns(col(NoticeRow.id)).subquery())
    order = col(NoticeRow.id).desc() if newest_first else col(NoticeRow.id)
    rows = (await session.execute(query.order_by(order).limit(most))).all()
    return await session.scalar(count) or 0, [_NOTICES[kind](row) for row in rows]


def _live() -> Any:
    """Select versions that are live in the notice's channel; deleted or replaced ones are left out."""
    return (
        select(NoticeRow, ChannelRow, DocumentRow, VersionRow, ReadingRow)
        .join(ChannelRow, col(ChannelRow.id) == NoticeRow.channel_id)
        .join(DocumentRow, col(DocumentRow.id) == NoticeRow.document_id)
        .join(VersionRow, col(VersionRow.id) == NoticeRow.version_id)
        .join(
            PublicationRow,
            (col(PublicationRow.version_id) == VersionRow.id)
            & (col(PublicationRow.channel_id) == NoticeRow.channel_id),
        )
        .join(ReadingRow, col(ReadingRow.id) == PublicationRow.reading_id)
        .where(col(PublicationRow.state) == "live", col(DocumentRow.state) != "deleted")
    )


def _failed() -> Any:
    """Select files that still cannot be read; deleted or replaced ones are left out."""
    newer = aliased(VersionRow)
    has_newer = exists().where(
        col(newer.document_id) == NoticeRow.document_id, col(newer.id) > NoticeRow.version_id
    )
    is_refused = col(NoticeRow.version_id).is_(None) & (col(DocumentRow.reason) == NoticeRow.text)
    is_unread = col(NoticeRow.version_id).is_not(None) & ~has_newer
    return (
        select(NoticeRow, ChannelRow, DocumentRow, _answers().label("has_live"))
        .join(ChannelRow, col(ChannelRow.id) == NoticeRow.channel_id)
        .join(DocumentRow, col(DocumentRow.id) == NoticeRow.document_id)
        .where(col(DocumentRow.state) != "deleted", is_refused | is_unread)
    )


def _strangers() -> Any:
    """Select unsupported files in folders that are still watched."""
    return (
        select(NoticeRow, ChannelRow)
        .join(ChannelRow, col(ChannelRow.id) == NoticeRow.channel_id)
        .join(FolderRow, col(FolderRow.id) == NoticeRow.folder_id)
        .where(col(FolderRow.watched))
    )


def _folders() -> Any:
    """Select each folder's last notice, unless the same was posted before; earlier ones are outdated."""
    later = aliased(NoticeRow)
    has_later = exists().where(
        col(later.folder_id) == NoticeRow.folder_id,
        col(later.id) > NoticeRow.id,
        col(later.kind) == NoticeRow.kind,
    )
    return (
        select(NoticeRow, ChannelRow, FolderRow)
        .join(ChannelRow, col(ChannelRow.id) == NoticeRow.channel_id)
        .join(FolderRow, col(FolderRow.id) == NoticeRow.folder_id)
        .where(~has_later, col(NoticeRow.text).is_distinct_from(_last_told()))
    )


def _sources() -> Any:
    """Select web pages that are still approved."""
    return (
        select(NoticeRow, ChannelRow)
        .join(ChannelRow, col(ChannelRow.id) == NoticeRow.channel_id)
        .join(WebPageRow, col(WebPageRow.url) == NoticeRow.url)
    )


def _outages() -> Any:
    """Select starts and ends; of an outage that ended before it was announced, only the end."""
    end = aliased(NoticeRow)
    has_ended = exists().where(col(end.key).startswith(col(NoticeRow.key) + ":"))
    return _of_channels().where(~has_ended)


def _of_channels() -> Any:
    return select(NoticeRow, ChannelRow).join(ChannelRow, col(ChannelRow.id) == NoticeRow.channel_id)


def _last_told() -> ScalarSelect[str | None]:
    """Return the text of the folder's last posted notice; also NULL if that said all was well."""
    told = aliased(NoticeRow)
    return (
        select(col(told.text))
        .where(col(told.folder_id) == NoticeRow.folder_id, col(told.id) < NoticeRow.id)
        .where(col(told.told_in).is_not(None), col(told.kind) == NoticeRow.kind)
        .order_by(col(told.id).desc())
        .limit(1)
        .correlate(NoticeRow)
        .scalar_subquery()
    )


def _has_unread_files() -> ColumnElement[bool]:
    """True if files of the notice's channel are about to be searchable, and did not fail before.

    Nested, so that SQLite begins with the few readings in progress, not with the channel's documents.
    """
    version, reading, publication = aliased(VersionRow), aliased(ReadingRow), aliased(PublicationRow)
    document = aliased(DocumentRow)
    is_in_channel = exists().where(
        col(document.id) == version.document_id,
        col(document.channel_id) == NoticeRow.channel_id,
        col(document.state) != "deleted",
    )
    is_being_read = exists().where(
        col(reading.state) == "waiting",
        col(reading.rung) == Rung.QUICK.value,
        ~col(reading.again) & col(reading.next_attempt_at).is_(None),
        exists().where(col(version.sha256) == reading.sha256, is_in_channel),
    )
    is_being_published = exists().where(
        col(publication.state) == "pending",
        col(publication.rung) == Rung.QUICK.value,
        col(publication.next_attempt_at).is_(None),
        col(publication.channel_id) == NoticeRow.channel_id,
    )
    return is_being_read | is_being_published


def _answers() -> ColumnElement[bool]:
    version = aliased(VersionRow)
    return exists().where(
        col(version.document_id) == NoticeRow.document_id,
        col(PublicationRow.version_id) == version.id,
        col(PublicationRow.state) == "live",
    )


def _live_notice(row: Any) -> Notice:
    notice, channel, document, version, reading = row
    details = reading.details or {}
    ocr_pages = {*details.get("pages_for_ocr", ()), *details.get("ocr_pages", ())}
    return Notice(
        *_common(notice, channel),
        file=document.file,
        title=reading.title or PurePosixPath(document.file).name,
        version_id=version.id,
        number=version.number,
        reading_id=reading.id,
        pages=reading.pages,
        chunks=reading.chunks,
        unread_pages=_numbers(details.get("unread_pages", ())),
        pages_without_text=_numbers(set(details.get("pages_without_text", ())) - ocr_pages),
        ocr_pages=_numbers(ocr_pages),
        is_repaired=bool(details.get("is_repaired")),
        questions=None if notice.questions is None else tuple(notice.questions),
    )


def _failed_notice(row: Any) -> Notice:
    notice, channel, document, has_live = row
    return Notice(*_common(notice, channel), file=document.file, has_live=has_live)


def _folder_notice(row: Any) -> Notice:
    notice, channel, folder = row
    return Notice(*_common(notice, channel), location=folder.location)


def _channel_notice(row: Any) -> Notice:
    notice, channel = row
    return Notice(*_common(notice, channel), url=notice.url or "")


def _outage_notice(row: Any) -> Notice:
    notice, channel = row
    return Notice(*_common(notice, channel), outage=outage_of(notice.key, notice.text))


def _stranger_notice(row: Any) -> Notice:
    """Return it as a file that could not be read, which is what it is for the person who added it."""
    notice, channel = row
    file = notice.key.removeprefix(f"{UNSUPPORTED_KEY}{notice.folder_id}:")
    return replace(Notice(*_common(notice, channel), file=file), kind=FAILED)


def _common(notice: NoticeRow, channel: ChannelRow) -> tuple[int, str, datetime, int, str, str | None]:
    return notice.id, notice.kind, notice.created_at, channel.id, channel.name, notice.text


def _numbers(pages: Collection[int]) -> tuple[int, ...]:
    return tuple(sorted(pages)[:_MAX_LISTED_PAGES])


_QUERIES: dict[str, Callable[[], Any]] = {
    "live": _live,
    "failed": _failed,
    "stranger": _strangers,
    "folder": _folders,
    SOURCE_FAILED: lambda: _sources().where(col(WebPageRow.failing_since).is_not(None)),
    SOURCE_CHANGED: _sources,
    OUTAGE: _outages,
    WELCOME: _of_channels,
    DIGEST: _of_channels,
    SUMMARY: _of_channels,
}
_NOTICES: dict[str, Callable[[Any], Notice]] = {
    "live": _live_notice,
    "failed": _failed_notice,
    "stranger": _stranger_notice,
    "folder": _folder_notice,
    SOURCE_FAILED: _channel_notice,
    SOURCE_CHANGED: _channel_notice,
    OUTAGE: _outage_notice,
    WELCOME: _channel_notice,
    DIGEST: _channel_notice,
    SUMMARY: _channel_notice,
}


class Notices:
    """Hands out notices in batches and records their outcomes."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._rows = LeasedQueue(database, NoticeRow)

    async def waiting(self) -> list[NoticeGroup]:
        """Return the unclaimed waiting notices, grouped by channel and audience; one group per upload."""
        group = col(NoticeRow.channel_id), _AUDIENCE, col(NoticeRow.upload_id)
        query = (
            select(
                *group[:2],
                func.count(),
                func.min(NoticeRow.created_at),
                func.max(NoticeRow.created_at),
                group[2],
                (_AUDIENCE == NoticeAudience.CHANNEL.value) & _has_unread_files(),
            )
            .where(self._is_free("waiting"))
            .group_by(*group)
        )
        async with self._database.snapshot() as session:
            rows: Sequence[Any] = (await session.execute(query)).all()
        return [NoticeGroup(channel, NoticeAudience(audience), *rest) for channel, audience, *rest in rows]

    async def claim(self, groups: Collection[NoticeGroup], lease_seconds: float) -> str:
        """Claim all waiting notices of these groups as a batch, for ``lease_seconds``; return its id."""
        batch = uuid4().hex
        for audience, upload in {(group.audience, group.upload) for group in groups}:
            channels = [one.channel_id for one in groups if (one.audience, one.upload) == (audience, upload)]
            await self._rows.change(
                self._is_free("waiting"),
                _AUDIENCE == audience.value,
                col(NoticeRow.channel_id).in_(channels),
                col(NoticeRow.upload_id) == upload,
                batch=batch,
                lease_until=self._rows.ends_at(lease_seconds),
            )
        return batch

    async def read(self, batch: str, most: int) -> dict[str, tuple[int, list[Notice]]]:
        """Return by kind: (number of notices of a batch that are still true, the first ``most`` of them).

        Unsupported files are listed after failed ones, as failed; all notices of web pages are one kind.
        """
        async with self._database.snapshot() as session:
            found = {
                kind: await relevant(session, kind, col(NoticeRow.batch) == batch, most) for kind in _QUERIES
            }

        def together(*kinds: str) -> tuple[int, list[Notice]]:
            notices = [notice for kind in kinds for notice in found[kind][1]]
            return sum(found[kind][0] for kind in kinds), notices[:most]

        return {
            FAILED: together(FAILED, _STRANGER),
            SOURCE: together(SOURCE_FAILED, SOURCE_CHANGED),
            **{kind: found[kind] for kind in (LIVE, FOLDER, OUTAGE, SUMMARY, WELCOME, DIGEST)},
        }

    async def welcome(self, channel_id: int) -> None:
        """Queue a channel's welcome message, unless it was posted already."""
        async with self._database.transaction(exclusive=False) as session:
            await record_welcome(session, channel_id)

    async def store_questions(self, notice_id: int, questions: Sequence[str]) -> None:
        """Store the questions that a notice's document answers under a heading."""
        await self._rows.change(col(NoticeRow.id) == notice_id, questions=list(questions))

    async def mark_posting(self, batch: str, told_in: int, lease_seconds: float) -> None:
        """Record that a batch is about to be posted in a channel.

        Raises:
            LeaseLost: another process posts some of it.
        """
        own, until = _of(batch, "waiting"), self._rows.ends_at(lease_seconds)
        if not await self._rows.change(own, state="posting", told_in=told_in, lease_until=until):
            raise LeaseLost(f"lease lost: batch {batch}")

    async def finish(self, batch: str, state: str) -> None:
        """End a batch as posted, kept or dropped."""
        posted_at = utc_now() if state == "posted" else None
        await self._rows.change(_of(batch), state=state, lease_until=None, posted_at=posted_at)

    async def release(self, batch: str) -> None:
        """Release an unposted batch: its notices wait again and join a later batch."""
        await self._rows.change(_of(batch), state="waiting", batch=None, told_in=None, lease_until=None)

    async def retry_later(self, batch: str, seconds: float) -> None:
        """Retry after ``seconds`` a batch that may have been posted: the next worker searches for it."""
        await self._rows.change(_of(batch), lease_until=self._rows.ends_at(seconds))

    async def claim_interrupted(self, lease_seconds: float) -> NoticeBatch | None:
        """Claim a batch whose posting was interrupted, or return None."""
        one = col(NoticeRow.batch), col(NoticeRow.told_in)
        query = (
            select(*one, func.min(NoticeRow.created_at), func.max(NoticeRow.upload_id))  # same in all rows
            .where(self._is_free("posting"))
            .group_by(*one)
            .limit(1)
        )
        async with self._database.snapshot() as session:
            row: Any = (await session.execute(query)).first()
        if row is None:
            return None
        is_ours = await self._rows.change(
            col(NoticeRow.batch) == row[0],
            self._is_free("posting"),
            lease_until=self._rows.ends_at(lease_seconds),
        )
        return NoticeBatch(*row) if is_ours else None

    async def expire(self, before: datetime) -> int:
        """Mark notices that waited too long as kept, for the console only; return their number."""
        return await self._rows.change(
            self._is_free("waiting"), col(NoticeRow.created_at) < before, state="kept"
        )

    async def recent(self, channel_id: int, limit: int) -> list[Notice]:
        """Return a channel's newest notices that are still true, newest first."""
        own = (col(NoticeRow.channel_id) == channel_id) & (col(NoticeRow.state) != "dropped")
        async with self._database.snapshot() as session:
            found = [
                notice
                for kind in _QUERIES
                if kind not in (WELCOME, DIGEST)
                for notice in (await relevant(session, kind, own, limit, newest_first=True))[1]
            ]
        return sorted(found, key=lambda notice: notice.created_at, reverse=True)[:limit]

    async def sample_questions(self, channel_id: int, limit: int) -> list[tuple[Notice, str]]:
        """Return sample questions that were answered, for the ``limit`` newest versions that are still live.

        Round-robin over the versions, the newest first.
        """
        own = col(NoticeRow.channel_id) == channel_id
        async with self._database.snapshot() as session:
            notices = (await relevant(session, LIVE, own, limit, newest_first=True))[1]
        turns = zip_longest(*([(one, text) for text in one.questions or ()] for one in notices))
        return [offered for turn in turns for offered in turn if offered is not None]

    async def last_address(self, channel_id: int) -> dict[str, Any] | None:
        """Return a channel's reply address, from its newest question or else from when the bot joined."""
        query = (
            select(col(InboxRow.address))
            .where(col(InboxRow.channel_id) == channel_id)
            .order_by(col(InboxRow.id).desc())
            .limit(1)
        )
        async with self._database.snapshot() as session:
            address: dict[str, Any] | None = await session.scalar(query)
            channel = await session.get(ChannelRow, channel_id) if address is None else None
        return channel.address if channel else address

    def _is_free(self, state: str) -> ColumnElement[bool]:
        return (col(NoticeRow.state) == state) & self._rows.is_free()


def _of(batch: str, *states: str) -> ColumnElement[bool]:
    return (col(NoticeRow.batch) == batch) & col(NoticeRow.state).in_(states or ("waiting", "posting"))
