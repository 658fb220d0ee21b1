"""Console sessions ended by sign-out, shared by all machines."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import delete
from sqlmodel import col

from storage.clock import utc_now
from storage.sql.audit import AuditedAction, record_action
from storage.sql.database import Database
from storage.sql.tables import FactRow

_PREFIX = "console sign-out "


class EndedSessions:
    """Stores the ids of ended sessions until they would have expired."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def end(self, session_id: str, until: datetime, action: AuditedAction) -> None:
        """End a session that would expire at ``until``, and record the action.

        Raises:
            DatabaseUnavailable: it was not ended.
        """
        is_over = col(FactRow.name).startswith(_PREFIX, autoescape=True) & (
            col(FactRow.value) < utc_now().isoformat()
        )
        async with self._database.transaction() as session:
            await session.execute(delete(FactRow).where(is_over))
            await session.merge(FactRow(name=_PREFIX + session_id, value=until.isoformat()))
            await record_action(session, action)

    async def is_ended(self, session_id: str) -> bool:
        """True if the session was ended by sign-out.

        Raises:
            DatabaseUnavailable: the database does not work.
        """
        async with self._database.snapshot() as session:
            return await session.get(FactRow, _PREFIX + session_id) is not None
