"""Keeps what people say of answers: that they were good, or what was wrong, and where the right page is.

Feedback belongs to the record of its question, which has the question, the passages and what was cited; it
goes with it. It never changes how anything is ranked.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert
from sqlmodel import col

from storage.clock import utc_now
from storage.sql.database import Database
from storage.sql.tables import FeedbackRow, QuestionRecordRow

MAX_COMMENT_CHARS = 1000


class FeedbackVerdict(StrEnum):
    """What a person says of an answer."""

    GOOD = "good"
    # For no reason that was given yet.
    BAD = "bad"
    WRONG_PAGE = "wrong_page"
    WRONG_ANSWER = "wrong_answer"
    SHOULD_HAVE_FOUND = "should_have_found"
    OUTDATED = "outdated"


@dataclass(frozen=True, slots=True)
class Feedback:
    """What one person said of one answer, with the record of its question."""

    id: int
    channel_id: int
    verdict: FeedbackVerdict
    # Where the answer stands, as the person says; '' where no page was named.
    file: str
    page: int
    comment: str
    given_at: datetime
    record: dict[str, Any]


def person_of(installation: str, user: str) -> str:
    """Return a hash that tells the people of a platform apart and names none of them."""
    return hashlib.sha256(f"{installation}\0{user}".encode()).hexdigest()[:32]


class FeedbackStore:
    """Keeps the last word of each person on each answer."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def keep(
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
        """Keep what a person says, in place of what they said before; False: this channel has no such record.

        Args:
            channel_id: where it is said; of a question of another channel nothing is kept.
            question: its id.
            person: as ``person_of`` has it.
            verdict: what is said.
            file: where the answer stands, with ``page``; only a page that was found for the question counts.
            page: counted from 1.
            comment: in the person's own words.

        Raises:
            storage.errors.DatabaseUnavailable: the database does not work.
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

    async def candidates(self, channel_id: int, question: str) -> Sequence[tuple[str, int]]:
        """(file, page) of the pages that were found for a question of a channel, best first, each once.

        Raises:
            storage.errors.DatabaseUnavailable: the database does not work.
        """
        asked = select(col(QuestionRecordRow.record)).where(
            col(QuestionRecordRow.channel_id) == channel_id, col(QuestionRecordRow.key) == question
        )
        async with self._database.snapshot() as session:
            record = await session.scalar(asked)
        return candidate_pages(record or {})

    async def all(self, channel_id: int | None = None) -> list[Feedback]:
        """Return all that was said, oldest first; ``channel_id``: of this channel's answers.

        Raises:
            storage.errors.DatabaseUnavailable: the database does not work.
        """
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


def candidate_pages(record: dict[str, Any]) -> list[tuple[str, int]]:
    """(file, page) of what the searches of a recorded question found, best first, each once; no web pages."""
    found = [one for search in record.get("looks", ()) for one in search["candidates"] if one["rank"]]
    ranked = sorted(found, key=lambda one: one["rank"])
    return list(dict.fromkeys((one["file"], one["page"]) for one in ranked if one["page"]))
