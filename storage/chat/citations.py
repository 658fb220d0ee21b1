"""Citations as they were shown: what a link's page and marks come from, whatever happens to readings."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import date, timedelta
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, Date, Integer, bindparam, insert, select, update
from sqlalchemy.dialects.postgresql import Insert
from sqlalchemy.dialects.postgresql import insert as insert_or_update
from sqlmodel import SQLModel, col

from storage.chat_models import ShownWeb
from storage.clock import utc_now
from storage.models import Box, CitationRecord, Shown
from storage.sql.audit import AuditedAction, record_action
from storage.sql.columns import random_id
from storage.sql.database import Database
from storage.sql.tables import (
    AnswerSourceRow,
    CitationRow,
    InboxRow,
    OutboxRow,
    SourceOpeningRow,
    WebCitationRow,
    WebTextRow,
)

MAX_READ = 1000
"""Quotes of a document that are looked through for those of one answer."""

SHOWN_WITHIN = timedelta(hours=1)
"""So near to its citations an answer is posted."""


class ShownIn(NamedTuple):
    """The message that shows a citation, as its platform names it."""

    address: Mapping[str, Any]
    message: Mapping[str, Any]


class Citations:
    """Keeps what was shown."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, channel_id: int, shown: Sequence[Shown]) -> list[CitationRecord]:
        """Keep what one answer shows, in this order; no id is ever given to another one."""
        now, answer_id = utc_now(), random_id()
        kept = [
            CitationRecord(
                id=random_id(),
                channel_id=channel_id,
                version_id=one.version_id,
                page=one.page,
                quote=one.quote,
                boxes=tuple(Box(*box) for box in one.boxes),
                created_at=now,
                answer_id=None if one.number is None else answer_id,
                number=one.number,
            )
            for one in shown
        ]
        if kept:
            async with self._database.transaction(exclusive=False, brief=True) as session:
                await session.execute(insert(CitationRow), list(map(asdict, kept)))
        return kept

    async def add_web(self, channel_id: int, shown: Sequence[ShownWeb]) -> None:
        """Keep the quotes of web pages that were shown together: each keeps the text it came from.

        A text that another one took the place of just now is gone, and its quote is not kept.
        """
        now = utc_now()
        async with self._database.transaction(exclusive=False) as session:
            for one in shown:
                if await session.get(WebTextRow, one.sha256):
                    row = WebCitationRow(channel_id=channel_id, created_at=now, **asdict(one))
                    session.add(row)

    async def count_openings(self, openings: Mapping[tuple[int, date], int]) -> None:
        """Add how often sources, by citation, were opened on a day; of one that is gone nothing is kept.

        Raises:
            DatabaseUnavailable: nothing was added.
        """
        async with self._database.transaction(exclusive=False) as session:
            for (citation_id, day), count in sorted(openings.items()):
                await session.execute(_counting(), {"of": citation_id, "on": day, "more": count})

    async def get(self, citation_id: int) -> CitationRecord | None:
        """One citation, or None."""
        async with self._database.snapshot() as session:
            row = await session.get(CitationRow, citation_id)
        return None if row is None else _record(row)

    async def of_answer(self, citation: CitationRecord) -> list[CitationRecord]:
        """All quotes of PDFs that its answer showed and that are kept, by number; itself among them."""
        if citation.answer_id is None:
            return [citation]
        query = (
            select(CitationRow)
            .where(col(CitationRow.answer_id) == citation.answer_id)
            .where(col(CitationRow.channel_id) == citation.channel_id)
            .order_by(col(CitationRow.number))
        )
        async with self._database.snapshot() as session:
            return [_record(row) for row in await session.scalars(query)]

    async def shown_in(self, citation_id: int) -> ShownIn | None:
        """The message of a chat whose answer showed a citation in its own channel; None: it is not kept.

        Of several that showed the very same quote it is the last one.

        Raises:
            DatabaseUnavailable: nobody knows just now.
        """
        citation = await self.get(citation_id)
        if citation is None:
            return None
        before, after = citation.created_at - SHOWN_WITHIN, citation.created_at + SHOWN_WITHIN
        query = (
            select(col(InboxRow.address), col(OutboxRow.message), col(OutboxRow.answer))
            .join(OutboxRow, col(OutboxRow.inbox_id) == InboxRow.id)
            .join(AnswerSourceRow, col(AnswerSourceRow.inbox_id) == InboxRow.id)
            .where(col(AnswerSourceRow.version_id) == citation.version_id)
            .where(col(InboxRow.channel_id) == citation.channel_id)
            .where(col(OutboxRow.created_at).between(before, after))
            .order_by(col(InboxRow.id).desc())
            .limit(MAX_READ)
        )
        async with self._database.snapshot() as session:
            rows = (await session.execute(query)).all()
        for address, message, answer in rows:
            if message and any(_is_of(one, citation) for one in (answer or {}).get("citations", ())):
                return ShownIn(address, message)
        return None

    async def of_versions(self, channel_id: int, versions: Collection[int]) -> list[CitationRecord]:
        """The quotes of these versions that answers to a channel showed last, the newest first."""
        query = (
            select(CitationRow)
            .where(col(CitationRow.channel_id) == channel_id, col(CitationRow.version_id).in_(versions))
            .where(col(CitationRow.number).is_not(None))
            .order_by(col(CitationRow.created_at).desc())
            .limit(MAX_READ)
        )
        async with self._database.snapshot() as session:
            return [_record(row) for row in await session.scalars(query)]

    async def revoke(self, citations: Collection[int], action: AuditedAction) -> int:
        """End every link to these citations, and keep that somebody wanted it; returns how many it ends."""
        ended = (
            update(CitationRow)
            .where(col(CitationRow.id).in_(citations), col(CitationRow.revoked_at).is_(None))
            .values(revoked_at=utc_now())
            .returning(col(CitationRow.id))
        )
        async with self._database.transaction() as session:
            revoked = (await session.scalars(ended)).all()
            await record_action(session, replace(action, is_done=bool(revoked)))
        return len(revoked)

    async def answers_to(self, person: str) -> list[dict[str, Any]]:
        """The answers that a person was given in chats, as they are kept.

        ``person`` is named as FOOTNOTE_ADMINS names people.
        """
        asker = col(InboxRow.address)["asker"].as_string()
        query = (
            select(col(OutboxRow.answer))
            .join(InboxRow, col(InboxRow.id) == OutboxRow.inbox_id)
            .where(asker == person, col(OutboxRow.answer).is_not(None))
        )
        async with self._database.snapshot() as session:
            return [answer for answer in await session.scalars(query) if answer]


def _is_of(shown: Mapping[str, Any], citation: CitationRecord) -> bool:
    """Whether an answer's citation, as the outbox keeps it, is this one."""
    of = citation.version_id, citation.number, citation.page, citation.quote
    return tuple(shown.get(name) for name in ("version_id", "number", "page", "quote")) == of


@cache
def _counting() -> Insert:
    """A day's openings of a citation that is kept, or more of them; built once."""
    own = select(
        col(CitationRow.id),
        bindparam("on", type_=Date),
        col(CitationRow.channel_id),
        bindparam("more", type_=Integer),
    ).where(col(CitationRow.id) == bindparam("of", type_=BigInteger))
    table = SQLModel.metadata.tables[str(SourceOpeningRow.__tablename__)]
    new = insert_or_update(table).from_select(["citation_id", "day", "channel_id", "count"], own)
    more = {"count": table.c["count"] + new.excluded["count"]}
    return new.on_conflict_do_update(index_elements=["citation_id", "day"], set_=more)


def _record(row: CitationRow) -> CitationRecord:
    return CitationRecord(**{**row.model_dump(), "boxes": tuple(Box(*box) for box in row.boxes)})
