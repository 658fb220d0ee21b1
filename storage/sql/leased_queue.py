"""Leases on work rows: claim, renewal, expiry, and takeover from dead workers.

Claiming a row raises its fence, a fencing token; every later write compares fence and state first, so a
worker that lost its lease can change nothing. The owner's name holds machine and process, so that another
process on the machine can tell whether it is dead. All leases of the program expire by the rules of
``has_no_lease``, ``is_running`` and ``is_due``: an end further ahead than any lease comes from a wrong clock
and counts as past.
"""

from __future__ import annotations

import os
import random
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID, uuid4

from sqlalchemy import ColumnElement, Select, func, or_, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from storage.clock import utc_now
from storage.sql.database import Database
from storage.sql.tables import InboxRow, PublicationRow, ReadingRow

MAX_BACKOFF_SECONDS = 30.0
# No engine may request a longer wait: a later time was written by a wrong clock.
MAX_WAIT = timedelta(minutes=15)
_CHANCE = random.SystemRandom()

WorkRow = TypeVar("WorkRow", ReadingRow, PublicationRow, InboxRow)


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


def has_no_lease(until: Any, now: datetime, longest: timedelta) -> ColumnElement[bool]:
    """True if nobody holds the row, by its column ``lease_until``.

    Args:
        until: the column.
        now: the current time.
        longest: maximum length of a lease; an end further ahead comes from a wrong clock.
    """
    return or_(col(until).is_(None), col(until) <= now, col(until) > now + longest)


def is_running(until: datetime, now: datetime, longest: timedelta) -> bool:
    """True if a lease that was read is still held; ``longest`` as in ``has_no_lease``."""
    return now < until <= now + longest


def is_due(next_attempt_at: Any, now: datetime) -> ColumnElement[bool]:
    """True if the row needs no more backoff, by its column ``next_attempt_at``."""
    at = col(next_attempt_at)
    return or_(at.is_(None), at <= now, at > now + MAX_WAIT)


@dataclass(frozen=True, slots=True)
class Lease:
    """Right to perform one step on a row while its state and fence are unchanged."""

    table: type[ReadingRow] | type[PublicationRow]
    id: UUID
    state: str
    fence: int


def backoff(tries: int, max_seconds: float = MAX_BACKOFF_SECONDS) -> timedelta:
    """Return the backoff after ``tries`` attempts: from 1 s, doubling up to ``max_seconds``, with jitter."""
    seconds = min(max_seconds, 2.0 ** min(max(tries - 1, 0), 10))
    return timedelta(seconds=_CHANCE.uniform(seconds / 2, seconds))


class Leases:
    """Claims, renews and checks leases for one owner."""

    def __init__(
        self,
        database: Database,
        owner: str,
        seconds: float,
        *,
        max_backoff_seconds: float = MAX_BACKOFF_SECONDS,
    ) -> None:
        """Lease rows to ``owner``, a name that no other process uses, for ``seconds`` at a time."""
        self._database = database
        self._max_backoff_seconds = max_backoff_seconds
        self.owner = owner
        self.seconds = seconds

    def backoff(self, tries: int) -> timedelta:
        """Return the backoff after ``tries`` attempts of a step."""
        return backoff(tries, self._max_backoff_seconds)

    async def claim(
        self, session: AsyncSession, table: type[WorkRow], query: Select[Any]
    ) -> tuple[WorkRow, bool] | None:
        """Claim the first free row of ``query``: (row, True if a dead worker held it), or None.

        If there is none, lanes that wait for the table query again when the next lease ends or retry is due.
        """
        for row in await self.lock_free_rows(session, table, query, 1):
            was_abandoned = row.lease_owner is not None
            self.lease(row)
            return row, was_abandoned
        next_free = func.min(func.coalesce(col(table.lease_until), col(table.next_attempt_at)))
        if at := await session.scalar(query.with_only_columns(next_free).order_by(None)):
            self._database.changes.schedule(table, at)
        return None

    async def lock_free_rows(
        self, session: AsyncSession, table: type[WorkRow], query: Select[Any], limit: int
    ) -> Sequence[WorkRow]:
        """Return the first free rows of ``query``, locked for this transaction; ``lease`` claims one."""
        now = utc_now()
        # leases of other processes may be twice as long as ours
        is_free = has_no_lease(table.lease_until, now, timedelta(seconds=2 * self.seconds))
        due = query.where(is_free & is_due(table.next_attempt_at, now))
        # SKIP LOCKED: never wait for a row that another worker is claiming.
        locked = due.limit(limit).with_for_update(skip_locked=True, of=table)
        rows: Sequence[WorkRow] = (await session.execute(locked)).scalars().all()
        return rows

    def lease(self, row: WorkRow) -> None:
        """Claim a row that this transaction has locked."""
        row.fence += 1
        row.lease_owner = self.owner
        row.lease_until = utc_now() + timedelta(seconds=self.seconds)
        row.next_attempt_at = None

    async def renew(self, lease: Lease) -> bool:
        """Extend the lease; return False if it was lost and the step must end."""
        async with self._database.transaction(exclusive=False) as session:
            table: Any = lease.table
            row = await locked_if_held(session, lease, table)
            if row is not None:
                row.lease_until = utc_now() + timedelta(seconds=self.seconds)
            return row is not None


async def locked_if_held(session: AsyncSession, lease: Lease, table: type[WorkRow]) -> WorkRow | None:
    """Return the leased row, locked for this transaction; None if the lease was lost."""
    query = select(table).filter_by(id=lease.id, fence=lease.fence, state=lease.state)
    row: WorkRow | None = (await session.execute(query.with_for_update())).scalars().first()
    return row


def release(row: WorkRow, reason: str | None = None, wait: timedelta | None = None) -> None:
    """Release a row, to be claimed again after ``wait``."""
    row.lease_owner = row.lease_until = None
    row.reason = reason
    row.next_attempt_at = utc_now() + wait if wait else None
