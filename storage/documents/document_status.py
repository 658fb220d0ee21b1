"""Overview: one row per document with its displayed state, for the catalog's lists and counts.

Also remarks: content of a live document that could not be read, and why.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any

from sqlalchemy import ColumnElement, Row, ScalarSelect, Select, Subquery, case, func, or_, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from storage.models import DocumentStatus, Rung, load_metadata
from storage.sql.document_state import (
    details_of,
    document_state,
    has_reading,
    is_held,
    live,
    live_reading,
    live_version,
    newest,
    of_newest,
)
from storage.sql.tables import ChannelRow, DocumentRow, FolderRow, PublicationRow, ReadingRow, VersionRow

MAX_RANGES = 6


def remarks_of(details: Mapping[str, Any]) -> Iterator[str]:
    """Yield remarks on a reading, from its details."""
    unread, waiting = details.get("unread_pages") or [], details.get("pages_for_ocr") or []
    silent = [page for page in details.get("pages_without_text") or [] if page not in {*unread, *waiting}]
    if waiting:
        yield f"{_pages(waiting)} {'is' if len(waiting) == 1 else 'are'} being read by OCR"
    if by_ocr := details.get("ocr_pages"):
        was = "was" if len(by_ocr) == 1 else "were"
        yield f"{_pages(by_ocr)} {was} read by OCR: compare numbers with the page"
    if unread:
        yield f"{_pages(unread)} could not be read"
    if silent:
        holds, are = ("holds", "it is") if len(silent) == 1 else ("hold", "they are")
        yield f"{_pages(silent)} {holds} no text: if {are} scanned, run OCR over the file and drop it again"
    if count := details.get("undescribed_figures"):
        yield f"{count} figures have no description: the vision endpoint did not answer"
    if count := details.get("struck_words"):
        yield f"{count} struck-through word{' was' if count == 1 else 's were'} skipped"
    if details.get("is_repaired"):
        yield "the file is damaged: some content may be missing"


def _pages(numbers: Sequence[int]) -> str:
    """Return ``page 3`` or ``pages 1-4, 7, 9``, with at most ``MAX_RANGES`` ranges."""
    ranges = list(_ranges(sorted(numbers)))
    shown = ", ".join(ranges[:MAX_RANGES])
    more = f" and {len(ranges) - MAX_RANGES} more places" if len(ranges) > MAX_RANGES else ""
    return f"page{'s' if len(numbers) > 1 else ''} {shown}{more}"


def _ranges(numbers: Sequence[int]) -> Iterator[str]:
    start = numbers[0]
    for last, following in pairwise([*numbers, numbers[-1] + 2]):
        if following > last + 1:
            yield str(start) if start == last else f"{start}-{last}"
            start = following


@cache
def overview() -> Subquery:
    """Return all documents of all channels: live version, newest version, state and reason.

    Cached, because building the statement takes as long as executing it.
    """
    failed = _has_failed()
    why_unread = of_newest(col(ReadingRow.reason), "waiting", "failed")
    rows = document_state.add_columns(
        col(DocumentRow.id).label("document_id"),
        col(DocumentRow.channel_id).label("channel_id"),
        col(ChannelRow.name).label("channel"),
        col(newest.id).label("newest_id"),
        col(DocumentRow.folder_id).label("folder_id"),
        col(DocumentRow.file).label("file"),
        func.coalesce(live_version.sha256, newest.sha256, "").label("version"),
        func.coalesce(live_version.id, newest.id).label("version_id"),
        col(live_reading.rung).label("live_rung"),
        col(live_reading.pages).label("live_pages"),
        func.coalesce(live_reading.title, _of_open("title"), "").label("title"),
        func.coalesce(live_reading.pages, _of_open("pages"), 0).label("pages"),
        _state(failed).label("state"),
        func.coalesce(col(newest.number) > live_version.number, False).label("is_newer_coming"),
        (failed | func.coalesce(newest.locked, False)).label("has_failed"),
        col(DocumentRow.reason).is_not(None).label("has_reason"),
        func.coalesce(DocumentRow.reason, why_unread, _publishing_reason()).label("reason"),
        details_of(live_version).label("details"),
        col(live_version.corrected).label("corrected"),
        func.coalesce(live_version.number, 0).label("number"),
        col(live_version.created_at).label("arrived_at"),
        (has_reading("waiting") & (col(live_reading.rung) == Rung.FULL.value)).label("is_read_again"),
    )
    return rows.join(ChannelRow, col(ChannelRow.id) == DocumentRow.channel_id).subquery("overview")


def count_quarantined() -> Select[Any]:
    """Count the documents of all channels that the overview calls quarantined.

    Visits only documents that were refused or have a failed reading.
    """
    refused = select(col(DocumentRow.id)).where(col(DocumentRow.state) == "quarantined")
    unread = (
        select(col(VersionRow.document_id))
        .join(ReadingRow, col(ReadingRow.sha256) == VersionRow.sha256)
        .where(col(ReadingRow.state) == "failed")
    )
    return document_state.add_columns(func.count().label("count_of")).where(
        col(DocumentRow.id).in_(refused.union(unread)), _state(_has_failed()) == "quarantined"
    )


def recent_documents(channel_id: int, limit: int) -> Select[Any]:
    """Return the overview's rows for unreadable and newest documents, at most ``limit`` of each.

    A channel may hold thousands.
    """
    here = col(DocumentRow.channel_id) == channel_id
    of_versions = select(col(VersionRow.document_id)).join(
        DocumentRow, (col(DocumentRow.id) == VersionRow.document_id) & here
    )
    refused = select(col(DocumentRow.id)).where(here, col(DocumentRow.state) == "quarantined").limit(limit)
    failed = (
        of_versions.join(ReadingRow, col(ReadingRow.sha256) == VersionRow.sha256)
        .where(col(ReadingRow.state) == "failed")
        .limit(limit)
    )
    newest = of_versions.order_by(col(VersionRow.id).desc()).limit(limit)
    chosen = [select(some.subquery().c[0]) for some in (refused, failed, newest)]
    seen = overview()
    ids = or_(*(seen.c.document_id.in_(some) for some in chosen))
    return select(seen).where(seen.c.channel_id == channel_id, seen.c.state != "deleted", ids)


@dataclass(frozen=True, slots=True)
class FolderState:
    """State of a folder that affects its documents."""

    id: int
    problem: str | None
    # Ids of documents whose deletion needs an admin's confirmation.
    asked: frozenset[str]


async def folder_states(session: AsyncSession, *channels: int) -> dict[int, FolderState]:
    """Return folder id -> state for the folders of channels."""
    rows = await session.scalars(select(FolderRow).where(col(FolderRow.channel_id).in_(channels)))
    return {row.id: FolderState(row.id, row.problem, frozenset(row.asked or ())) for row in rows}


def status_of(row: Row[Any], folder: FolderState | None = None) -> DocumentStatus:
    """Convert a row of the overview to a status, with remarks on its folder."""
    reasons = [reason for reason in _reasons(row, folder) if reason]
    # Joined with semicolons: only the last reason keeps its full stop.
    reason = "; ".join([*(one.rstrip(".") for one in reasons[:-1]), *reasons[-1:]])
    return DocumentStatus(
        channel=row.channel,
        document=row.document_id,
        version=row.version,
        file=row.file,
        title=row.title or PurePosixPath(row.file).name,
        pages=row.pages,
        state=row.state,
        rung=Rung(row.live_rung) if row.state == "live" else None,
        reason=reason or None,
        metadata=load_metadata(row.details or {}, row.corrected or {}),
        number=row.number,
        arrived_at=row.arrived_at,
        can_retry=row.state != "deleted" and (row.has_failed or row.has_reason),
        version_id=row.version_id,
    )


def _reasons(row: Row[Any], folder: FolderState | None) -> Iterator[str | None]:
    yield _reason(row)
    if row.state == "deleted":
        return
    if folder and str(row.document_id) in folder.asked:
        yield f"its file disappeared; confirm the deletion with `footnote folders approve {folder.id}`"
    elif folder and folder.problem and not folder.asked:
        yield f"its folder has a problem: {folder.problem}"
    if row.state == "live" and not row.is_newer_coming:
        yield "being re-read: the current version stays available" if row.is_read_again else None
        yield from remarks_of(row.details or {})


def _reason(row: Row[Any]) -> str | None:
    reason: str | None = row.reason
    if row.state != "live" or not row.is_newer_coming:
        return reason
    if row.has_failed:
        return f"a newer version could not be read: {reason}"
    return f"a newer version is being processed: {reason}" if reason else "a newer version is being processed"


def _has_failed() -> ColumnElement[bool]:
    """True if no reading of the newest version succeeded, and none is pending."""
    return has_reading("failed") & ~has_reading("waiting", "done")


def _state(failed: ColumnElement[bool]) -> ColumnElement[str]:
    """Return the state: live if any version is; reading if leased, or read but not published."""
    held = has_reading("waiting", also=is_held) | has_reading("done")
    return case(
        (col(DocumentRow.state) == "deleted", "deleted"),
        (col(live.id).is_not(None), "live"),
        ((col(DocumentRow.state) == "quarantined") | failed, "quarantined"),
        (held, "reading"),
        else_="waiting",
    )


def _of_open(column: str) -> ScalarSelect[Any]:
    """Return a column of the newest version's reading; NULL if it is locked."""
    # Another folder may own its password: its text stays secret until it is live.
    is_locked = func.coalesce(col(ReadingRow.details)["is_locked"].as_boolean(), False)
    return of_newest(getattr(ReadingRow, column), "done", also=~is_locked)


def _publishing_reason() -> ScalarSelect[str | None]:
    """Return the error of the newest version's pending publication."""
    return (
        select(col(PublicationRow.reason))
        .where(col(PublicationRow.version_id) == newest.id, col(PublicationRow.state) == "pending")
        .limit(1)
        .correlate(newest)
        .scalar_subquery()
    )
