"""Audit log of privileged or irreversible actions, of refusals, and of opened links.

It holds ids only, outlives the objects that it names, and is purged after FOOTNOTE_AUDIT_DAYS. The entries
form a hash chain: each holds the SHA-256 of itself and of the previous entry. So a changed, removed or
inserted entry is detected, and a digest recorded elsewhere proves all entries up to it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from storage.clock import utc_now
from storage.sql.database import Database
from storage.sql.tables import AuditRow, FactRow

MAX_LISTED = 500
# Entries per query.
BATCH = 2000
OPEN_LINK = "open link"
BACK_UP = "back up"
# Name of the fact that stores the last entry's digest: it reveals a truncated chain.
HEAD_FACT = "audit head"
# DO NOTHING: another process may start the chain at the same moment.
_BEGIN = text("INSERT INTO fact (name, value) VALUES (:head, '') ON CONFLICT DO NOTHING")


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """Entry of the audit log."""

    id: int
    at: datetime
    actor: str
    action: str
    channel: str
    subject: str
    is_done: bool
    # Digest of the previous entry; "" in the first one.
    previous: str
    digest: str


@dataclass(frozen=True, slots=True)
class AuditedAction:
    """Action to be recorded."""

    # Person, in the format of FOOTNOTE_ADMINS.
    actor: str
    action: str
    # Tenant name of the channel in which the action was requested.
    channel: str
    # Id of the object acted on.
    subject: str = ""
    is_done: bool = True


@dataclass(frozen=True, slots=True)
class AuditCheck:
    """Result of verifying the hash chain."""

    entries: int
    # Digest of the last entry.
    head: str
    # First inconsistency, as a sentence; "" if there is none.
    fault: str = ""
    # True if the given digest is in the chain; None if none was given.
    is_known: bool | None = None


async def record_action(session: AsyncSession, action: AuditedAction) -> None:
    """Record an action in the transaction that performs it."""
    # Each entry hashes the previous one, so the row lock serializes concurrent recorders.
    head = await session.get(FactRow, HEAD_FACT, with_for_update=True)
    if head is None:
        await session.execute(_BEGIN, {"head": HEAD_FACT})
        head = await session.get_one(FactRow, HEAD_FACT, with_for_update=True)
    row = AuditRow(
        at=utc_now(),
        actor=action.actor,
        action=action.action,
        channel=action.channel,
        subject=action.subject,
        is_done=action.is_done,
        previous=head.value,
    )
    row.digest = head.value = digest_of(row)
    session.add(row)


def digest_of(row: AuditRow | AuditEntry) -> str:
    """Return the SHA-256 of an entry and of the previous digest, in hexadecimal digits.

    The input is the UTF-8 of a JSON list: previous digest, time (UTC, ISO 8601 with microseconds), actor,
    action, channel, subject, is_done. So anyone can recompute it from an export.
    """
    at = row.at.astimezone(UTC).isoformat(timespec="microseconds")
    said = [row.previous, at, row.actor, row.action, row.channel, row.subject, bool(row.is_done)]
    return hashlib.sha256(json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode()).hexdigest()


class AuditLog:
    """Records, lists and verifies audit entries."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def record(self, action: AuditedAction) -> None:
        """Record an action that changes nothing in SQL, or that was refused.

        Raises:
            storage.errors.DatabaseUnavailable: it was not recorded, so it must not be performed.
        """
        async with self._database.transaction(exclusive=False) as session:
            await record_action(session, action)

    async def latest(self, *, with_links: bool = False) -> list[AuditEntry]:
        """Return at most MAX_LISTED of the latest entries, oldest first; opened links only ``with_links``."""
        query = select(AuditRow).order_by(col(AuditRow.id).desc()).limit(MAX_LISTED)
        if not with_links:
            query = query.where(col(AuditRow.action) != OPEN_LINK)
        async with self._database.snapshot() as session:
            rows = list(await session.scalars(query))
        return [_entry(row) for row in reversed(rows)]

    async def last(self, action: str) -> AuditEntry | None:
        """Return the last entry of an action, None if there is none."""
        query = select(AuditRow).where(col(AuditRow.action) == action).order_by(col(AuditRow.id).desc())
        async with self._database.snapshot() as session:
            row = await session.scalar(query.limit(1))
        return _entry(row) if row else None

    async def batches(self) -> AsyncIterator[Sequence[AuditEntry]]:
        """Yield all entries in batches, oldest first."""
        after = 0
        while True:
            query = select(AuditRow).where(col(AuditRow.id) > after).order_by(col(AuditRow.id)).limit(BATCH)
            async with self._database.snapshot() as session:
                rows = [_entry(row) for row in await session.scalars(query)]
            if not rows:
                return
            yield rows
            after = rows[-1].id

    async def verify(self, known: str | None = None) -> AuditCheck:
        """Verify the hash chain up to the last recorded entry.

        Entries older than FOOTNOTE_AUDIT_DAYS are purged, so the first stored entry is trusted.

        Args:
            known: a digest that was recorded earlier.
        """
        async with self._database.snapshot() as session:
            fact = await session.get(FactRow, HEAD_FACT)
        entries, last, is_known = 0, None, None if known is None else False
        async for batch in self.batches():
            for entry in batch:
                if entry.digest != digest_of(entry):
                    return AuditCheck(entries, last or "", f"entry {entry.id} was changed", is_known)
                if last is not None and entry.previous != last:
                    return AuditCheck(entries, last, f"entries before {entry.id} are missing", is_known)
                entries, last = entries + 1, entry.digest
                is_known = is_known or (None if known is None else known == last)
        if fact is not None and not await self._is_kept(fact.value, last):
            return AuditCheck(entries, last or "", "entries at the end are missing", is_known)
        return AuditCheck(entries, last or "", is_known=is_known)

    async def _is_kept(self, head: str, last: str | None) -> bool:
        """True if the head's entry is stored; also true of a log that has expired entirely."""
        if last is None or head == last:
            return True
        async with self._database.snapshot() as session:
            found = await session.scalar(select(col(AuditRow.id)).where(col(AuditRow.digest) == head))
        return found is not None


def _entry(row: AuditRow) -> AuditEntry:
    return AuditEntry(
        id=row.id,
        at=row.at,
        actor=row.actor,
        action=row.action,
        channel=row.channel,
        subject=row.subject,
        is_done=row.is_done,
        previous=row.previous,
        digest=row.digest,
    )
