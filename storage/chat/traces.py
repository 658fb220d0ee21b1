"""Traces: how each question was answered, what was found, sent, generated and verified.

A record holds words of questions and documents: it belongs to its channel, is erased with it, and expires.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, String, cast, exists, func, or_, select
from sqlalchemy.dialects.postgresql import Insert, insert
from sqlmodel import col

from storage.clock import utc_now
from storage.sql.database import Database
from storage.sql.tables import FactRow, FeedbackRow, InboxRow, QuestionRecordRow, SourceOpeningRow

# Prefix of the thread of a question that is answered privately.
PRIVATE_THREAD = "private "
# Maximum records in a listing.
MAX_LISTED = 50


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """Stored record of a question."""

    key: str
    asked_at: datetime
    state: str
    record: dict[str, Any]


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """Outcome of a question, from its record and feedback."""

    key: str
    asked_at: datetime
    state: str
    # The search query.
    question: str
    # Words of it that occur in no document.
    unknown: tuple[str, ...]
    # Verdicts of people on the answer.
    verdicts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AnswerFacts:
    """Figures of a record without any words, and reactions to its answer."""

    asked_at: datetime
    state: str
    milliseconds: Mapping[str, int]
    tokens: Mapping[str, int | None]
    # Citation -> openings of its source; None if the answer cites no document.
    opened: Mapping[int, int] | None
    # Each person's verdict, and the right page if one was named, else 0.
    verdicts: Sequence[tuple[str, int]] = ()


def baseline_fact(channel_id: int) -> str:
    """Return the name of the fact that stores a channel's quality baseline."""
    return f"quality baseline {channel_id}"


def _opened(cited: Sequence[Mapping[str, Any]], opened: Mapping[int, int]) -> dict[int, int] | None:
    """Return how often each source of an answer was opened."""
    known = [one["id"] for one in cited if "id" in one]
    return {id_: opened.get(id_, 0) for id_ in known} if known else None


@cache
def _keeping() -> Insert:
    """Return the upsert of a record, by question; built once. SQLite accepts PostgreSQL's ON CONFLICT."""
    new = insert(QuestionRecordRow)
    again = {name: new.excluded[name] for name in ("asked_at", "state", "record")}
    return new.on_conflict_do_update(index_elements=["channel_id", "key"], set_=again)


class QuestionRecords:
    """Stores records of questions.

    Calls raise DatabaseUnavailable if the database does not work; then nothing is changed.
    """

    def __init__(self, database: Database, days: float) -> None:
        """Keep records for ``days`` days, after which ``Retention`` erases them; 0: store none."""
        self._database = database
        self._kept_for = timedelta(days=days)

    async def keep(
        self, key: str, channel_id: int, asked_at: datetime, state: str, record: dict[str, Any]
    ) -> None:
        """Upsert a record: answering a question again replaces it."""
        if not self._kept_for:
            return
        row = {"key": key, "channel_id": channel_id, "asked_at": asked_at, "state": state, "record": record}
        async with self._database.transaction(exclusive=False, brief=True) as session:
            await session.execute(_keeping(), row)

    async def is_first(self, channel_id: int) -> bool:
        """True if no recorded question of a channel found anything; False if records are off."""
        if not self._kept_for:
            return False
        found = col(QuestionRecordRow.record)[("searches", 0, "candidates", 0, "file")]
        query = select(col(QuestionRecordRow.key)).where(
            col(QuestionRecordRow.channel_id) == channel_id, found.as_string().is_not(None)
        )
        async with self._database.snapshot() as session:
            return (await session.execute(query.limit(1))).first() is None

    async def get(self, channel_id: int, key: str) -> StoredRecord | None:
        """Return the record of one question of a channel, or None."""
        found = await self._select(channel_id, col(QuestionRecordRow.key) == key)
        return found[0] if found else None

    async def latest(self, channel_id: int) -> list[StoredRecord]:
        """Return the latest records of a channel, newest first."""
        return await self._select(channel_id)

    async def search(
        self, channel_id: int, words: str = "", before: datetime | None = None
    ) -> list[StoredRecord]:
        """Return a channel's latest records whose question or answer contains these words, newest first.

        ``before``: only questions asked earlier.
        """
        record = col(QuestionRecordRow.record)
        holds = [
            record[part].as_string().icontains(words, autoescape=True) for part in ("question", "answer")
        ]
        more = [] if before is None else [col(QuestionRecordRow.asked_at) < before]
        return await self._select(channel_id, *([or_(*holds)] if words else []), *more)

    async def asked_since(
        self, channel_id: int, since: datetime, *, public_only: bool = False
    ) -> list[AskedQuestion]:
        """Return the outcomes of a channel's questions, oldest first.

        Args:
            public_only: leave out private questions, whose answer only the asker saw.
        """
        row = QuestionRecordRow
        inbox_key = cast(col(InboxRow.id), String) == col(row.key)
        query = (
            select(
                col(row.id),
                col(row.key),
                col(row.asked_at),
                col(row.state),
                col(row.record)["searched"].as_string(),
                col(row.record)[("searches", 0, "unknown")],
                col(FeedbackRow.verdict),
            )
            .outerjoin(FeedbackRow, col(FeedbackRow.record_id) == row.id)
            .where(col(row.channel_id) == channel_id)
            .where(col(row.asked_at) >= max(since, utc_now() - self._kept_for))
            .order_by(col(row.asked_at), col(row.id))
        )
        if public_only:
            mine = (col(InboxRow.channel_id) == channel_id) & inbox_key
            private = exists().where(mine, col(InboxRow.thread).startswith(PRIVATE_THREAD))
            query = query.where(~private)
        found: dict[int, AskedQuestion] = {}
        async with self._database.snapshot() as session:
            for id, key, asked_at, state, question, unknown, verdict in await session.execute(query):
                known = found.get(id) or AskedQuestion(
                    key, asked_at, state, question or "", tuple(unknown or ()), ()
                )
                verdicts = (*known.verdicts, verdict) if verdict else known.verdicts
                found[id] = replace(known, verdicts=verdicts)
        return list(found.values())

    @property
    def kept_since(self) -> datetime:
        """Start of the retention period: older records are gone or about to be erased."""
        return utc_now() - self._kept_for

    async def count_askers(self, channel_id: int, since: datetime, until: datetime) -> int:
        """Count the people who asked in a channel of a chat, as long as messages are kept."""
        asker = col(InboxRow.address)["asker"].as_string()
        query = (
            select(func.count(asker.distinct()))
            .where(col(InboxRow.channel_id) == channel_id, asker != "")
            .where(col(InboxRow.created_at) >= since, col(InboxRow.created_at) < until)
        )
        async with self._database.snapshot() as session:
            return await session.scalar(query) or 0

    async def facts_since(
        self, channel_id: int, since: datetime, until: datetime | None = None
    ) -> list[AnswerFacts]:
        """Return the figures of a channel's records, oldest first; those of private questions included."""
        row = QuestionRecordRow
        parts = ("milliseconds", "tokens", "citations")
        query = (
            select(
                col(row.id),
                col(row.asked_at),
                col(row.state),
                *(col(row.record)[part] for part in parts),
                col(FeedbackRow.verdict),
                col(FeedbackRow.page),
            )
            .outerjoin(FeedbackRow, col(FeedbackRow.record_id) == row.id)
            .where(col(row.channel_id) == channel_id)
            .where(col(row.asked_at) >= max(since, self.kept_since))
            .order_by(col(row.asked_at), col(row.id))
        )
        if until is not None:
            query = query.where(col(row.asked_at) < until)
        openings = (
            select(col(SourceOpeningRow.citation_id), func.sum(SourceOpeningRow.count))
            .where(col(SourceOpeningRow.channel_id) == channel_id)
            .group_by(col(SourceOpeningRow.citation_id))
        )
        found: dict[int, AnswerFacts] = {}
        async with self._database.snapshot() as session:
            opened = {citation: int(count) for citation, count in await session.execute(openings)}
            for (
                id_,
                asked_at,
                state,
                spent,
                tokens,
                cited,
                verdict,
                page,
            ) in await session.execute(query):
                known = found.get(id_) or AnswerFacts(
                    asked_at,
                    state,
                    spent,
                    tokens,
                    _opened(cited, opened),
                )
                said = ((verdict, page),) if verdict else ()
                found[id_] = replace(known, verdicts=(*known.verdicts, *said))
        return list(found.values())

    async def baseline(self, channel_id: int) -> dict[str, Any] | None:
        """Return the channel's baseline, as stored by ``keep_baseline``; None if there is none."""
        async with self._database.snapshot() as session:
            fact = await session.get(FactRow, baseline_fact(channel_id))
        return json.loads(fact.value) if fact else None

    async def keep_baseline(self, channel_id: int, figures: Mapping[str, Any]) -> None:
        """Store figures as the channel's baseline: numbers only, no words of anyone."""
        fact = FactRow(name=baseline_fact(channel_id), value=json.dumps(dict(figures)))
        async with self._database.transaction() as session:
            await session.merge(fact)

    async def _select(self, channel_id: int, *more: ColumnElement[bool]) -> list[StoredRecord]:
        """Return a channel's unexpired records, newest first."""
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
