"""The audit: what was done in chats that only admins may do, or that cannot be undone, and what was refused.

It holds ids only. It outlives what it tells of, and goes after FOOTNOTE_AUDIT_DAYS.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from storage.sql.database import Database
from storage.sql.tables import AuditRow

MAX_LISTED = 500


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One line of it."""

    at: datetime
    actor: str
    action: str
    channel: str
    subject: str
    is_done: bool


@dataclass(frozen=True, slots=True)
class AuditedAction:
    """What somebody does, before it is kept."""

    actor: str
    """As FOOTNOTE_ADMINS names people."""
    action: str
    channel: str
    """The tenant name of where it is said."""
    subject: str = ""
    """An id of what it is done to."""
    is_done: bool = True


def record_action(session: AsyncSession, action: AuditedAction) -> None:
    """Keep an action in the transaction that does it."""
    session.add(
        AuditRow(
            actor=action.actor,
            action=action.action,
            channel=action.channel,
            subject=action.subject,
            is_done=action.is_done,
        )
    )


class AuditLog:
    """Keeps actions and lists them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def keep(self, action: AuditedAction) -> None:
        """Keep one that changes nothing in SQL, or was refused.

        Raises:
            storage.errors.DatabaseUnavailable: it could not be kept, so it must not be done.
        """
        async with self._database.transaction(exclusive=False) as session:
            record_action(session, action)

    async def latest(self) -> list[AuditEntry]:
        """The last ones, oldest first."""
        query = select(AuditRow).order_by(col(AuditRow.id).desc()).limit(MAX_LISTED)
        async with self._database.snapshot() as session:
            rows = list(await session.scalars(query))
        return [
            AuditEntry(row.at, row.actor, row.action, row.channel, row.subject, row.is_done)
            for row in reversed(rows)
        ]
