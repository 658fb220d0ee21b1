"""The SQL table of the records that questions leave; ``tables.py`` has all others."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, Index, UniqueConstraint
from sqlmodel import Field, SQLModel

from storage.columns import moment


class QuestionRecordRow(SQLModel, table=True):
    """How one question was answered; it goes with its channel, and after the time it is kept."""

    __tablename__ = "question_record"
    __table_args__ = (UniqueConstraint("channel_id", "key"), Index(None, "channel_id", "asked_at"))
    id: int = Field(default=None, primary_key=True)
    key: str
    """Id of the question: one that is answered again has one record."""
    channel_id: int = Field(foreign_key="channel.id", ondelete="CASCADE")
    asked_at: datetime = moment(index=True)
    state: str
    record: dict[str, Any] = Field(sa_type=JSON)
