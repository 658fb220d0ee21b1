"""Reads notices together with what they are about, and leaves out what is not true any more."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any

from sqlalchemy import ColumnElement, ScalarSelect, exists, func, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import aliased
from sqlmodel import col

from storage.notice_models import Notice
from storage.tables import (
    ChannelRow,
    DocumentRow,
    FolderRow,
    NoticeRow,
    PublicationRow,
    ReadingRow,
    VersionRow,
)

_MAX_LISTED_PAGES = 50


async def relevant(
    session: AsyncSession, kind: str, chosen: ColumnElement[bool], most: int, *, newest_first: bool = False
) -> tuple[int, list[Notice]]:
    """(how many chosen notices of a kind are still true, the first ``most`` of them)."""
    query = _QUERIES[kind]().where(col(NoticeRow.kind) == kind, chosen)
    count = select(func.count()).select_from(query.with_only_columns(col(NoticeRow.id)).subquery())
    order = col(NoticeRow.id).desc() if newest_first else col(NoticeRow.id)
    rows = (await session.execute(query.order_by(order).limit(most))).all()
    return await session.scalar(count) or 0, [_NOTICES[kind](row) for row in rows]


def _live() -> Any:
    """Versions that answer in the notice's channel; what was deleted or replaced since is left out."""
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
    """Files that still cannot be read: what was deleted or replaced since is left out."""
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


def _folders() -> Any:
    """The last notice of each folder, unless people were told just that before: what came between is over."""
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


def _last_told() -> ScalarSelect[str | None]:
    """What people were last told of the notice's folder; nothing, too, when all was well then."""
    told = aliased(NoticeRow)
    return (
        select(col(told.text))
        .where(col(told.folder_id) == NoticeRow.folder_id, col(told.id) < NoticeRow.id)
        .where(col(told.told_in).is_not(None))
        .order_by(col(told.id).desc())
        .limit(1)
        .correlate(NoticeRow)
        .scalar_subquery()
    )


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


def _common(notice: NoticeRow, channel: ChannelRow) -> tuple[int, str, datetime, int, str, str | None]:
    return notice.id, notice.kind, notice.created_at, channel.id, channel.name, notice.text


def _numbers(pages: Collection[int]) -> tuple[int, ...]:
    return tuple(sorted(pages)[:_MAX_LISTED_PAGES])


_QUERIES: dict[str, Callable[[], Any]] = {"live": _live, "failed": _failed, "folder": _folders}
_NOTICES: dict[str, Callable[[Any], Notice]] = {
    "live": _live_notice,
    "failed": _failed_notice,
    "folder": _folder_notice,
}
