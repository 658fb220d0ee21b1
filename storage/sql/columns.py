"""Column types and conventions: constraint names, UTC timestamps, ids, lease columns."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import DateTime
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator
from sqlmodel import Field, SQLModel

# Every constraint is named, so that a later migration can change it on any engine.
SQLModel.metadata.naming_convention = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}


# For ids that occur in links: SQLite must not reuse the id of a deleted row, or an old link would open
# something else.
AUTOINCREMENT = {"sqlite_autoincrement": True}


class UtcDateTime(TypeDecorator[datetime]):
    """Timestamp in UTC; SQLite drops the time zone, so it is restored on reading."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Convert a timestamp to UTC; raise ValueError if it has no time zone."""
        if value is not None and value.tzinfo is None:
            raise ValueError("the timestamp has no time zone")
        return value.astimezone(UTC) if value else None

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Restore the time zone."""
        return value.replace(tzinfo=UTC) if value and value.tzinfo is None else value


def utc_column(**options: Any) -> Any:
    """Return a column for a UTC timestamp."""
    return Field(sa_type=UtcDateTime, **options)


def random_id() -> int:
    """Return an unpredictable id, exact even as a JSON number."""
    return secrets.randbelow(2**53)


class LeaseColumns(SQLModel):
    """Lease columns of work that one worker at a time may do.

    A worker claims a row by raising ``fence``, a fencing token; the holder of an older fence can change
    nothing.
    """

    lease_owner: str | None = None
    lease_until: datetime | None = utc_column(default=None)
    fence: int = 0
    # Attempts that ended in a document error; infrastructure errors do not count.
    attempts: int = 0
    next_attempt_at: datetime | None = utc_column(default=None)
    # Why it waits or failed: a message for an admin.
    reason: str | None = None
