"""Citations as they were shown: source of a link's page and highlights, independent of readings."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import date, timedelta
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, Date, Integer, Select, bindparam, insert, select, update
from sqlalchemy.dialects.postgresql import Insert
from sqlalchemy.dialects.postgresql import insert as insert_or_update
from sqlalchemy.orm import aliased
from sqlmodel import SQLModel, col

from storage.clock import utc_now
from storage.models import Box, CitationRecord, CitedPlace
from storage.sql.audit import AuditedAction, record_action
from storage.sql.columns import random_id
from storage.sql.database import Database
from storage.sql.tables import (
    AnswerSourceRow,
    CitationRow,
    InboxRow,
    OutboxRow,
    SourceOpeningRow,
    VersionRow,
)

# Maximum rows to search for an answer or its quotes.
MAX_READ = 1000

# Maximum time between an answer's citations and its posting.
SHOWN_WITHIN = timedelta(hours=1)


class ShownIn(NamedTuple):
    """Message that shows a citation, as named by its platform."""

    address: Mapping[str, Any]
    message: Mapping[str, Any]


class Citations:
    """Stores citations.

    Calls raise DatabaseUnavailable if the database does not work; then nothing is changed.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, channel_id: int, shown: Sequence[CitedPlace]) -> list[CitationRecord]:
        """Store the citations of one answer, in this order; ids are never reused.

        A citation derived from a revoked one is revoked, too.
        """
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
                origin_id=one.origin,
            )
            for one in shown
        ]
        if not kept:
            return []
        async with self._database.transaction(exclusive=False, brief=True) as session:
            if origins := [one.origin_id for one in kept if one.origin_id is not None]:
                revoked = select(col(CitationRow.id), col(CitationRow.revoked_at)).where(
                    col(CitationRow.id).in_(origins), col(CitationRow.revoked_at).is_not(None)
                )
                ended = {id_: moment for id_, moment in await session.execute(revoked)}
                kept = [replace(one, revoked_at=ended.get(one.origin_id or 0)) for one in kept]
            await session.execute(insert(CitationRow), list(map(asdict, kept)))
        return kept

    async def count_openings(self, openings: Mapping[tuple[int, date], int]) -> None:
        """Add a day's openings of sources, by citation; those of deleted citations are dropped."""
        async with self._database.transaction(exclusive=False) as session:
            for (citation_id, day), count in sorted(openings.items()):
                await session.execute(_counting(), {"of": citation_id, "on": day, "more": count})

    async def get(self, citation_id: int) -> CitationRecord | None:
        """Return a citation; None if it does not exist."""
        async with self._database.snapshot() as session:
            row = await session.get(CitationRow, citation_id)
        return None if row is None else _record(row)

    async def of_answer(self, citation: CitationRecord) -> list[CitationRecord]:
        """Return all stored PDF quotes of the citation's answer, by number, including itself."""
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
        """Return the chat message whose answer showed a citation in its channel; None if it is not stored.

        Of several messages that showed the same quote, the last one is returned. A quote that was moved to a
        newer version of its document leads to the answer that showed it in an earlier one.
        """
        citation = await self.get(citation_id)
        if citation is None:
            return None
        before, after = citation.created_at - SHOWN_WITHIN, citation.created_at + SHOWN_WITHIN
        query = (
            _posted_in(citation.channel_id)
            .where(col(AnswerSourceRow.version_id) == citation.version_id)
            .where(col(OutboxRow.created_at).between(before, after))
        )
        async with self._database.snapshot() as session:
            rows = (await session.execute(query)).all()
        for address, message, answer, _ in rows:
            if message and answer and _shows(answer, citation):
                return ShownIn(address, message)
        return None if citation.number is None else await self._shown_before(citation)

    async def _shown_before(self, citation: CitationRecord) -> ShownIn | None:
        """Return the message that showed a moved citation, and those moved with it, in an earlier version.

        If the newer version contains none of their words, only the numbers match: then a single message must
        fit.
        """
        together = await self.of_answer(citation)
        quotes = {one.number: one.quote for one in together if one.version_id == citation.version_id}
        newer = aliased(VersionRow)
        earlier = (
            select(col(VersionRow.id))
            .join(newer, col(newer.document_id) == VersionRow.document_id)
            .where(col(newer.id) == citation.version_id, col(VersionRow.number) < newer.number)
        )
        query = (
            _posted_in(citation.channel_id)
            .where(col(AnswerSourceRow.version_id).in_(earlier))
            .where(col(OutboxRow.created_at) <= citation.created_at + SHOWN_WITHIN)
        )
        async with self._database.snapshot() as session:
            rows = (await session.execute(query)).all()
        fitting = [
            ShownIn(address, message)
            for address, message, answer, version_id in rows
            if message and answer and _showed(answer, version_id, quotes)
        ]
        is_known = any(quotes.values()) or all(one == fitting[0] for one in fitting)
        return fitting[0] if fitting and is_known else None

    async def newest_of(self, channel_id: int, shown: CitedPlace) -> int | None:
        """Return the id of the newest citation of a quote; None if there is none."""
        query = (
            select(col(CitationRow.id))
            .where(col(CitationRow.channel_id) == channel_id)
            .where(col(CitationRow.version_id) == shown.version_id, col(CitationRow.page) == shown.page)
            .where(col(CitationRow.quote) == shown.quote)
            .order_by(col(CitationRow.created_at).desc())
            .limit(1)
        )
        async with self._database.snapshot() as session:
            found: int | None = await session.scalar(query)
        return found

    async def of_versions(self, channel_id: int, versions: Collection[int]) -> list[CitationRecord]:
        """Return the latest quotes of these versions shown in answers to a channel, newest first."""
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
        """Revoke these citations and those derived from them, ending their links; return their number.

        ``action`` is recorded, with whether any was revoked.
        """
        made = select(col(CitationRow.id)).where(col(CitationRow.id).in_(citations)).cte(recursive=True)
        made = made.union(select(col(CitationRow.id)).join(made, col(CitationRow.origin_id) == made.c.id))
        ended = (
            update(CitationRow)
            .where(col(CitationRow.id).in_(select(made.c.id)), col(CitationRow.revoked_at).is_(None))
            .values(revoked_at=utc_now())
            .returning(col(CitationRow.id))
        )
        async with self._database.transaction() as session:
            revoked = (await session.scalars(ended)).all()
            await record_action(session, replace(action, is_done=bool(revoked)))
        return len(revoked)

    async def answers_to(self, person: str) -> list[dict[str, Any]]:
        """Return the stored answers that a person received in chats.

        ``person``: in the format of FOOTNOTE_ADMINS.
        """
        asker = col(InboxRow.address)["asker"].as_string()
        query = (
            select(col(OutboxRow.answer))
            .join(InboxRow, col(InboxRow.id) == OutboxRow.inbox_id)
            .where(asker == person, col(OutboxRow.answer).is_not(None))
        )
        async with self._database.snapshot() as session:
            return [answer for answer in await session.scalars(query) if answer]


def _posted_in(channel_id: int) -> Select[tuple[Any, Any, Any, int]]:
    """Select address, message, answer and a cited version of what was posted in a channel, latest first."""
    return (
        select(
            col(InboxRow.address),
            col(OutboxRow.message),
            col(OutboxRow.answer),
            col(AnswerSourceRow.version_id),
        )
        .join(OutboxRow, col(OutboxRow.inbox_id) == InboxRow.id)
        .join(AnswerSourceRow, col(AnswerSourceRow.inbox_id) == InboxRow.id)
        .where(col(InboxRow.channel_id) == channel_id)
        .order_by(col(InboxRow.id).desc())
        .limit(MAX_READ)
    )


def _shows(answer: Mapping[str, Any], citation: CitationRecord) -> bool:
    """True if a stored answer has this citation, or shows the figure that it is of."""
    cited = [one for one in answer.get("citations", ()) if one.get("version_id") == citation.version_id]
    of = citation.number, citation.page, citation.quote
    if any(tuple(one.get(name) for name in ("number", "page", "quote")) == of for one in cited):
        return True
    files, place = {one["file"] for one in cited}, (citation.page, citation.boxes)
    return citation.number is None and any(
        one["file"] in files and (one["page"], (Box(*one["box"]),)) == place
        for one in answer.get("figures", ())
    )


def _showed(answer: Mapping[str, Any], version_id: int, quotes: Mapping[int | None, str]) -> bool:
    """True if an answer cites all these numbers from a version, in the same words where there are any."""
    cited = [one for one in answer.get("citations", ()) if one.get("version_id") == version_id]
    shown = {one["number"]: one["quote"] for one in cited}
    return all(number in shown and quote in ("", shown[number]) for number, quote in quotes.items())


@cache
def _counting() -> Insert:
    """Return the upsert that adds a day's openings of an existing citation; built once."""
    # INSERT ... SELECT: a citation that has been deleted adds no row.
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
