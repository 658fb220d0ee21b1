"""Queues of work rows, leased to one worker at a time: claim, renewal, retry, takeover from dead workers.

Claiming a row raises its fence, a fencing token; every later write compares fence and state first, so a
worker that lost its lease can change nothing. The owner's name holds machine and process, so that another
process on the machine can tell whether it is dead. A lease or a wait that ends further ahead than any may
comes from a wrong clock and counts as past.
"""

from __future__ import annotations

import os
import random
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar
from uuid import UUID, uuid4

from sqlalchemy import ColumnElement, Select, func, or_, select, update
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import SQLModel, col

from storage.clock import utc_now
from storage.errors import LeaseLost
from storage.sql.columns import LeaseColumns
from storage.sql.database import Database
from storage.task_group import doubled

MAX_BACKOFF_SECONDS = 30.0
# No engine may request a longer wait: a later time was written by a wrong clock.
MAX_WAIT = timedelta(minutes=15)
_CHANCE = random.SystemRandom()

Row = TypeVar("Row", bound=SQLModel)


def process_name() -> str:
    """Return a unique owner name: machine, process and a random part."""
    return f"{socket.gethostname()}:{os.getpid()}:{uuid4().hex[:8]}"


def is_process_dead(owner: str) -> bool:
    """True if the owner's process ran on this machine and has ended."""
    machine, _, process = owner.rpartition(":")[0].rpartition(":")
    if machine != socket.gethostname() or not process.isdecimal():
        return False
    try:
        # Signal 0 only checks that the process exists.
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def is_running(until: datetime, now: datetime, longest: timedelta) -> bool:
    """True if a lease that was read is still held; one that is longer than ``longest`` never is."""
    return now < until <= now + longest


def backoff(tries: int, max_seconds: float = MAX_BACKOFF_SECONDS) -> timedelta:
    """Return the backoff after ``tries`` attempts: from 1 s, doubling up to ``max_seconds``, with jitter."""
    seconds = doubled(max(tries, 1), max_seconds)
    return timedelta(seconds=_CHANCE.uniform(seconds / 2, seconds))


@dataclass(frozen=True, slots=True)
class Lease:
    """Right to perform one step on a row while its state and fence are unchanged."""

    queue: LeasedQueue[Any]
    id: UUID | int
    state: str
    fence: int

    async def renew(self) -> None:
        """Extend the lease.

        Raises:
            LeaseLost: another worker has the row, and the step must end.
        """
        async with self.queue.holding(self, exclusive=False, brief=True) as (_, row):
            row.lease_until = self.queue.ends_at()


class LeasedQueue(Generic[Row]):
    """Rows of one table, leased to ``owner`` for ``seconds`` at a time.

    Tables without a fence have a column of their own that tells claims apart; see ``change``.
    """

    def __init__(
        self,
        database: Database,
        table: type[Row],
        owner: str = "",
        seconds: float = MAX_WAIT.total_seconds() / 2,
        *,
        until: str = "lease_until",
        max_backoff_seconds: float = MAX_BACKOFF_SECONDS,
    ) -> None:
        """Lease rows to ``owner``, a name that no other process uses; ``until``: column of a lease's end."""
        self.database, self.table, self.owner, self.seconds = database, table, owner, seconds
        self._until_name, self._until = until, col(getattr(table, until))
        self._max_backoff_seconds = max_backoff_seconds

    def backoff(self, tries: int) -> timedelta:
        """Return the backoff after ``tries`` attempts of a step."""
        return backoff(tries, self._max_backoff_seconds)

    def ends_at(self, seconds: float | None = None) -> datetime:
        """Return the end of a lease, or of a wait of ``seconds``, that begins now."""
        return utc_now() + min(timedelta(seconds=self.seconds if seconds is None else seconds), MAX_WAIT)

    def is_free(self) -> ColumnElement[bool]:
        """True if nobody holds the row; leases of other processes may be twice as long as ours."""
        return _is_past(self._until, timedelta(seconds=2 * self.seconds))

    async def claim(self, session: AsyncSession, query: Select[Any]) -> tuple[Row, bool] | None:
        """Claim the first free row of ``query``: (row, True if a dead worker held it), or None.

        If there is none, lanes that wait for the table query again when the next lease ends or retry is due.
        """
        for row in await self.lock_free_rows(session, query, 1):
            return row, self.lease(row)
        table: Any = self.table
        next_free = func.min(func.coalesce(self._until, table.next_attempt_at))
        if at := await session.scalar(query.with_only_columns(next_free).order_by(None)):
            self.database.changes.schedule(self.table, at)
        return None

    async def lock_free_rows(self, session: AsyncSession, query: Select[Any], limit: int) -> Sequence[Row]:
        """Return the first free rows of ``query``, locked for this transaction; ``lease`` claims one."""
        is_free, table = self.is_free(), self.table
        if issubclass(table, LeaseColumns):
            is_free &= _is_past(col(table.next_attempt_at), MAX_WAIT)
        # SKIP LOCKED: never wait for a row that another worker is claiming.
        locked = query.where(is_free).limit(limit).with_for_update(skip_locked=True, of=table)
        rows: Sequence[Row] = (await session.execute(locked)).scalars().all()
        return rows

    def lease(self, row: Any) -> bool:
        """Claim a row that this transaction has locked; return True if a dead worker held it."""
        was_abandoned = row.lease_owner is not None
        row.fence += 1
        row.lease_owner, row.lease_until, row.next_attempt_at = self.owner, self.ends_at(), None
        return was_abandoned

    def release(self, row: Any, reason: str | None = None, at_least: float = 0) -> None:
        """Release a row, to be claimed again at once, or with a ``reason`` to wait after a backoff.

        ``at_least``: seconds that an engine requested. Every claim raises the fence, so it counts the tries.
        """
        wait = min(max(self.backoff(row.fence), timedelta(seconds=at_least)), MAX_WAIT)
        end_lease(row, reason, None if reason is None else wait)

    @asynccontextmanager
    async def holding(
        self, lease: Lease, *, exclusive: bool = True, brief: bool = False
    ) -> AsyncIterator[tuple[AsyncSession, Row]]:
        """Yield (session, the leased row, locked) in a transaction, as ``Database.transaction``.

        Raises:
            LeaseLost: another worker has the row.
        """
        async with self.database.transaction(exclusive=exclusive, brief=brief) as session:
            query = select(self.table).filter_by(id=lease.id, fence=lease.fence, state=lease.state)
            row = (await session.scalars(query.with_for_update())).first()
            if row is None:
                raise LeaseLost(f"lease lost: {self.table.__tablename__} {lease.id}")
            yield session, row

    async def change(self, *guard: ColumnElement[bool], **values: Any) -> int:
        """Update the rows that ``guard`` still selects; return their number.

        A compare-and-set, if the guard names what each claim changes.
        """
        if isinstance(until := values.get(self._until_name), datetime):
            self.database.changes.schedule(self.table, until)
        changed = update(self.table).where(*guard).values(**values).returning(self._until)
        async with self.database.transaction(exclusive=False) as session:
            return len((await session.scalars(changed)).all())


def end_lease(row: LeaseColumns, reason: str | None = None, wait: timedelta | None = None) -> None:
    """Release a row that is finished, or is to be claimed again after ``wait``."""
    row.lease_owner = row.lease_until = None
    row.reason = reason
    row.next_attempt_at = utc_now() + wait if wait else None


def revoke(row: LeaseColumns) -> bool:
    """Raise the fence, so that a worker that holds the row loses the lease; return True if one does."""
    was_held = row.lease_owner is not None
    row.fence += 1
    row.lease_owner = row.lease_until = None
    return was_held


def _is_past(at: Any, longest: timedelta) -> ColumnElement[bool]:
    now = utc_now()
    return or_(at.is_(None), at <= now, at > now + longest)
