"""Leases on rows of work: who may do a step, until when, and how a dead worker's step is taken over.

Taking a row raises its fence; every later write compares the fence and the state first, so whoever lost the
lease can change nothing. A lease's owner is named by machine and process, so that another process of the
machine can see whether it is dead. All leases of the program end by the rules of ``has_no_lease``,
``is_running`` and ``is_due``: an end further ahead than any lease comes from a wrong clock and is past.
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

MAX_PAUSE_SECONDS = 30.0
# No engine may ask for a longer one: a wait that ends later was written by a clock that was wrong.
MAX_WAIT = timedelta(minutes=15)
_CHANCE = random.SystemRandom()

WorkRow = TypeVar("WorkRow", ReadingRow, PublicationRow, InboxRow)


def own_name() -> str:
    """Return a name that no other process ever has: machine, process, and a part by chance."""
    return f"{socket.gethostname()}:{os.getpid()}:{uuid4().hex[:8]}"


def is_surely_dead(owner: str) -> bool:
    """True if the process of this name ran on this machine and does not any more."""
    machine, _, process = owner.rpartition(":")[0].rpartition(":")
    if machine != socket.gethostname() or not process.isdecimal():
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def has_no_lease(until: Any, now: datetime, longest: timedelta) -> ColumnElement[bool]:
    """True if a column ``lease_until`` says that nobody holds the row.

    Args:
        until: the column.
        now: this moment.
        longest: no lease ends later than so long after ``now``, unless a clock was wrong.
    """
    return or_(col(until).is_(None), col(until) <= now, col(until) > now + longest)


def is_running(until: datetime, now: datetime, longest: timedelta) -> bool:
    """True if a lease that was read is held still; ``longest`` as in ``has_no_lease``."""
    return now < until <= now + longest


def is_due(next_attempt_at: Any, now: datetime) -> ColumnElement[bool]:
    """True if a column ``next_attempt_at`` says that the row does not rest."""
    at = col(next_attempt_at)
    return or_(at.is_(None), at <= now, at > now + MAX_WAIT)


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to do one step on one row while its state and fence stay as they are."""

    table: type[ReadingRow] | type[PublicationRow]
    id: UUID
    state: str
    fence: int


def pause(tries: int, max_seconds: float = MAX_PAUSE_SECONDS) -> timedelta:
    """Time to wait after ``tries`` tries: 1 s, then doubling up to ``max_seconds``, spread by chance."""
    seconds = min(max_seconds, 2.0 ** min(max(tries - 1, 0), 10))
    return timedelta(seconds=_CHANCE.uniform(seconds / 2, seconds))


class Leases:
    """Takes, renews and checks leases for one owner."""

    def __init__(
        self,
        database: Database,
        owner: str,
        seconds: float,
        *,
        max_pause_seconds: float = MAX_PAUSE_SECONDS,
    ) -> None:
        """Lease rows to ``owner``, a name no other process uses, for ``seconds`` at a time."""
        self._database = database
        self._max_pause_seconds = max_pause_seconds
        # A name that no other process uses.
        self.owner = owner
        self.seconds = seconds

    def pause(self, tries: int) -> timedelta:
        """Time to wait after ``tries`` tries of a step."""
        return pause(tries, self._max_pause_seconds)

    async def take(
        self, session: AsyncSession, table: type[WorkRow], query: Select[Any]
    ) -> tuple[WorkRow, bool] | None:
        """Lease the first free row of ``query``: (row, whether a dead worker held it), or None.

        Without one, lanes that wait for the table query again when the next lease ends or retry is due.
        """
        for row in await self.free(session, table, query, 1):
            was_abandoned = row.lease_owner is not None
            self.lease(row)
            return row, was_abandoned
        next_free = func.min(func.coalesce(col(table.lease_until), col(table.next_attempt_at)))
        if at := await session.scalar(query.with_only_columns(next_free).order_by(None)):
            self._database.changes.expect(table, at)
        return None

    async def free(
        self, session: AsyncSession, table: type[WorkRow], query: Select[Any], limit: int
    ) -> Sequence[WorkRow]:
        """The first free rows of ``query``, locked for this transaction; ``lease`` makes one of them ours."""
        now = utc_now()
        # another process's leases may be twice as long as ours
        is_free = has_no_lease(table.lease_until, now, timedelta(seconds=2 * self.seconds))
        due = query.where(is_free & is_due(table.next_attempt_at, now))
        locked = due.limit(limit).with_for_update(skip_locked=True, of=table)
        rows: Sequence[WorkRow] = (await session.execute(locked)).scalars().all()
        return rows

    def lease(self, row: WorkRow) -> None:
        """Make a row that this transaction holds ours."""
        row.fence += 1
        row.lease_owner = self.owner
        row.lease_until = utc_now() + timedelta(seconds=self.seconds)
        row.next_attempt_at = None

    async def renew(self, lease: Lease) -> bool:
        """Hold the row for longer; False when it is not ours any more and the step must end."""
        async with self._database.transaction(exclusive=False) as session:
            table: Any = lease.table
            row = await held(session, lease, table)
            if row is not None:
                row.lease_until = utc_now() + timedelta(seconds=self.seconds)
            return row is not None


async def held(session: AsyncSession, lease: Lease, table: type[WorkRow]) -> WorkRow | None:
    """Return the leased row, locked for this transaction; None when another worker or state took it."""
    query = select(table).filter_by(id=lease.id, fence=lease.fence, state=lease.state)
    row: WorkRow | None = (await session.execute(query.with_for_update())).scalars().first()
    return row


def release(row: WorkRow, reason: str | None = None, wait: timedelta | None = None) -> None:
    """Give a row back, to be taken again after ``wait``."""
    row.lease_owner = row.lease_until = None
    row.reason = reason
    row.next_attempt_at = utc_now() + wait if wait else None
