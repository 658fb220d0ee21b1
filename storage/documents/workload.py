"""Pending work by state and age, from a single statement whose counts are index-only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Select, case, func, literal, select, union_all
from sqlmodel import col

from storage.clock import utc_now
from storage.documents.document_status import count_quarantined
from storage.sql.columns import LeaseColumns, UtcDateTime
from storage.sql.database import Database
from storage.sql.tables import (
    DocumentRow,
    InboxRow,
    NoticeRow,
    OutboxRow,
    PublicationRow,
    ReadingRow,
    WebPageRow,
)


@dataclass(frozen=True, slots=True)
class WorkCount:
    """Number of rows of one table in one state."""

    # ``inbox``, ``outbox``, ``reading``, ``publication``, ``notice``, ``document`` or ``web_page``.
    table: str
    # State column; for web pages ``read``, ``failing`` or ``waiting``.
    #
    # Documents are ``quarantined`` as displayed; ``present`` are all others except deleted ones.
    state: str
    # For readings and publications; '' elsewhere.
    rung: str
    count: int
    # Age of the oldest row; 0 where it does not matter.
    oldest_seconds: float
    # Rows with a valid lease.
    leased: int


async def read_workload(database: Database) -> list[WorkCount]:
    """Return all counts, from one snapshot.

    Finished questions and messages are left out: they are stored for weeks and are not work.

    Raises:
        DatabaseUnavailable: the database does not answer.
    """
    now, rows = utc_now(), await database.rows(_counts())
    counts = [
        WorkCount(row.table, row.state, row.rung, row.count_of, _age(row.oldest, now), row.held or 0)
        for row in rows
    ]
    return [one for one in counts if one.table not in _DOCUMENT_TABLES] + list(_documents(counts))


_QUARANTINED = "quarantined document"
_DOCUMENT_TABLES = ("document", _QUARANTINED)


def _documents(counts: list[WorkCount]) -> Iterator[WorkCount]:
    """Yield documents by displayed state; the table calls most quarantined ones present."""
    stored = {one.state: one.count for one in counts if one.table == "document"}
    deleted = stored.pop("deleted", 0)
    quarantined = sum(one.count for one in counts if one.table == _QUARANTINED)
    seen = {"present": sum(stored.values()) - quarantined, "quarantined": quarantined, "deleted": deleted}
    for state, count in seen.items():
        if count:
            yield WorkCount("document", state, "", count, 0.0, 0)


def _age(since: datetime | None, now: datetime) -> float:
    return max((now - since).total_seconds(), 0.0) if since else 0.0


def _counts() -> Any:
    """Return the statement; it visits only pending rows, for age and lease, and counts others by index."""
    page = case(
        (col(WebPageRow.error).is_not(None), "failing"),
        (col(WebPageRow.fetched_at).is_(None), "waiting"),
        else_="read",
    )
    is_new, is_pending = col(ReadingRow.state) == "waiting", col(PublicationRow.state) == "pending"
    reading, publication = ("reading", ReadingRow), ("publication", PublicationRow)
    return union_all(
        _waiting("inbox", InboxRow).where(col(InboxRow.state) == "waiting"),
        _waiting("outbox", OutboxRow).where(col(OutboxRow.state) != "delivered"),
        _waiting("notice", NoticeRow).where(col(NoticeRow.state).in_(("waiting", "posting"))),
        _waiting(*reading, ReadingRow.rung).where(is_new),
        _count(*reading, ReadingRow.state, ReadingRow.rung).where(~is_new),
        _waiting(*publication, PublicationRow.rung).where(is_pending),
        _count(*publication, PublicationRow.state, PublicationRow.rung).where(~is_pending),
        _count("document", DocumentRow, DocumentRow.state),
        _quarantined(),
        _count("web_page", WebPageRow, page),
    )


def _quarantined() -> Select[Any]:
    found = count_quarantined().subquery()
    return select(
        literal(_QUARANTINED).label("table"),
        literal("").label("state"),
        literal("").label("rung"),
        found.c.count_of,
        literal(None, UtcDateTime()).label("oldest"),
        literal(0).label("held"),
    )


def _waiting(name: str, table: Any, rung: Any = None) -> Select[Any]:
    held: Any = literal(0)
    if issubclass(table, LeaseColumns):
        held = func.count().filter(col(table.lease_until) > utc_now())
    return _count(name, table, table.state, rung, oldest=func.min(col(table.created_at)), held=held)


def _count(
    name: str, table: Any, state: Any, rung: Any = None, *, oldest: Any = None, held: Any = None
) -> Select[Any]:
    groups = [state] if rung is None else [state, rung]
    chosen = select(
        literal(name).label("table"),
        state.label("state"),
        (literal("") if rung is None else rung).label("rung"),
        func.count().label("count_of"),
        (literal(None, UtcDateTime()) if oldest is None else oldest).label("oldest"),
        (literal(0) if held is None else held).label("held"),
    )
    return chosen.select_from(table).group_by(*groups)
