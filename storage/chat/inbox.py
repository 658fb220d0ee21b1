"""Inbox and outbox of questions: committed before acknowledgement, answered once.

A question is claimed by raising its fence; every later step is a compare-and-set on that fence, so a worker
that was presumed dead can change nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import timedelta
from typing import Any

from sqlalchemy import bindparam, delete, desc, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import SQLModel, col

from storage.chat.answer_sources import store_sources
from storage.chat.thread_memory import keep_turn
from storage.chat_models import STREAM_KEY, InboxItem, NewTurn, RecentQuestion, WithdrawnItem
from storage.clock import utc_now
from storage.errors import MessageTaken
from storage.models import Channel, Platform, TenantName
from storage.sql.database import Database
from storage.sql.fair_queue import next_turn, only_unseen, queue_positions, waiting_on
from storage.sql.leased_queue import MAX_BACKOFF_SECONDS, Lease, LeasedQueue, end_lease, revoke
from storage.sql.tables import ChannelRow, InboxRow, OutboxRow, QuestionRecordRow, TurnRow

WITHDRAWN = "its author deleted it"
# States of answers for which documents were searched.
SEARCHED = ("grounded", "partial", "passages", "not_found")
# Delay before a stopped question's answer is delivered, so that updates in flight reach its message first.
STOP_DELAY = timedelta(seconds=1)
_CHANNEL = "turn_in_channel"
# Idempotent inserts of a question, built once: building one takes longer than executing it.
_INSERT = {
    is_late: insert(SQLModel.metadata.tables["inbox"])
    .values(turn=next_turn(bindparam(_CHANNEL), is_late=is_late))
    .on_conflict_do_nothing()
    .returning(col(InboxRow.id))
    for is_late in (False, True)
}


class Inbox:
    """Stores questions from arrival until their answers are delivered.

    Calls raise DatabaseUnavailable if the database does not work; then nothing is changed. Those with an item
    raise LeaseLost if another worker has it.
    """

    def __init__(self, database: Database, *, max_backoff_seconds: float = MAX_BACKOFF_SECONDS) -> None:
        self._database = database
        self._rows = LeasedQueue(database, InboxRow, max_backoff_seconds=max_backoff_seconds)

    async def receive(
        self,
        channel: Channel,
        *,
        event_key: str,
        message_key: str,
        thread: str,
        text: str,
        address: dict[str, Any],
        is_late: bool = False,
    ) -> bool:
        """Commit a question; return False if its event or message is known."""
        row = InboxRow(
            platform=channel.platform,
            event_key=event_key,
            message_key=message_key,
            channel_id=channel.id,
            thread=thread,
            text=text,
            address=address,
            is_late=is_late,
        )
        values = row.model_dump(exclude={"id", "turn"}) | {_CHANNEL: channel.id}
        # SQLite accepts PostgreSQL's ON CONFLICT; an uncommitted duplicate is waited for.
        async with self._database.transaction(exclusive=False, brief=True) as session:
            return await session.scalar(_INSERT[is_late], values) is not None

    async def has_question(self, tenant: TenantName, thread: str) -> bool:
        """True if a question of this thread was answered, or is being answered."""
        asked = (
            select(col(InboxRow.id))
            .join(ChannelRow, col(ChannelRow.id) == InboxRow.channel_id)
            .where(col(ChannelRow.tenant) == tenant, col(InboxRow.thread) == thread)
            .where(col(InboxRow.state) != "failed")
        )
        async with self._database.snapshot() as session:
            return await session.scalar(asked.limit(1)) is not None

    async def question_of(self, tenant: TenantName, message_key: str) -> tuple[int, str] | None:
        """Return (channel, question) of a message in this tenant's channel; None if it asked nothing."""
        asked = (
            select(col(InboxRow.channel_id), col(InboxRow.id))
            .join(ChannelRow, col(ChannelRow.id) == InboxRow.channel_id)
            .where(col(ChannelRow.tenant) == tenant, col(InboxRow.message_key) == message_key)
        )
        async with self._database.snapshot() as session:
            row = (await session.execute(asked)).first()
        return (row[0], str(row[1])) if row else None

    async def question_of_reply(self, tenant: TenantName, message: str) -> tuple[int, str, str] | None:
        """Return (channel, question, language of the answer) of the bot's reply with this id in the channel.

        None if no stored answer has it.
        """
        asked = (
            select(col(InboxRow.channel_id), col(InboxRow.id), col(OutboxRow.answer))
            .join(ChannelRow, col(ChannelRow.id) == InboxRow.channel_id)
            .join(OutboxRow, col(OutboxRow.inbox_id) == InboxRow.id)
            .where(col(ChannelRow.tenant) == tenant)
            .where(col(OutboxRow.message)["id"].as_string() == message)
        )
        async with self._database.snapshot() as session:
            row = (await session.execute(asked.order_by(col(InboxRow.id).desc()))).first()
        return (row[0], str(row[1]), str(row[2].get("language", ""))) if row and row[2] else None

    async def recent_of(
        self, user: str, tenants: Collection[TenantName], limit: int
    ) -> Sequence[RecentQuestion]:
        """Return a person's questions to these channels' documents, newest first, without duplicates.

        Args:
            user: the value of ``user`` in addresses.
            tenants: of channels that this person may see.
        """
        asked = (
            select(col(ChannelRow.tenant), col(InboxRow.text), func.max(col(InboxRow.id)).label("newest"))
            .join(ChannelRow, col(ChannelRow.id) == InboxRow.channel_id)
            .join(OutboxRow, col(OutboxRow.inbox_id) == InboxRow.id)
            .where(col(ChannelRow.tenant).in_(tenants), col(InboxRow.text) != "")
            .where(col(InboxRow.address)["user"].as_string() == user)
            .where(col(OutboxRow.answer)["state"].as_string().in_(SEARCHED))
            .group_by(col(ChannelRow.tenant), col(InboxRow.text))
            .order_by(desc("newest"))
            .limit(limit)
        )
        where = select(col(InboxRow.id), col(InboxRow.address), col(OutboxRow.message)).join(OutboxRow)
        async with self._database.snapshot() as session:
            rows = (await session.execute(asked)).all()
            ids = [newest for *_, newest in rows]
            places = {
                id: (address, message or {})
                for id, address, message in await session.execute(where.where(col(InboxRow.id).in_(ids)))
            }
        return [RecentQuestion(TenantName(tenant), text, *places[newest]) for tenant, text, newest in rows]

    async def requeue_edited(self, platform: Platform, message_key: str, text: str) -> bool:
        """Requeue an edited question; return False if it is unknown, withdrawn or unchanged.

        The old answer stays visible until the new one is posted. A worker on the old text loses its lease.
        """
        async with self._database.transaction(exclusive=False) as session:
            row = await _by_message(session, platform, message_key)
            if row is None or row.text in ("", text):
                return False
            reply = await session.get(OutboxRow, row.id)
            if row.state == "failed" and reply is None:
                return False
            revoke(row)
            row.state, row.text = "waiting", text
            row.attempts, row.next_attempt_at, row.reason = 0, None, None
            await _forget_answer(session, row, reply)
            return True

    async def withdraw(self, platform: Platform, message_key: str) -> WithdrawnItem | None:
        """Erase a question that its author deleted, with its answer; None if it is unknown.

        Idempotent: a repeated call returns the same, because the answer's message may still have to be
        deleted.
        """
        async with self._database.transaction(exclusive=False) as session:
            row = await _by_message(session, platform, message_key)
            if row is None:
                return None
            reply = await session.get(OutboxRow, row.id)
            revoke(row)
            row.state, row.text, row.reason = "failed", "", WITHDRAWN
            await _forget_answer(session, row, reply)
            record = delete(QuestionRecordRow).where(col(QuestionRecordRow.channel_id) == row.channel_id)
            await session.execute(record.where(col(QuestionRecordRow.key) == str(row.id)))
            message = reply.message if reply else None
            is_posting = reply is not None and message is None
            others = await _others(session, row) if is_posting else ()
            return WithdrawnItem(row.address, message, is_posting=is_posting, others=others)

    async def take_message(self, platform: Platform, message_key: str, message: dict[str, Any]) -> bool:
        """Record a stream as the message of the question that may have begun it; False if it is another's."""
        async with self._database.transaction(exclusive=False) as session:
            row = await _by_message(session, platform, message_key)
            if row is None or not await _is_free(session, row, message):
                return False
            await _set_reply(session, row, message=message)
            return True

    async def stop(
        self,
        tenant: TenantName,
        thread: str,
        message_key: str,
        answer: Callable[[InboxItem], dict[str, Any] | None],
    ) -> Sequence[int]:
        """Replace the answers of a thread's running questions, to be delivered soon; return their ids.

        Their workers lose the lease. Questions whose answer is already stored, or that have no placeholder
        yet, are left alone.

        Args:
            message_key: of another question to stop, in the channel's main conversation.
            answer: returns the answer to store for a question; None: do not stop it.
        """
        is_meant = or_(col(InboxRow.thread) == thread, col(InboxRow.message_key) == message_key)
        asked = (
            select(InboxRow)
            .join(ChannelRow, col(ChannelRow.id) == InboxRow.channel_id)
            .where(col(ChannelRow.tenant) == tenant, col(InboxRow.state) == "waiting", is_meant)
        )
        stopped = []
        async with self._database.transaction(exclusive=False) as session:
            for row in await session.scalars(asked.with_for_update(of=InboxRow)):
                reply = await session.get(OutboxRow, row.id)
                if reply is None or reply.answer is not None or (given := answer(_item(row, reply))) is None:
                    continue
                revoke(row)
                row.attempts, row.next_attempt_at, row.reason = 0, utc_now() + STOP_DELAY, None
                reply.answer = given
                stopped.append(row.id)
        return stopped

    async def answer_of(
        self, platform: Platform, message_key: str
    ) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """Return (address, answer) of a message's question; None if no answer is stored."""
        async with self._database.snapshot() as session:
            row = await _by_message(session, platform, message_key)
            reply = await session.get(OutboxRow, row.id) if row else None
            return (row.address, reply.answer) if row and reply and reply.answer else None

    async def set_shared(self, platform: Platform, message_key: str, *, is_shared: bool) -> bool:
        """Record whether a private answer was shared in its channel; return False if nothing changed."""
        query = select(InboxRow).where(
            col(InboxRow.platform) == platform, col(InboxRow.message_key) == message_key
        )
        async with self._database.transaction(exclusive=False) as session:
            row = await session.scalar(query.with_for_update())
            if row is None or row.address.get("is_shared", False) is is_shared:
                return False
            row.address = {**row.address, "is_shared": is_shared}
            return True

    async def claim(
        self,
        owner: str,
        lease_seconds: float,
        platforms: Collection[Platform],
        *,
        closed_channels: Collection[int] = (),
    ) -> InboxItem | None:
        """Claim the next due question of ``platforms`` by turn; None if there is none.

        A lease that expired without release means that its worker died: that counts as an attempt.

        Args:
            owner: a name that no other worker uses.
            lease_seconds: time after which others may take over.
            platforms: those on which replies can be posted.
            closed_channels: channels in which nothing can be posted now, but messages can be updated.
        """
        rows = LeasedQueue(self._database, InboxRow, owner, lease_seconds)
        async with self._database.transaction(exclusive=False, brief=True) as session:
            taken = await rows.claim(session, waiting_on(platforms, closed_channels))
            if taken is None:
                return None
            row, was_abandoned = taken
            row.attempts += was_abandoned
            return _item(row, await session.get(OutboxRow, row.id))

    async def claim_unseen(
        self,
        owner: str,
        lease_seconds: float,
        platforms: Collection[Platform],
        limit: int,
        *,
        closed_channels: Collection[int] = (),
        may_post: Callable[[int], bool] = lambda _: True,
    ) -> Sequence[InboxItem]:
        """Claim questions without a placeholder, in turn, and record that one is being posted for each.

        Args:
            owner, lease_seconds, platforms, closed_channels: as in ``claim``.
            may_post: True if another message may be posted in a channel now; called once per free question.
        """
        queue = LeasedQueue(self._database, InboxRow, owner, lease_seconds)
        unseen = only_unseen(waiting_on(platforms, closed_channels))
        async with self._database.transaction(exclusive=False, brief=True) as session:
            free = await queue.lock_free_rows(session, unseen, limit)
            rows = [row for row in free if may_post(row.channel_id)]
            for row in rows:
                row.attempts += queue.lease(row)
                session.add(OutboxRow(inbox_id=row.id, state="posting"))
            counted = await session.execute(queue_positions([row.id for row in rows])) if rows else ()
            ahead: dict[int, int] = {question: count for question, count in counted}
            return [replace(_item(row, None), ahead=ahead.get(row.id, 0)) for row in rows]

    async def renew(self, item: InboxItem, lease_seconds: float) -> None:
        """Extend the lease to ``lease_seconds`` from now."""
        async with self._holding(item) as (_, row):
            row.lease_until = self._rows.ends_at(lease_seconds)

    async def mark_posting(self, item: InboxItem) -> None:
        """Record that a placeholder is about to be posted."""
        async with self._holding(item) as (session, _):
            await session.merge(OutboxRow(inbox_id=item.id, state="posting"))

    async def other_messages(self, item: InboxItem) -> Sequence[dict[str, Any]]:
        """Return the known messages of the other questions in a thread."""
        async with self._database.snapshot() as session:
            return await _others(session, item)

    async def mark_unposted(self, item: InboxItem) -> None:
        """Record that no placeholder was posted after all, according to its platform."""
        unposted = delete(OutboxRow).where(
            col(OutboxRow.inbox_id) == item.id, col(OutboxRow.state) == "posting"
        )
        async with self._holding(item) as (session, _):
            await session.execute(unposted)

    async def mark_placed(
        self, item: InboxItem, message: dict[str, Any], *, is_released: bool = False
    ) -> None:
        """Record the placeholder's id; ``is_released``: also release the question for any worker to answer.

        Raises:
            MessageTaken: it is a stream that belongs to another question.
        """
        async with self._holding(item) as (session, row):
            if STREAM_KEY in message and not await _is_free(session, item, message):
                raise MessageTaken(f"the stream already belongs to another question: question {item.id}")
            if is_released:
                end_lease(row, row.reason)
            await _set_reply(session, item, state="placed", message=message)

    async def save_answer(
        self,
        item: InboxItem,
        answer: dict[str, Any],
        turn: NewTurn | None = None,
        versions: Collection[int] = (),
    ) -> None:
        """Store the answer, so that it is never generated again, and the turn for the thread's memory.

        ``versions``: those that it cites.
        """
        async with self._holding(item, exclusive=True) as (session, _):
            is_outdated = await store_sources(session, item.id, versions)
            changed_at = utc_now() if is_outdated else None
            await _set_reply(session, item, answer=answer, changed_at=changed_at, shown_changes=None)
            if turn:
                await keep_turn(session, turn)

    async def mark_delivered(self, item: InboxItem) -> None:
        """Mark the question as done: its answer was delivered."""
        async with self._holding(item) as (session, row):
            end_lease(row)
            row.state = "done"
            reply = await session.get_one(OutboxRow, item.id)
            reply.state, reply.delivered_at = "delivered", utc_now()

    async def release(self, item: InboxItem) -> None:
        """Release a question, to be claimed at once."""
        async with self._holding(item) as (_, row):
            end_lease(row, row.reason)

    async def retry_later(
        self, item: InboxItem, reason: str, *, at_least: float = 0, is_own_fault: bool = False
    ) -> None:
        """Release a question for a retry, with exponential backoff; ``reason`` is for an admin.

        Args:
            reason: why it waits, without any of its text.
            at_least: minimum backoff in seconds, as requested by an engine; capped at MAX_WAIT.
            is_own_fault: count an attempt, because no engine is to blame.
        """
        async with self._holding(item) as (_, row):
            self._rows.release(row, reason, at_least)
            row.attempts += is_own_fault

    async def fail(self, item: InboxItem, reason: str) -> None:
        """Fail a question whose answer cannot be delivered; ``reason`` is for an admin."""
        async with self._holding(item) as (_, row):
            end_lease(row, reason)
            row.state = "failed"

    def _holding(
        self, item: InboxItem, *, exclusive: bool = False
    ) -> AbstractAsyncContextManager[tuple[AsyncSession, InboxRow]]:
        lease = Lease(self._rows, item.id, "waiting", item.fence)
        return self._rows.holding(lease, exclusive=exclusive, brief=True)


async def _is_free(session: AsyncSession, item: InboxItem | InboxRow, message: dict[str, Any]) -> bool:
    """True if no other question of its thread has the message; none can take it in this transaction."""
    channel = select(col(ChannelRow.id)).where(col(ChannelRow.id) == item.channel_id)
    # Locking the channel's row serializes two questions that want the same message.
    await session.execute(channel.with_for_update(key_share=True))
    return all(one.get("ts") != message["ts"] for one in await _others(session, item))


async def _others(session: AsyncSession, item: InboxItem | InboxRow) -> Sequence[dict[str, Any]]:
    """Return the messages of a thread's other questions; none for a channel's main conversation."""
    messages = (
        select(col(OutboxRow.message))
        .join(InboxRow, col(InboxRow.id) == OutboxRow.inbox_id)
        .where(col(InboxRow.channel_id) == item.channel_id, col(InboxRow.thread) == item.thread)
        .where(col(InboxRow.id) != item.id)
    )
    return [one for one in await session.scalars(messages) if one] if item.thread else []


async def _set_reply(session: AsyncSession, item: InboxItem | InboxRow, **values: Any) -> None:
    await session.execute(update(OutboxRow).where(col(OutboxRow.inbox_id) == item.id).values(**values))


async def _by_message(session: AsyncSession, platform: Platform, message_key: str) -> InboxRow | None:
    query = select(InboxRow).where(
        col(InboxRow.platform) == platform, col(InboxRow.message_key) == message_key
    )
    return await session.scalar(query)


async def _forget_answer(session: AsyncSession, row: InboxRow, reply: OutboxRow | None) -> None:
    if reply is not None:
        reply.answer = None
    await session.execute(delete(TurnRow).where(col(TurnRow.key) == str(row.id)))


def _item(row: InboxRow, reply: OutboxRow | None) -> InboxItem:
    return InboxItem(
        id=row.id,
        fence=row.fence,
        attempts=row.attempts,
        platform=Platform(row.platform),
        channel_id=row.channel_id,
        thread=row.thread,
        text=row.text,
        address=row.address,
        received_at=row.created_at,
        is_posting=reply is not None and reply.message is None,
        message=reply.message if reply else None,
        answer=reply.answer if reply else None,
        is_late=row.is_late,
    )
