"""Keeps for a while how each question was answered: what was found, sent, written and judged.

A record holds words of questions and documents: it is found by its channel, erased with it, and in time.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, select
from sqlalchemy.dialects.postgresql import Insert, insert
from sqlmodel import col

from storage.clock import utc_now
from storage.sql.database import Database
from storage.sql.tables import QuestionRecordRow

MAX_LISTED = 50
"""The last records of a channel, where they are listed."""


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A record as it was kept."""

    key: str
    asked_at: datetime
    state: str
    record: dict[str, Any]


@cache
def _keeping() -> Insert:
    """A record, or another one of the same question; built once. SQLite takes PostgreSQL's words here."""
    new = insert(QuestionRecordRow)
    again = {name: new.excluded[name] for name in ("asked_at", "state", "record")}
    return new.on_conflict_do_update(index_elements=["channel_id", "key"], set_=again)


class QuestionRecords:
    """Keeps records."""

    def __init__(self, database: Database, days: float) -> None:
        """Keep each for so many days, after which ``Retention`` erases it; 0: none at all."""
        self._database = database
        self._kept_for = timedelta(days=days)

    async def keep(
        self, key: str, channel_id: int, asked_at: datetime, state: str, record: dict[str, Any]
    ) -> None:
        """Keep a record; a question that is answered again has its last one only."""
        if not self._kept_for:
            return
        row = {"key": key, "channel_id": channel_id, "asked_at": asked_at, "state": state, "record": record}
        async with self._database.transaction(exclusive=False) as session:
            await session.execute(_keeping(), row)

    async def get(self, channel_id: int, key: str) -> StoredRecord | None:
        """The record of one question of a channel, or None."""
        found = await self._select(channel_id, col(QuestionRecordRow.key) == key)
        return found[0] if found else None

    async def latest(self, channel_id: int) -> list[StoredRecord]:
        """The last records of a channel, newest first."""
        return await self._select(channel_id)

    async def _select(self, channel_id: int, *more: ColumnElement[bool]) -> list[StoredRecord]:
        """Records of a channel that are not too old, newest first."""
        query = (
            select(QuestionRecordRow)
            .where(col(QuestionRecordRow.channel_id) == channel_id, *more)
            .where(col(QuestionRecordRow.asked_at) >= utc_now() - self._kept_for)
            .order_by(col(QuestionRecordRow.asked_at).desc(), col(QuestionRecordRow.id).desc())
            .limit(MAX_LISTED)
        )
        async with self._database.snapshot() as session:
            rows = await session.scalars(query)
            return [StoredRecord(row.key, row.asked_at, row.state, row.record) for row in rows]
