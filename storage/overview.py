"""One row per document with its state as people see it; the catalog lists these rows and counts them."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Row,
    ScalarSelect,
    Subquery,
    and_,
    case,
    exists,
    func,
    null,
    or_,
    select,
)
from sqlalchemy.orm import aliased
from sqlmodel import col

from storage.models import DocumentStatus, Rung
from storage.tables import ChannelRow, DocumentRow, PublicationRow, ReadingRow, VersionRow, utc_now

_newest = aliased(VersionRow, name="newest")
"""The version with the highest number, whether or not anything of it answers."""


def overview() -> Subquery:
    """All documents of all channels: what answers, the newest version, the state and its reason."""
    live = _live()
    failed = _exists_reading("failed") & ~_exists_reading("waiting", "done")
    rows = (
        select(
            col(DocumentRow.id).label("document_id"),
            col(DocumentRow.channel_id),
            col(ChannelRow.name).label("channel"),
            col(DocumentRow.file),
            func.coalesce(live.c.sha256, col(_newest.sha256), "").label("version"),
            live.c.rung.label("live_rung"),
            live.c.pages.label("live_pages"),
            func.coalesce(live.c.title, _of_newest(col(ReadingRow.title), "done"), "").label("title"),
            func.coalesce(live.c.pages, _of_newest(col(ReadingRow.pages), "done"), 0).label("pages"),
            _state(live, failed).label("state"),
            case((col(_newest.number) > live.c.number, True), else_=False).label("is_newer_coming"),
            failed.label("has_failed"),
            func.coalesce(
                col(DocumentRow.reason),
                _of_newest(col(ReadingRow.reason), "waiting", "failed"),
                _publishing_reason(),
            ).label("reason"),
        )
        .join(ChannelRow, col(ChannelRow.id) == DocumentRow.channel_id)
        .outerjoin(
            _newest, and_(col(_newest.document_id) == DocumentRow.id, col(_newest.number) == _last_number())
        )
        .outerjoin(
            live, (live.c.document_id == DocumentRow.id) & (live.c.channel_id == DocumentRow.channel_id)
        )
    )
    return rows.subquery("overview")


def status_of(row: Row[Any]) -> DocumentStatus:
    """A row of the overview as people see it."""
    return DocumentStatus(
        channel=row.channel,
        document=row.document_id,
        version=row.version,
        file=row.file,
        title=row.title or PurePosixPath(row.file).name,
        pages=row.pages,
        state=row.state,
        rung=Rung(row.live_rung) if row.state == "live" else None,
        reason=_reason(row),
    )


def _reason(row: Row[Any]) -> str | None:
    reason: str | None = row.reason
    if row.state != "live" or not row.is_newer_coming:
        return reason
    if row.has_failed:
        return f"a newer version could not be read: {reason}"
    return f"a newer version is on its way: {reason}" if reason else "a newer version is on its way"


def _live() -> Subquery:
    return (
        select(
            col(VersionRow.document_id),
            col(PublicationRow.channel_id),
            col(VersionRow.number),
            col(VersionRow.sha256),
            col(ReadingRow.rung),
            col(ReadingRow.title),
            col(ReadingRow.pages),
        )
        .select_from(PublicationRow)
        .join(VersionRow, col(VersionRow.id) == PublicationRow.version_id)
        .join(ReadingRow, col(ReadingRow.id) == PublicationRow.reading_id)
        .where(col(PublicationRow.state) == "live")
        .subquery("live")
    )


def _state(live: Subquery, failed: ColumnElement[bool]) -> ColumnElement[str]:
    """live while any version answers; reading while a worker is at it or it only needs publishing."""
    held = _exists_reading("waiting", held=True) | _exists_reading("done")
    return case(
        (col(DocumentRow.state) == "deleted", "deleted"),
        (live.c.sha256.is_not(None), "live"),
        (or_(col(DocumentRow.state) == "quarantined", failed), "quarantined"),
        (held, "reading"),
        else_="waiting",
    )


def _last_number() -> ScalarSelect[int]:
    version = aliased(VersionRow)
    numbers = select(func.max(col(version.number))).where(col(version.document_id) == DocumentRow.id)
    return numbers.correlate(DocumentRow).scalar_subquery()


def _exists_reading(*states: str, held: bool = False) -> ColumnElement[bool]:
    """Whether the newest version has a reading in one of these states, held by a worker right now or not."""
    found = exists().where(col(ReadingRow.sha256) == _newest.sha256, col(ReadingRow.state).in_(states))
    return found.where(col(ReadingRow.lease_until) > utc_now()) if held else found


def _of_newest(column: Any, *states: str) -> ScalarSelect[Any]:
    """A value of the newest version's latest reading in one of these states that has it."""
    return (
        select(column)
        .where(col(ReadingRow.sha256) == _newest.sha256, col(ReadingRow.state).in_(states))
        .where(column.is_not(null()))
        .order_by(col(ReadingRow.created_at).desc())
        .limit(1)
        .correlate(_newest)
        .scalar_subquery()
    )


def _publishing_reason() -> ScalarSelect[str | None]:
    """Why the newest version's publication waits."""
    return (
        select(col(PublicationRow.reason))
        .where(col(PublicationRow.version_id) == _newest.id, col(PublicationRow.state) == "pending")
        .limit(1)
        .correlate(_newest)
        .scalar_subquery()
    )
