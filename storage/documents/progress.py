"""Progress of reading per rung, for the command line, the console and the log.

Everything, including the speed, is read from SQL in one snapshot, so that all processes report the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import CTE, ColumnElement, Row, ScalarSelect, Select, case, false, func, or_, select, true
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from storage.clock import utc_now
from storage.models import Rung
from storage.queues.reading_queue import BEGUN_AT, BEGUN_FROM
from storage.sql.document_state import (
    document_state,
    has_reading,
    is_newest_live,
    live,
    live_reading,
    newest,
    newest_size,
    of_newest,
)
from storage.sql.tables import BlobRow, DocumentRow, ReadingRow, VersionRow

# Window for measuring speed: long enough for a few files, short enough to follow changes.
WINDOWS = {Rung.QUICK: timedelta(seconds=20), Rung.FULL: timedelta(seconds=120)}
# Shorter spans give meaningless speeds.
MIN_SPAN_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class RungProgress:
    """Progress of the files' newest versions on one rung."""

    rung: Rung
    # Files whose newest version is live at this rung or a better one.
    files_done: int
    # Files whose newest version never will be.
    files_failed: int
    pages_done: int
    # Average over the window; None if nothing is left, or too little was done to tell.
    pages_per_second: float | None = None
    # Estimated time to completion; 0 if nothing is left, None if unknown.
    seconds_left: float | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a channel, a folder or everything; deleted documents do not count."""

    files: int
    # Files with a live version, newest or older.
    files_answering: int
    # Known pages of the newest versions; a file's number is known once it was read.
    pages: int
    quick: RungProgress
    # None if reading stops at quick.
    full: RungProgress | None

    @property
    def quarantined(self) -> int:
        """Files whose newest content cannot be read."""
        return self.quick.files_failed

    @property
    def waiting(self) -> int:
        """Files whose newest version is not live yet but may be."""
        return self.files - self.quick.files_done - self.quick.files_failed

    def with_arriving(self, files: int) -> Progress:
        """Return the progress with ``files`` unopened files added."""
        if not files:
            return self
        quick, full = replace(self.quick, seconds_left=None), self.full
        full = full and replace(full, seconds_left=None)
        return replace(self, files=self.files + files, quick=quick, full=full)

    @property
    def rungs(self) -> tuple[RungProgress, ...]:
        """The rungs that are read, from the lowest."""
        return (self.quick, self.full) if self.full else (self.quick,)

    def has_reached(self, rung: Rung) -> bool:
        """True if every file is live at this rung, or never will be."""
        climbed = self.rungs[:1] if rung is Rung.QUICK else self.rungs
        return all(one.files_done + one.files_failed == self.files for one in climbed)


class _Speed(NamedTuple):
    """Throughput of a rung within its window; 0 if too little was done to tell."""

    # Per second.
    pages: float = 0.0
    # Bytes per second.
    size: float = 0.0


def in_channel(channel_id: int) -> ColumnElement[bool]:
    """Return the condition for the documents of a channel."""
    return col(DocumentRow.channel_id) == channel_id


def in_folder(folder_id: int, file: str | None = None) -> ColumnElement[bool]:
    """Return the condition for the documents of a folder, or of one file in it."""
    folder = col(DocumentRow.folder_id) == folder_id
    return folder if file is None else folder & (col(DocumentRow.file) == file)


async def measure_progress(
    session: AsyncSession,
    scopes: Sequence[ColumnElement[bool]] | None = None,
    last_rung: Rung = Rung.FULL,
    now: datetime | None = None,
) -> Progress:
    """Measure the progress of the documents in any of these scopes; None: of all documents.

    Visits each document once and evaluates costly conditions only where they matter: 10,000 documents take
    tens of milliseconds.
    """
    scope = (col(DocumentRow.state) != "deleted") & (true() if scopes is None else or_(false(), *scopes))
    counts = (await session.execute(_counts(scope))).one()
    now = now or utc_now()
    return Progress(
        counts.files,
        counts.answering,
        counts.pages,
        await _quick(session, scope, counts, now),
        await _full(session, scope, counts, now) if last_rung is Rung.FULL else None,
    )


async def _quick(
    session: AsyncSession, scope: ColumnElement[bool], counts: Row[Any], now: datetime
) -> RungProgress:
    """Return the quick rung's progress; the estimate uses bytes, because page numbers are not known yet."""
    left = counts.files - counts.quick - counts.failed
    speed = await _speed(session, Rung.QUICK, scope, now) if left else _Speed()
    seconds = _seconds(counts.unread_bytes, speed.size) if left else 0.0
    return RungProgress(
        Rung.QUICK, counts.quick, counts.failed, counts.quick_pages, speed.pages or None, seconds
    )


async def _full(
    session: AsyncSession, scope: ColumnElement[bool], counts: Row[Any], now: datetime
) -> RungProgress:
    """Return the full rung's progress; the estimate uses pages, once the quick rung knows all of them."""
    left = counts.files - counts.full - counts.stuck
    speed = await _speed(session, Rung.FULL, scope, now) if left else _Speed()
    seconds = _seconds(0 if counts.unread_bytes else counts.pages_left, speed.pages) if left else 0.0
    return RungProgress(Rung.FULL, counts.full, counts.stuck, counts.full_pages, speed.pages or None, seconds)


def _seconds(left: float, per_second: float) -> float | None:
    return float(left) / per_second if left > 0 and per_second > 0 else None


async def _speed(session: AsyncSession, rung: Rung, scope: ColumnElement[bool], now: datetime) -> _Speed:
    """Return the throughput within the window, of finished and running readings."""
    spans = await _finished(session, rung, scope, now) + await _running(session, rung, scope, now)
    since = max(now - WINDOWS[rung], min((one.start for one in spans), default=now))
    seconds = (now - since).total_seconds()
    if seconds < MIN_SPAN_SECONDS:
        return _Speed()
    shares = [(one, one.share_after(since)) for one in spans]
    return _Speed(
        sum(one.pages * share for one, share in shares) / seconds,
        sum(one.size * share for one, share in shares) / seconds,
    )


class _Span(NamedTuple):
    """Time and amount of one reading's work."""

    start: datetime
    end: datetime
    pages: int
    # Size of the file in bytes.
    size: int

    def share_after(self, moment: datetime) -> float:
        """Return the fraction of the work done after a moment; work without duration happened at its end."""
        if self.start < self.end:
            return max(0.0, (self.end - max(self.start, moment)) / (self.end - self.start))
        return float(self.end > moment)


async def _finished(
    session: AsyncSession, rung: Rung, scope: ColumnElement[bool], now: datetime
) -> list[_Span]:
    """Return readings that ended within the window, with the duration that they recorded."""
    recent = (
        select(
            col(ReadingRow.sha256),
            col(ReadingRow.pages),
            col(ReadingRow.done_at),
            col(ReadingRow.details)["milliseconds"].as_integer().label("took"),
        )
        .where(col(ReadingRow.done_at) > now - WINDOWS[rung], col(ReadingRow.rung) == rung.value)
        .cte("recent")
        .prefix_with("MATERIALIZED")
    )
    found = await session.execute(
        _of_documents(recent, scope, recent.c.done_at, recent.c.pages, recent.c.took)
    )
    return [
        _Span(done_at - timedelta(milliseconds=took or 0), done_at, pages, size)
        for size, done_at, pages, took in found.all()
    ]


async def _running(
    session: AsyncSession, rung: Rung, scope: ColumnElement[bool], now: datetime
) -> list[_Span]:
    """Return readings that a worker has leased, with the pages done since it began."""
    held = (
        select(col(ReadingRow.sha256), col(ReadingRow.pages_begun), col(ReadingRow.details))
        .where(col(ReadingRow.state) == "waiting", col(ReadingRow.rung) == rung.value)
        .where(col(ReadingRow.lease_until) > now, col(ReadingRow.pages_begun) > 0)
        .cte("held")
        .prefix_with("MATERIALIZED")
    )
    found = await session.execute(_of_documents(held, scope, held.c.pages_begun, held.c.details))
    return [
        _Span(datetime.fromisoformat(details[BEGUN_AT]), now, pages - details[BEGUN_FROM], size)
        for size, pages, details in found.all()
        if details and BEGUN_AT in details and pages > details[BEGUN_FROM]
    ]


def _of_documents(readings: CTE, scope: ColumnElement[bool], *columns: Any) -> Select[*tuple[Any, ...]]:
    """Return (content size, columns) of readings, once per document with that content."""
    return (
        select(col(BlobRow.size), *columns)
        .select_from(readings)
        .join(BlobRow, col(BlobRow.sha256) == readings.c.sha256)
        .join(VersionRow, col(VersionRow.sha256) == readings.c.sha256)
        .join(DocumentRow, col(DocumentRow.id) == VersionRow.document_id)
        .where(scope)
    )


def _counts(scope: ColumnElement[bool]) -> Select[*tuple[Any, ...]]:
    """Return one row of sums over all documents."""
    one = _newest_versions(scope).c
    failed = one.is_refused | (~one.answers & one.has_failed & ~one.has_waiting & ~one.is_read)
    quick = ~failed & one.answers & ~one.has_quick_waiting
    full = quick & one.is_full & ~one.has_waiting
    stuck = failed | (~one.is_full & one.has_failed & ~one.has_waiting)

    def count(which: ColumnElement[bool]) -> ColumnElement[int]:
        return func.count().filter(which)

    def total(of: ColumnElement[int], which: ColumnElement[bool]) -> ColumnElement[int]:
        return func.coalesce(func.sum(of).filter(which), 0)

    return select(
        func.count().label("files"),
        count(one.any_answers).label("answering"),
        count(quick).label("quick"),
        count(full).label("full"),
        count(failed).label("failed"),
        count(stuck).label("stuck"),
        total(one.pages, true()).label("pages"),
        total(one.pages, quick).label("quick_pages"),
        (total(one.pages, full) + total(one.pages_begun, ~full)).label("full_pages"),
        total(one.pages - one.pages_begun, ~full & ~stuck).label("pages_left"),
        total(one.unread_bytes, ~failed).label("unread_bytes"),
    )


def _newest_versions(scope: ColumnElement[bool]) -> CTE:
    """Return the state of each document's newest version; materialised, because it is used repeatedly."""
    is_full = is_newest_live & (col(live_reading.rung) == Rung.FULL.value)
    pages_read = of_newest(col(ReadingRow.pages), "done")
    columns = {
        "answers": is_newest_live,
        "any_answers": col(live.id).is_not(None),
        "is_full": is_full,
        "is_refused": col(DocumentRow.reason).is_not(None),
        "is_read": case((is_newest_live, True), else_=has_reading("done")),
        "has_failed": case((is_full, False), else_=has_reading("failed")),
        "has_waiting": has_reading("waiting"),
        "has_quick_waiting": has_reading("waiting", also=col(ReadingRow.rung) == Rung.QUICK.value),
        "pages": case((is_newest_live, live_reading.pages), else_=func.coalesce(pages_read, 0)),
        "pages_begun": func.coalesce(_pages_begun(), 0),
        "unread_bytes": case((is_newest_live, 0), else_=newest_size()),
    }
    rows = document_state.add_columns(*(value.label(name) for name, value in columns.items()))
    return rows.where(scope).cte("newest_versions").prefix_with("MATERIALIZED")


def _pages_begun() -> ScalarSelect[int]:
    """Return the pages that the full reading of the newest version has done, whatever its outcome.

    A running reading has precedence; a finished one counts as a whole before it is live, and a failed one
    keeps its count, so that displayed progress never decreases.
    """
    begun = func.max(col(ReadingRow.pages_begun))
    pages = func.coalesce(
        begun.filter(col(ReadingRow.state) == "waiting"),
        func.max(col(ReadingRow.pages)).filter(col(ReadingRow.state) == "done"),
        begun,
    )
    is_full = col(ReadingRow.rung) == Rung.FULL.value
    return select(pages).where(col(ReadingRow.sha256) == newest.sha256, is_full).scalar_subquery()
