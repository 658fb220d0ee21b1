"""Feedback on answers: good, what was wrong and which page is right, or that a person is needed.

Feedback belongs to the record of its question, which holds the question, the passages and the citations, and
is deleted with it. It never changes any ranking.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import Select, select
from sqlalchemy.dialects.postgresql import insert
from sqlmodel import col

from storage.clock import utc_now
from storage.sql.database import Database
from storage.sql.tables import FeedbackRow, QuestionRecordRow

MAX_COMMENT_CHARS = 1000


class FeedbackVerdict(StrEnum):
    """Verdict on an answer."""

    GOOD = "good"
    # Without a reason so far.
    BAD = "bad"
    WRONG_PAGE = "wrong_page"
    WRONG_ANSWER = "wrong_answer"
    SHOULD_HAVE_FOUND = "should_have_found"
    OUTDATED = "outdated"
    # A person was asked to look at it, and has done so.
    NEEDS_PERSON = "needs_person"
    RESOLVED = "resolved"


# Verdicts that say nothing about the answer itself.
HANDOFFS = frozenset({FeedbackVerdict.NEEDS_PERSON, FeedbackVerdict.RESOLVED})
# Verdicts after which a question needs no document.
SETTLED = frozenset({FeedbackVerdict.GOOD, FeedbackVerdict.RESOLVED})


@dataclass(frozen=True, slots=True)
class Feedback:
    """Feedback of one person on one answer, with the record of its question."""

    id: int
    channel_id: int
    verdict: FeedbackVerdict
    # Where the person says the answer is; '' if no page was named.
    file: str
    page: int
    comment: str
    given_at: datetime
    record: dict[str, Any]


def hash_person(installation: str, user: str) -> str:
    """Return a hash that distinguishes a platform's users without naming them."""
    return hashlib.sha256(f"{installation}\0{user}".encode()).hexdigest()[:32]


class FeedbackStore:
    """Stores the latest feedback of each person on each answer.

    Calls raise DatabaseUnavailable if the database does not work.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def upsert(
        self,
        channel_id: int,
        question: str,
        person: str,
        verdict: FeedbackVerdict,
        *,
        file: str = "",
        page: int = 0,
        comment: str = "",
    ) -> bool:
        """Upsert a person's feedback; return False if this channel has no such record.

        Args:
            channel_id: where it was given; it must be the question's channel.
            person: from ``hash_person``.
            file: where the answer is, with ``page``; ignored unless found for the question.
            page: counted from 1.
        """
        asked = select(QuestionRecordRow).where(
            col(QuestionRecordRow.channel_id) == channel_id, col(QuestionRecordRow.key) == question
        )
        async with self._database.transaction(exclusive=False) as session:
            record = await session.scalar(asked)
            if record is None:
                return False
            is_found = (file, page) in candidate_pages(record.record)
            said = {
                "verdict": verdict.value,
                "file": file if is_found else "",
                "page": page if is_found else 0,
                "comment": comment[:MAX_COMMENT_CHARS],
                "given_at": utc_now(),
            }
            new = insert(FeedbackRow).values(record_id=record.id, person=person, **said)
            await session.execute(
                new.on_conflict_do_update(index_elements=["record_id", "person"], set_=said)
            )
        return True

    async def needs_person(self, channel_id: int, question: str) -> bool:
        """True if somebody asked for a person, and nobody resolved it since."""
        async with self._database.snapshot() as session:
            return await session.scalar(_open_handoffs(channel_id, question).limit(1)) is not None

    async def resolve(self, channel_id: int, question: str) -> bool:
        """Mark a question that needed a person as resolved; False if it needed none."""
        async with self._database.transaction(exclusive=False) as session:
            rows = list(await session.scalars(_open_handoffs(channel_id, question)))
            for row in rows:
                row.verdict = FeedbackVerdict.RESOLVED.value
        return bool(rows)

    async def candidates(self, channel_id: int, question: str) -> Sequence[tuple[str, int]]:
        """Return (file, page) of the pages found for a channel's question, best first, without duplicates."""
        asked = select(col(QuestionRecordRow.record)).where(
            col(QuestionRecordRow.channel_id) == channel_id, col(QuestionRecordRow.key) == question
        )
        async with self._database.snapshot() as session:
            record = await session.scalar(asked)
        return candidate_pages(record or {})

    async def all(self, channel_id: int | None = None) -> list[Feedback]:
        """Return all feedback, oldest first; ``channel_id``: only on this channel's answers."""
        said = (
            select(FeedbackRow, QuestionRecordRow)
            .join(QuestionRecordRow, col(QuestionRecordRow.id) == FeedbackRow.record_id)
            .order_by(col(FeedbackRow.id))
        )
        if channel_id is not None:
            said = said.where(col(QuestionRecordRow.channel_id) == channel_id)
        async with self._database.snapshot() as session:
            return [
                Feedback(
                    row.id,
                    record.channel_id,
                    FeedbackVerdict(row.verdict),
                    row.file,
                    row.page,
                    row.comment,
                    row.given_at,
                    record.record,
                )
                for row, record in await session.execute(said)
            ]


def _open_handoffs(channel_id: int, question: str) -> Select[Any]:
    record = QuestionRecordRow
    return (
        select(FeedbackRow)
        .join(record, col(record.id) == FeedbackRow.record_id)
        .where(col(record.channel_id) == channel_id, col(record.key) == question)
        .where(col(FeedbackRow.verdict) == FeedbackVerdict.NEEDS_PERSON.value)
    )


def candidate_pages(record: dict[str, Any]) -> list[tuple[str, int]]:
    """Return (file, page) of a recorded question's candidates, best first, unique; no web pages."""
    found = [one for search in record.get("searches", ()) for one in search["candidates"] if one["rank"]]
    ranked = sorted(found, key=lambda one: one["rank"])
    return list(dict.fromkeys((one["file"], one["page"]) for one in ranked if one["page"]))
