"""What the tables are made of: names of constraints, moments in UTC, ids, and the columns of leased work."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import DateTime
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator
from sqlmodel import Field, SQLModel

# Every constraint has a name of its own, so that a later migration can change it on any engine.
SQLModel.metadata.naming_convention = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}


# For ids that stand in links: what is gone keeps its id, or an old link would open something else.
AUTOINCREMENT = {"sqlite_autoincrement": True}


class UtcDateTime(TypeDecorator[datetime]):
    """A moment in UTC: SQLite forgets zones, so they are put back on the way out."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Refuse a moment without a zone."""
        if value is not None and value.tzinfo is None:
            raise ValueError("a moment without a time zone")
        return value.astimezone(UTC) if value else None

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Give the moment its zone back."""
        return value.replace(tzinfo=UTC) if value and value.tzinfo is None else value


def moment(**options: Any) -> Any:
    """Return a column for a moment in UTC."""
    return Field(sa_type=UtcDateTime, **options)


def random_id() -> int:
    """Return an id that nobody can count on, exact even in a JSON number."""
    return secrets.randbelow(2**53)


class LeaseColumns(SQLModel):
    """Columns of work that one worker at a time may do.

    A worker takes a row by raising ``fence``; whoever holds an older fence can change nothing.
    """

    lease_owner: str | None = None
    lease_until: datetime | None = moment(default=None)
    fence: int = 0
    # Tries that a document fault ended; infrastructure faults do not count.
    attempts: int = 0
    next_attempt_at: datetime | None = moment(default=None)
    # Why it waits or failed: a sentence for an admin.
    reason: str | None = None
