"""Tracks posted answers whose cited documents were replaced or withdrawn, and page subscriptions.

The transaction that replaces, withdraws or restores a document marks the answers that cite it. A worker that
updates a message leases it: until the lease ends no other worker does, and after a crash another one takes
over.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import ColumnElement, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from storage.chat_models import PERSONAL_KEYS, PostedAnswer, SourceState, Subscription
from storage.clock import utc_now
from storage.models import CitedPlace, Platform
from storage.sql.database import Database
from storage.sql.document_state import document_state, live, live_version
from storage.sql.fair_queue import next_turn
from storage.sql.leased_queue import LeasedQueue
from storage.sql.tables import (
    AnswerSourceRow,
    ChannelRow,
    DocumentRow,
    InboxRow,
    OutboxRow,
    PublicationRow,
    SubscriptionRow,
    VersionRow,
)

# Older answers are not updated any more.
MAX_AGE = timedelta(days=30)


async def store_sources(session: AsyncSession, inbox_id: int, versions: Collection[int]) -> bool:
    """Store what an answer cites; return True if it is outdated already.

    A version may have been replaced while the answer was being written. Both run in exclusive transactions,
    so that a document that changes later finds the answer and marks it.
    """
    states = await _states(session, versions)
    await session.execute(delete(AnswerSourceRow).where(col(AnswerSourceRow.inbox_id) == inbox_id))
    session.add_all(AnswerSourceRow(inbox_id=inbox_id, version_id=state.version_id) for state in states)
    return any(state.change is not None for state in states)


async def mark_outdated(session: AsyncSession, documents: Collection[UUID]) -> None:
    """Mark the answers that cite these documents, in the transaction that changes the documents."""
    cited = (
        select(col(AnswerSourceRow.inbox_id))
        .join(VersionRow, col(VersionRow.id) == AnswerSourceRow.version_id)
        .where(col(VersionRow.document_id).in_(documents))
    )
    answers = update(OutboxRow).where(col(OutboxRow.inbox_id).in_(cited), _is_recent())
    await session.execute(answers.values(changed_at=utc_now()))


class AnswerSources:
    """Hands out the messages that may need an update."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._rows = LeasedQueue(database, OutboxRow, until="changed_at")

    async def claim(self, platforms: Collection[Platform], seconds: float) -> PostedAnswer | None:
        """Lease the longest-waiting message for ``seconds``; None if none waits.

        Raises:
            DatabaseUnavailable: the database does not work.
        """
        query = (
            select(OutboxRow)
            .join(InboxRow, col(InboxRow.id) == OutboxRow.inbox_id)
            .where(col(OutboxRow.changed_at).is_not(None))
            .where(col(OutboxRow.state) == "delivered", _is_recent())
            .where(col(InboxRow.platform).in_(platforms), col(InboxRow.state) == "done")
            .order_by(col(OutboxRow.changed_at))
        )
        async with self._database.transaction(exclusive=False) as session:
            free = await self._rows.lock_free_rows(session, query, 1)
            if not free:
                return None
            (reply,) = free
            item = await session.get_one(InboxRow, reply.inbox_id)
            reply.changed_at = until = self._rows.ends_at(seconds)
            self._database.changes.schedule(OutboxRow, until)
            return PostedAnswer(
                item.id,
                until,
                Platform(item.platform),
                item.address,
                message=reply.message,
                answer=reply.answer,
                shown={int(version): newer for version, newer in (reply.shown_changes or {}).items()},
                removed_in=None if reply.answer else reply.removed_in,
            )

    async def states(self, versions: Collection[int]) -> list[SourceState]:
        """Return the current state of cited versions; those of erased documents are left out."""
        async with self._database.snapshot() as session:
            return await _states(session, versions)

    async def finish(self, posted: PostedAnswer, shown: Mapping[int, int]) -> None:
        """Store what the message now says; it stays marked if a document changed in the meantime."""
        said = {str(version): newer for version, newer in shown.items()}
        await self._rows.change(col(OutboxRow.inbox_id) == posted.inbox_id, shown_changes=said or None)
        await self._end(posted, None)

    async def retry_later(self, posted: PostedAnswer, seconds: float) -> None:
        """Retry a message after this time, at most MAX_WAIT."""
        await self._end(posted, self._rows.ends_at(seconds))

    async def _end(self, posted: PostedAnswer, changed_at: datetime | None) -> None:
        """End a claim; a message whose question got another answer meanwhile is compared with that one.

        It may show the old one again, because the update of a claimed message takes up to a minute.
        """
        if not await self._rows.change(*_unchanged(posted), changed_at=changed_at):
            reply = col(OutboxRow.inbox_id) == posted.inbox_id
            await self._rows.change(reply, col(OutboxRow.changed_at).is_(None), changed_at=utc_now())


async def _states(session: AsyncSession, versions: Collection[int]) -> list[SourceState]:
    query = document_state.add_columns(
        col(VersionRow.id),
        col(DocumentRow.id),
        col(DocumentRow.channel_id),
        col(DocumentRow.state),
        col(live_version.id),
        func.coalesce(
            (live_version.number > VersionRow.number) & (live_version.sha256 != VersionRow.sha256), False
        ),
        col(live.live_at),
    ).join(VersionRow, col(VersionRow.document_id) == DocumentRow.id)
    return [
        SourceState(version, document, channel, state == "deleted", newer if is_newer else None, since)
        for version, document, channel, state, newer, is_newer, since in await session.execute(
            query.where(col(VersionRow.id).in_(versions))
        )
    ]


def _unchanged(posted: PostedAnswer) -> tuple[ColumnElement[bool], ...]:
    """Select the message if no document has changed since it was claimed."""
    return col(OutboxRow.inbox_id) == posted.inbox_id, col(OutboxRow.changed_at) == posted.claimed_until


def _is_recent() -> ColumnElement[bool]:
    return col(OutboxRow.created_at) > utc_now() - MAX_AGE


# Key in a subscription's address: name of the page's channel, in a chat that searches several.
PAGE_CHANNEL = "page_channel"
# Key in an address: marks a question that is the notification of a page change, with its subscription.
NOTE = "page_note"


async def record_page_notes(session: AsyncSession, publication: PublicationRow) -> None:
    """Queue notifications for threads that follow a page, in the transaction that replaces its version.

    A notification is delivered as answers are: once, even after a crash. A waiting one reports the
    state at the time of delivery.
    """
    version = await session.get_one(VersionRow, publication.version_id)
    followed = (
        select(SubscriptionRow, ChannelRow)
        .join(VersionRow, col(VersionRow.id) == SubscriptionRow.version_id)
        .join(ChannelRow, col(ChannelRow.id) == SubscriptionRow.channel_id)
        .where(col(VersionRow.document_id) == version.document_id, col(VersionRow.number) < version.number)
    )
    for row, channel in (await session.execute(followed)).all():
        key = f"{row.event_key}:page:{row.id}:{row.version_id}"
        note = InboxRow(
            platform=channel.platform,
            event_key=key,
            message_key=key,
            channel_id=row.channel_id,
            thread=row.thread,
            text="",
            address={**row.address, "key": key, NOTE: _note(row)},
            is_late=True,
        )
        turn = next_turn(row.channel_id, is_late=True)
        new = insert(InboxRow).values(note.model_dump(exclude={"id"}) | {"turn": turn})
        await session.execute(new.on_conflict_do_nothing())


def _note(row: SubscriptionRow) -> dict[str, int]:
    return {"subscription": row.id, "version": row.version_id, "page": row.page}


class Subscriptions:
    """Stores which threads follow which pages."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, question: str, citation: CitedPlace, language: str, channel_name: str = "") -> bool:
        """Subscribe a question's thread to a cited page; return False if it has no thread in a chat.

        ``channel_name``: as in ``Subscription``.
        """
        async with self._database.transaction(exclusive=False) as session:
            asked = await session.get(InboxRow, int(question)) if question.isdecimal() else None
            if asked is None:
                return False
            row = SubscriptionRow(
                channel_id=asked.channel_id,
                thread=asked.thread,
                version_id=citation.version_id,
                page=citation.page,
                quote=citation.quote,
                language=language,
                event_key=asked.event_key,
                address={name: value for name, value in asked.address.items() if name not in PERSONAL_KEYS}
                | ({PAGE_CHANNEL: channel_name} if channel_name else {}),
            )
            new = insert(SubscriptionRow).values(row.model_dump(exclude={"id"}))
            await session.execute(new.on_conflict_do_nothing())
            return True

    async def remove(self, channel_id: int, thread: str) -> int:
        """End all subscriptions of a thread; return their number."""
        gone = delete(SubscriptionRow).where(
            col(SubscriptionRow.channel_id) == channel_id, col(SubscriptionRow.thread) == thread
        )
        async with self._database.transaction(exclusive=False) as session:
            return len((await session.scalars(gone.returning(col(SubscriptionRow.id)))).all())

    async def get(self, subscription: int) -> Subscription | None:
        """Return a subscription; None if it was ended."""
        async with self._database.snapshot() as session:
            row = await session.get(SubscriptionRow, subscription)
        if row is None:
            return None
        shown = CitedPlace(row.version_id, row.page, row.quote)
        return Subscription(row.id, shown, row.language, row.address.get(PAGE_CHANNEL, ""))

    async def move(self, subscription: int, before: CitedPlace, after: CitedPlace) -> None:
        """Record that the thread was notified: it now follows the page in this version."""
        row = update(SubscriptionRow).where(
            col(SubscriptionRow.id) == subscription, col(SubscriptionRow.version_id) == before.version_id
        )
        async with self._database.transaction(exclusive=False) as session:
            await session.execute(row.values(version_id=after.version_id, page=after.page))
