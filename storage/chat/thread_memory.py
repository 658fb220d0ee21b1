"""Thread memory: recent questions and answers of each thread, as context for follow-ups.

A turn is always looked up by channel and thread together. A thread under a message of a channel's main
conversation, as a reply in a Slack direct chat opens one, begins with that message's turn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import ColumnElement, String, and_, cast, delete, or_, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from storage.chat_models import NewTurn, Turn
from storage.clock import utc_now
from storage.sql.audit import AuditedAction, record_action
from storage.sql.database import Database
from storage.sql.tables import DocumentRow, InboxRow, OutboxRow, TurnRow, VersionRow

MAX_TURNS = 6
# A pause of this length ends a session of the main conversation.
SESSION_GAP = timedelta(minutes=30)


class ThreadMemory:
    """Stores the turns of threads."""

    def __init__(self, database: Database, days: float) -> None:
        """Recall turns of the last ``days`` days; ``Retention`` erases older ones."""
        self._database = database
        self._kept_for = timedelta(days=days)

    async def recall(
        self, channel_id: int, thread: str, asked_at: datetime, *, documents_of: int | None = None
    ) -> tuple[Turn, ...]:
        """Return the latest turns of this thread before a question, newest last.

        ``documents_of``: another channel whose documents are searched. Turns that cite other documents are
        left out, and of a turn without citations only the person's words are recalled.
        """
        query = (
            select(TurnRow)
            .where(_is_said_in(channel_id, thread))
            .where(col(TurnRow.asked_at) < asked_at, col(TurnRow.asked_at) >= utc_now() - self._kept_for)
            .order_by(col(TurnRow.asked_at).desc(), col(TurnRow.id).desc())
            .limit(MAX_TURNS)
        )
        async with self._database.snapshot() as session:
            rows = list(await session.scalars(query))
            if not thread:
                rows = _latest_session(rows, asked_at)
            versions = {version for row in rows for version in row.versions}
            owners = select(col(VersionRow.id), col(VersionRow.document_id)).join(
                DocumentRow, col(DocumentRow.id) == VersionRow.document_id
            )
            if documents_of is not None:
                owners = owners.where(col(DocumentRow.channel_id) == documents_of)
            found = (await session.execute(owners.where(col(VersionRow.id).in_(versions)))).all()
        documents = {version: document for version, document in found}
        if documents_of is not None:
            rows = [row for row in rows if documents.keys() >= set(row.versions)]
        return tuple(
            _turn(row, documents, with_answer=documents_of is None or bool(row.versions))
            for row in reversed(rows)
        )

    async def last(self, channel_id: int, thread: str) -> tuple[str, tuple[int, ...]] | None:
        """Return (question id, versions cited by its answer) of a thread's last turn, or None."""
        query = (
            select(TurnRow)
            .where(_is_said_in(channel_id, thread))
            .where(col(TurnRow.asked_at) >= utc_now() - self._kept_for)
            .order_by(col(TurnRow.asked_at).desc(), col(TurnRow.id).desc())
            .limit(1)
        )
        async with self._database.snapshot() as session:
            row = await session.scalar(query)
        return (row.key, tuple(row.versions)) if row else None

    async def erase(self, channel_id: int, thread: str, action: AuditedAction) -> int:
        """Erase a thread's turns and record the action; return their number.

        Raises:
            storage.errors.DatabaseUnavailable: nothing was erased.
        """
        turns = delete(TurnRow).where(col(TurnRow.channel_id) == channel_id, col(TurnRow.thread) == thread)
        async with self._database.transaction(exclusive=False) as session:
            erased = (await session.scalars(turns.returning(col(TurnRow.id)))).all()
            if erased:
                await record_action(session, action)
        return len(erased)

    async def store(self, turn: NewTurn) -> None:
        """Store a turn; an existing one is not changed."""
        async with self._database.transaction(exclusive=False) as session:
            await keep_turn(session, turn)


def _is_said_in(channel_id: int, thread: str) -> ColumnElement[bool]:
    """True if a turn is of this thread, or is the one under whose question or answer it was opened."""
    own = col(TurnRow.thread) == thread
    if not thread:
        return and_(col(TurnRow.channel_id) == channel_id, own)
    names = (col(row)["ts"].as_string() == thread for row in (InboxRow.address, OutboxRow.message))
    hung_on = (
        select(cast(col(InboxRow.id), String))
        .outerjoin(OutboxRow, col(OutboxRow.inbox_id) == InboxRow.id)
        .where(col(InboxRow.channel_id) == channel_id, col(InboxRow.thread) == "", or_(*names))
    )
    return and_(col(TurnRow.channel_id) == channel_id, or_(own, col(TurnRow.key).in_(hung_on)))


def _turn(row: TurnRow, documents: Mapping[int, UUID], *, with_answer: bool) -> Turn:
    said = (row.standalone, row.answer) if with_answer else (row.question, "")
    cited = frozenset(documents[version] for version in row.versions if version in documents)
    return Turn(row.question, *said, cited)


async def keep_turn(session: AsyncSession, turn: NewTurn) -> None:
    """Store a turn in the transaction that makes it true; idempotent."""
    row = TurnRow(
        key=turn.key,
        channel_id=turn.channel_id,
        thread=turn.thread,
        question=turn.question,
        standalone=turn.standalone,
        answer=turn.answer,
        versions=list(turn.versions),
        asked_at=turn.asked_at,
    )
    # SQLite accepts PostgreSQL's ON CONFLICT.
    new = insert(TurnRow).values(row.model_dump(exclude={"id"}))
    await session.execute(new.on_conflict_do_nothing())


def _latest_session(rows: Sequence[TurnRow], until: datetime) -> list[TurnRow]:
    """Return the newest rows without a pause longer than ``SESSION_GAP``; newest first."""
    kept: list[TurnRow] = []
    for row in rows:
        if until - row.asked_at > SESSION_GAP:
            break
        kept.append(row)
        until = row.asked_at
    return kept
