"""Change counters by table, so that idle worker lanes query only when there may be work.

Only commits of this process are counted, so each lane also polls every few seconds.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import TableClause, UpdateBase, event
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import ORMExecuteState, Session, UOWTransaction
from sqlmodel import SQLModel

from storage.clock import monotonic_seconds, utc_now

# Poll interval for commits of other processes. Shorter than a question's lease, so that a process that saw
# the lease takes over when it ends.
POLL_SECONDS = 15.0
_CHANGED = "changed tables"


class ChangeCounters:
    """Counts this process's commits by table, and tracks when a waiting row of a table becomes due."""

    def __init__(self) -> None:
        self._commits: Counter[str] = Counter()
        self._outages = 0
        self._due_at: dict[str, float] = {}

    def note(self, tables: Iterable[str]) -> None:
        """Count a commit that changed these tables."""
        self._commits.update(tables)

    def note_outage(self) -> None:
        """Make every lane query again: its last query, or a commit that it waits for, may have failed."""
        self._outages += 1

    def schedule(self, table: type[SQLModel], at: datetime) -> None:
        """Schedule a change of the table for this time, at which a lease ends or a retry is due."""
        seconds = (at - utc_now()).total_seconds()
        name = str(table.__tablename__)
        self._due_at[name] = min(monotonic_seconds() + seconds, self._due_at.get(name, math.inf))

    def count(self, tables: Iterable[str]) -> int:
        """Return the number of changes of these tables since the process started."""
        for name in tables:
            if self._due_at.get(name, math.inf) <= monotonic_seconds():
                del self._due_at[name]
                self._commits[name] += 1
        return self._outages + sum(self._commits[name] for name in tables)


class PollGate:
    """Decides whether a lane has to query its tables."""

    def __init__(
        self, changes: ChangeCounters, *tables: type[SQLModel], seconds: float = POLL_SECONDS
    ) -> None:
        """Open after each change of these tables, and every ``seconds`` seconds in any case."""
        self._changes = changes
        self._tables = [str(table.__tablename__) for table in tables]
        self._seconds = seconds
        self._seen = -1
        self._shut_until = -math.inf

    def should_poll(self) -> bool:
        """Return True, and reset, after a change or when the poll interval has passed."""
        seen, now = self._changes.count(self._tables), monotonic_seconds()
        if seen == self._seen and now < self._shut_until:
            return False
        self._seen, self._shut_until = seen, now + self._seconds
        return True


def changed_tables(session: AsyncSession) -> set[str]:
    """Return the names of the tables that statements and flushes of a session wrote to."""
    tables: set[str] = session.info.get(_CHANGED, set())
    return tables


@event.listens_for(Session, "do_orm_execute")
def _note_statement(state: ORMExecuteState) -> None:
    # Bulk statements bypass the unit of work, so ``after_flush`` does not see them.
    statement = state.statement
    if isinstance(statement, UpdateBase) and isinstance(statement.table, TableClause):
        state.session.info.setdefault(_CHANGED, set()).add(statement.table.name)


@event.listens_for(Session, "after_flush")
def _note_flush(session: Session, _context: UOWTransaction) -> None:
    rows = (*session.new, *session.dirty, *session.deleted)
    session.info.setdefault(_CHANGED, set()).update(row.__tablename__ for row in rows)
