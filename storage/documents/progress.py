"""How far everything has come, rung by rung: one computation for the command line, the console and the log.

All of it is read from SQL at one moment, the speed too: whoever asks, in whatever process, gets the same.
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

# How far back a rung's speed is measured: long enough for a few files, short enough to follow a change.
WINDOWS = {Rung.QUICK: timedelta(seconds=20), Rung.FULL: timedelta(seconds=120)}
# Seconds; a speed over less would be chance.
MIN_SPAN_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class RungProgress:
    """How far the newest versions of the files have come on one rung."""

    rung: Rung
    # Files whose newest version answers at this rung or a better one.
    files_done: int
    # Files whose newest version never will.
    files_failed: int
    pages_done: int
    # Over the last seconds; None when nothing is left, or too little was done to say.
    pages_per_second: float | None = None
    # 0 when nothing is left; None while nobody can know.
    seconds_left: float | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a channel, a folder or everything has come; deleted documents do not count."""

    files: int
    # Files of which some version answers, the newest or an older one.
    files_answering: int
    # Pages of the newest versions, as far as they are known: a file's are known when it was read.
    pages: int
    quick: RungProgress
    # None: reading stops at quick.
    full: RungProgress | None

    @property
    def quarantined(self) -> int:
        """Files whose newest bytes cannot be read."""
        return self.quick.files_failed

    @property
    def waiting(self) -> int:
        """Files whose newest version does not answer yet but may."""
        return self.files - self.quick.files_done - self.quick.files_failed

    def with_arriving(self, files: int) -> Progress:
        """Return the same with so many files more that were not opened yet."""
        if not files:
            return self
        quick, full = replace(self.quick, seconds_left=None), self.full
        full = full and replace(full, seconds_left=None)
        return replace(self, files=self.files + files, quick=quick, full=full)

    @property
    def rungs(self) -> tuple[RungProgress, ...]:
        """The rungs that are climbed, from the lowest."""
        return (self.quick, self.full) if self.full else (self.quick,)

    def has_reached(self, rung: Rung) -> bool:
        """True if every file answers at this rung, or never will."""
        climbed = self.rungs[:1] if rung is Rung.QUICK else self.rungs
        return all(one.files_done + one.files_failed == self.files for one in climbed)


class _Speed(NamedTuple):
    """What one rung achieves within its window; 0 when too little was done to say."""

    # Pages per second.
    pages: float = 0.0
    # Bytes per second.
    size: float = 0.0


def in_channel(channel_id: int) -> ColumnElement[bool]:
    """Return the documents of one channel."""
    return col(DocumentRow.channel_id) == channel_id


def in_folder(folder_id: int, file: str | None = None) -> ColumnElement[bool]:
    """Return the documents of one folder, or the one of a file in it."""
    folder = col(DocumentRow.folder_id) == folder_id
    return folder if file is None else folder & (col(DocumentRow.file) == file)


async def measure_progress(
    session: AsyncSession,
    scopes: Sequence[ColumnElement[bool]] | None = None,
    stops_at: Rung = Rung.FULL,
    now: datetime | None = None,
) -> Progress:
    """Count and time the documents that lie in one of these scopes; None: all there are.

    Each document is visited once, and what decides little is looked up only where it decides: 10,000
    documents cost tens of milliseconds.
    """
    scope = (col(DocumentRow.state) != "deleted") & (true() if scopes is None else or_(false(), *scopes))
    counts = (await session.execute(_counts(scope))).one()
    now = now or utc_now()
    return Progress(
        counts.files,
        counts.answering,
        counts.pages,
        await _quick(session, scope, counts, now),
        await _full(session, scope, counts, now) if stops_at is Rung.FULL else None,
    )


async def _quick(
    session: AsyncSession, scope: ColumnElement[bool], counts: Row[Any], now: datetime
) -> RungProgress:
    """What is left is counted in bytes, for its pages are not known yet."""
    left = counts.files - counts.quick - counts.failed
    speed = await _speed(session, Rung.QUICK, scope, now) if left else _Speed()
    seconds = _seconds(counts.unread_bytes, speed.size) if left else 0.0
    return RungProgress(
        Rung.QUICK, counts.quick, counts.failed, counts.quick_pages, speed.pages or None, seconds
    )


async def _full(
    session: AsyncSession, scope: ColumnElement[bool], counts: Row[Any], now: datetime
) -> RungProgress:
    """What is left is counted in pages, once the quick rung knows all of them."""
    left = counts.files - counts.full - counts.stuck
    speed = await _speed(session, Rung.FULL, scope, now) if left else _Speed()
    seconds = _seconds(0 if counts.unread_bytes else counts.pages_left, speed.pages) if left else 0.0
    return RungProgress(Rung.FULL, counts.full, counts.stuck, counts.full_pages, speed.pages or None, seconds)


def _seconds(left: float, per_second: float) -> float | None:
    return float(left) / per_second if left > 0 and per_second > 0 else None


async def _speed(session: AsyncSession, rung: Rung, scope: ColumnElement[bool], now: datetime) -> _Speed:
    """What was read within the window, by finished readings and by those that are on their way."""
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
    """When one reading was at work, and what it did in that time."""

    start: datetime
    end: datetime
    pages: int
    # Bytes of its file.
    size: int

    def share_after(self, moment: datetime) -> float:
        """How much of the work came after a moment; one without a length happened at its end."""
        if self.start < self.end:
            return max(0.0, (self.end - max(self.start, moment)) / (self.end - self.start))
        return float(self.end > moment)


async def _finished(
    session: AsyncSession, rung: Rung, scope: ColumnElement[bool], now: datetime
) -> list[_Span]:
    """Readings that ended within the window, each as long as it says that it took."""
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
    """Readings that a worker holds, with the pages that they have done since it began."""
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
    """(size of the content, columns) of some readings, once for each document that has the content."""
    return (
        select(col(BlobRow.size), *columns)
        .select_from(readings)
        .join(BlobRow, col(BlobRow.sha256) == readings.c.sha256)
        .join(VersionRow, col(VersionRow.sha256) == readings.c.sha256)
        .join(DocumentRow, col(DocumentRow.id) == VersionRow.document_id)
        .where(scope)
    )


def _counts(scope: ColumnElement[bool]) -> Select[*tuple[Any, ...]]:
    """One row of sums over all documents."""
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
    """What is known of each document's newest version; computed once, however often it is used."""
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
    """Pages of the newest version that its full reading has done, whatever became of it since.

    The one that is on its way counts first; one that is finished counts as a whole before it answers,
    and one that failed keeps what it had: pages that were shown as done stay so.
    """
    begun = func.max(col(ReadingRow.pages_begun))
    pages = func.coalesce(
        begun.filter(col(ReadingRow.state) == "waiting"),
        func.max(col(ReadingRow.pages)).filter(col(ReadingRow.state) == "done"),
        begun,
    )
    is_full = col(ReadingRow.rung) == Rung.FULL.value
    return select(pages).where(col(ReadingRow.sha256) == newest.sha256, is_full).scalar_subquery()
