"""The SQL table of what threads remember; ``tables.py`` has all others."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import JSON, Index
from sqlmodel import Field, SQLModel

from storage.columns import moment


class TurnRow(SQLModel, table=True):
    """One question of a thread with its answer; it goes with its channel, and after the time it is kept."""

    __tablename__ = "turn"
    __table_args__ = (Index(None, "channel_id", "thread", "asked_at"),)
    id: int = Field(default=None, primary_key=True)
    key: str = Field(unique=True)
    """Id of the question: one that is answered again is remembered once."""
    channel_id: int = Field(foreign_key="channel.id", ondelete="CASCADE")
    thread: str
    """Within the channel; '' is its running conversation."""
    question: str
    standalone: str
    answer: str
    versions: list[int] = Field(sa_type=JSON)
    """Those that the answer cited, for their documents."""
    asked_at: datetime = moment(index=True)
