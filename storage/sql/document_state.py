"""State of a document: its newest version, its live publication, and the progress of its readings.

Overview, progress and ingestion add their columns to the one select ``document_state``. Queries about the
newest version are correlated subqueries, because SQLite scans a derived table once per document.
"""

from __future__ import annotations

from functools import cache
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    ScalarSelect,
    Select,
    SQLColumnExpression,
    bindparam,
    exists,
    func,
    null,
    select,
    true,
)
from sqlalchemy.orm import aliased
from sqlmodel import col

from storage.clock import utc_now
from storage.sql.columns import UtcDateTime
from storage.sql.tables import BlobRow, DocumentRow, PublicationRow, ReadingRow, VersionRow

_ANY = true()

# The version with the highest number, live or not.
newest = aliased(VersionRow, name="newest")
# The publication that answers: at most one among all versions, because going live retires the others.
live = aliased(PublicationRow, name="live")
live_version = aliased(VersionRow, name="live_version")
live_reading = aliased(ReadingRow, name="live_reading")

# True while a worker holds the reading.
is_held = col(ReadingRow.lease_until) > bindparam("now", callable_=utc_now, type_=UtcDateTime())
# True if the newest version is the live one.
is_newest_live = func.coalesce(col(live.version_id) == newest.id, False)


@cache  # creating an alias takes longer than running the query
def newest_number(of: type[DocumentRow] | type[VersionRow] = DocumentRow) -> ScalarSelect[int | None]:
    """Return the number of the newest version of a document, or of a version's document."""
    other = aliased(VersionRow)
    document = col(DocumentRow.id) if of is DocumentRow else col(VersionRow.document_id)
    numbers = select(func.max(other.number)).where(col(other.document_id) == document)
    return numbers.correlate(of).scalar_subquery()


def _live_id() -> ScalarSelect[UUID]:
    publication, version = aliased(PublicationRow), aliased(VersionRow)
    return (
        select(col(publication.id))
        .join(version, col(version.id) == publication.version_id)
        .where(col(version.document_id) == DocumentRow.id, col(publication.state) == "live")
        .where(col(publication.channel_id) == DocumentRow.channel_id)
        .limit(1)
        .correlate(DocumentRow)
        .scalar_subquery()
    )


# One row per document, including deleted ones; no columns yet.
document_state: Select[Any] = (
    select()
    .select_from(DocumentRow)
    .outerjoin(newest, (col(newest.document_id) == DocumentRow.id) & (col(newest.number) == newest_number()))
    .outerjoin(live, col(live.id) == _live_id())
    .outerjoin(live_version, col(live_version.id) == live.version_id)
    .outerjoin(live_reading, col(live_reading.id) == live.reading_id)
)


def has_reading(*states: str, also: ColumnElement[bool] = _ANY) -> ColumnElement[bool]:
    """True if the newest version has a reading in one of these states that satisfies ``also``."""
    return exists().where(_is_of_newest(states), also)


def of_newest(
    column: SQLColumnExpression[Any], *states: str, also: ColumnElement[bool] = _ANY
) -> ScalarSelect[Any]:
    """Return a column from the latest of those readings in which it is not null."""
    return (
        select(column)
        .where(_is_of_newest(states), also, column.is_not(null()))
        .order_by(col(ReadingRow.created_at).desc())
        .limit(1)
        .correlate(newest)
        .scalar_subquery()
    )


def _is_of_newest(states: tuple[str, ...]) -> ColumnElement[bool]:
    return (col(ReadingRow.sha256) == newest.sha256) & col(ReadingRow.state).in_(states)


def newest_size() -> ScalarSelect[int]:
    """Return the size of the newest version in bytes."""
    size = select(col(BlobRow.size)).where(col(BlobRow.sha256) == newest.sha256)
    return size.correlate(newest).scalar_subquery()


def details_of(version: Any) -> ScalarSelect[Any]:
    """Return the details of the newest reading of a version: ``VersionRow`` or an alias of it."""
    reading = aliased(ReadingRow)
    return (
        select(col(reading.details))
        .where(col(reading.sha256) == version.sha256, col(reading.state) == "done")
        .order_by(col(reading.done_at).desc())
        .limit(1)
        .correlate(version)
        .scalar_subquery()
    )
