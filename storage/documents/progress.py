"""Progress of reading per rung, for the command line, the console and the log.

Everything, including the speed, is read from SQL in one snapshot, so that all processes report the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import (
    CTE,
    ColumnElement,
    Row,
    ScalarSelect,
    Select,
    case,
    false,
    func,
    literal,
    or_,
    select,
    true,
)
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from storage.clock import utc_now
from storage.documents.time_left import (
    MAX_QUICK_BYTES,
    QUICK_BYTES_PER_SECOND,
    QUICK_FILE_SECONDS,
    Span,
    Speed,
    Window,
    measure_speed,
    without_start,
)
from storage.models import Rung
from storage.queues.reading_queue import BEGUN_AT, BEGUN_FROM, BEGUN_SHARE, FULL_SECONDS, SHARE
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

WINDOWS = {Rung.QUICK: Window(60, 2), Rung.FULL: Window(240, 10, unreported=7)}


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
    speed = await _speed(session, Rung.QUICK, scope, now) if left else None
    return RungProgress(
        Rung.QUICK, counts.quick, counts.failed, counts.quick_pages, *_rates(left, counts.unread_work, speed)
    )


async def _full(
    session: AsyncSession, scope: ColumnElement[bool], counts: Row[Any], now: datetime
) -> RungProgress:
    """Return the full rung's progress; there is an estimate once the quick rung knows all pages."""
    left = counts.files - counts.full - counts.stuck
    speed = await _speed(session, Rung.FULL, scope, now) if left else None
    work = 0.0 if counts.unread_work else counts.work_left
    return RungProgress(Rung.FULL, counts.full, counts.stuck, counts.full_pages, *_rates(left, work, speed))


def _rates(left: int, work: float, speed: Speed | None) -> tuple[float | None, float | None]:
    """Return (pages per second, seconds left) of a rung; (None, 0) if no file is left."""
    if not left:
        return None, 0.0
    if speed is None:
        return None, None
    return speed.pages_per_second or None, float(work) / speed.work if work > 0 else None


async def _speed(
    session: AsyncSession, rung: Rung, scope: ColumnElement[bool], now: datetime
) -> Speed | None:
    """Return the throughput within the window; None if nothing was read in it."""
    spans = await _finished(session, rung, scope, now) + await _running(session, rung, scope, now)
    if rung is Rung.QUICK and any(one.work for one in spans):
        spans = without_start(spans)
    return measure_speed(spans, WINDOWS[rung], now) if spans else None


async def _finished(
    session: AsyncSession, rung: Rung, scope: ColumnElement[bool], now: datetime
) -> list[Span]:
    """Return readings that ended within the window, with the duration that they recorded."""
    recent = (
        select(
            col(ReadingRow.sha256),
            col(ReadingRow.pages),
            col(ReadingRow.done_at),
            col(ReadingRow.details)["milliseconds"].as_integer().label("took"),
            _full_seconds(ReadingRow).label("seconds"),
        )
        .where(col(ReadingRow.done_at) > now - timedelta(seconds=WINDOWS[rung].seconds))
        .where(col(ReadingRow.rung) == rung.value)
        .cte("recent")
        .prefix_with("MATERIALIZED")
    )
    found = await session.execute(
        _of_documents(recent, scope, recent.c.done_at, recent.c.pages, recent.c.took, recent.c.seconds)
    )
    return [
        Span(
            done_at - timedelta(milliseconds=took or 0),
            done_at,
            pages,
            quick if rung is Rung.QUICK else seconds,
        )
        for quick, done_at, pages, took, seconds in found.all()
    ]


async def _running(
    session: AsyncSession, rung: Rung, scope: ColumnElement[bool], now: datetime
) -> list[Span]:
    """Return readings that a worker has leased, with the pages done since it began: none of a quick one."""
    held = (
        select(col(ReadingRow.sha256), col(ReadingRow.pages_begun), col(ReadingRow.details))
        .where(col(ReadingRow.state) == "waiting", col(ReadingRow.rung) == rung.value)
        .where(col(ReadingRow.lease_until) > now)
        .cte("held")
        .prefix_with("MATERIALIZED")
    )
    found = await session.execute(_of_documents(held, scope, held.c.pages_begun, held.c.details))
    return [
        Span(
            datetime.fromisoformat(details[BEGUN_AT]),
            now,
            pages - details[BEGUN_FROM],
            (details.get(SHARE, 0.0) - details[BEGUN_SHARE]) * details.get(FULL_SECONDS, 0.0),
        )
        for _, pages, details in found.all()
        if details and BEGUN_AT in details
    ]


def _of_documents(readings: CTE, scope: ColumnElement[bool], *columns: Any) -> Select[*tuple[Any, ...]]:
    """Return (usual seconds of a quick reading, columns) of readings, once per document of that content."""
    return (
        select(_quick_seconds(col(BlobRow.size)), *columns)
        .select_from(readings)
        .join(BlobRow, col(BlobRow.sha256) == readings.c.sha256)
        .join(VersionRow, col(VersionRow.sha256) == readings.c.sha256)
        .join(DocumentRow, col(DocumentRow.id) == VersionRow.document_id)
        .where(scope)
    )


def _quick_seconds(size: Any) -> ColumnElement[float]:
    """Return the usual seconds of the quick reading of a file of so many bytes."""
    most = case((size > MAX_QUICK_BYTES, MAX_QUICK_BYTES), else_=size)
    seconds: ColumnElement[Any] = QUICK_FILE_SECONDS + most / float(QUICK_BYTES_PER_SECOND)
    return seconds


def _full_seconds(reading: Any) -> ColumnElement[float]:
    """Return the usual seconds of the full reading, from a reading's details; else one per page."""
    return func.coalesce(col(reading.details)[FULL_SECONDS].as_float(), reading.pages)


def _counts(scope: ColumnElement[bool]) -> Select[*tuple[Any, ...]]:
    """Return one row of sums over all documents."""
    one = _newest_versions(scope).c
    failed = one.is_refused | (~one.answers & one.has_failed & ~one.has_waiting & ~one.is_read)
    quick = ~failed & one.answers & ~one.has_quick_waiting
    full = quick & one.is_full & ~one.has_waiting
    stuck = failed | (~one.is_full & one.has_failed & ~one.has_waiting)

    def count(which: ColumnElement[bool]) -> ColumnElement[int]:
        return func.count().filter(which)

    def total(of: ColumnElement[Any], which: ColumnElement[bool]) -> ColumnElement[Any]:
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
        total(one.full_seconds * (1 - one.share), ~full & ~stuck).label("work_left"),
        total(one.unread_work, ~failed).label("unread_work"),
    )


def _newest_versions(scope: ColumnElement[bool]) -> CTE:
    """Return the state of each document's newest version; materialised, because it is used repeatedly."""
    is_full = is_newest_live & (col(live_reading.rung) == Rung.FULL.value)
    is_read = has_reading("done")
    pages_read = of_newest(col(ReadingRow.pages), "done")
    columns = {
        "answers": is_newest_live,
        "any_answers": col(live.id).is_not(None),
        "is_full": is_full,
        "is_refused": col(DocumentRow.reason).is_not(None),
        "is_read": case((is_newest_live, True), else_=is_read),
        "has_failed": case((is_full, False), else_=has_reading("failed")),
        "has_waiting": has_reading("waiting"),
        "has_quick_waiting": has_reading("waiting", also=col(ReadingRow.rung) == Rung.QUICK.value),
        "pages": case((is_newest_live, live_reading.pages), else_=func.coalesce(pages_read, 0)),
        "pages_begun": func.coalesce(_pages_begun(), 0),
        "full_seconds": case(
            (is_newest_live, _full_seconds(live_reading)),
            else_=func.coalesce(of_newest(_full_seconds(ReadingRow), "done"), 0.0),
        ),
        "share": func.coalesce(_share(), 0.0),
        "unread_work": case((is_newest_live | is_read, 0.0), else_=_quick_seconds(newest_size())),
    }
    rows = document_state.add_columns(*(value.label(name) for name, value in columns.items()))
    return rows.where(scope).cte("newest_versions").prefix_with("MATERIALIZED")


def _pages_begun() -> ScalarSelect[int]:
    """Return the pages that the full reading of the newest version has done, whatever its outcome.

    A running reading has precedence; a finished one counts as a whole before it is live, and a failed one
    keeps its count, so that displayed progress never decreases.
    """
    begun = func.max(col(ReadingRow.pages_begun))
    return _of_full_reading(begun, func.max(col(ReadingRow.pages)), begun)


def _share() -> ScalarSelect[float]:
    """Return the share of the full reading's work that is done; precedence as in ``_pages_begun``."""
    share = func.max(func.coalesce(col(ReadingRow.details)[SHARE].as_float(), 0.0))
    return _of_full_reading(share, func.max(literal(1.0)), share)


def _of_full_reading(waiting: Any, done: Any, other: Any) -> ScalarSelect[Any]:
    """Return an aggregate of the newest version's full readings, by the state of the most relevant one."""
    value = func.coalesce(
        waiting.filter(col(ReadingRow.state) == "waiting"),
        done.filter(col(ReadingRow.state) == "done"),
        other,
    )
    is_full = col(ReadingRow.rung) == Rung.FULL.value
    return select(value).where(col(ReadingRow.sha256) == newest.sha256, is_full).scalar_subquery()
