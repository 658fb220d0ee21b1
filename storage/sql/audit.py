"""The audit: what was done that only some may do, or for good, what was refused, which links were opened.

It holds ids only. It outlives what it tells of, and goes after FOOTNOTE_AUDIT_DAYS. Each entry holds the
SHA-256 of itself and of the entry before it. So an entry that was changed, taken out or put in between shows,
and a digest that was written down elsewhere proves all entries up to it.
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
# Entries that are read at a time.
BATCH = 2000
OPEN_LINK = "open link"
# The fact that has the last entry's digest: entries that were taken off the end are missed by it.
HEAD = "audit head"
# Another process may begin the chain at the same moment.
_BEGIN = text("INSERT INTO fact (name, value) VALUES (:head, '') ON CONFLICT DO NOTHING")


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One line of it."""

    id: int
    at: datetime
    actor: str
    action: str
    channel: str
    subject: str
    is_done: bool
    # The digest of the entry before it; of the first one ever, nothing.
    previous: str
    digest: str


@dataclass(frozen=True, slots=True)
class AuditedAction:
    """What somebody does, before it is kept."""

    # As FOOTNOTE_ADMINS names people.
    actor: str
    action: str
    # The tenant name of where it is said.
    channel: str
    # An id of what it is done to.
    subject: str = ""
    is_done: bool = True


@dataclass(frozen=True, slots=True)
class AuditCheck:
    """Whether the entries that are kept follow from each other."""

    entries: int
    # The digest of the last one.
    head: str
    # What does not hold, as a sentence; nothing when all does.
    fault: str = ""
    # Whether a digest that was asked about is among them; None: none was.
    is_known: bool | None = None


async def record_action(session: AsyncSession, action: AuditedAction) -> None:
    """Keep an action in the transaction that does it; others that keep one wait for its end."""
    head = await session.get(FactRow, HEAD, with_for_update=True)
    if head is None:
        await session.execute(_BEGIN, {"head": HEAD})
        head = await session.get_one(FactRow, HEAD, with_for_update=True)
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
    """SHA-256 of an entry and of the digest before it, in hexadecimal digits.

    Of the UTF-8 of a JSON list: previous digest, time (UTC, ISO 8601 with microseconds), actor, action,
    channel, subject, whether it was done. So anybody can compute it from an export.
    """
    at = row.at.astimezone(UTC).isoformat(timespec="microseconds")
    said = [row.previous, at, row.actor, row.action, row.channel, row.subject, bool(row.is_done)]
    return hashlib.sha256(json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode()).hexdigest()


class AuditLog:
    """Keeps actions, lists them, and says whether all of them are as they were kept."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def keep(self, action: AuditedAction) -> None:
        """Keep one that changes nothing in SQL, or was refused.

        Raises:
            storage.errors.DatabaseUnavailable: it could not be kept, so it must not be done.
        """
        async with self._database.transaction(exclusive=False) as session:
            await record_action(session, action)

    async def latest(self, *, with_links: bool = False) -> list[AuditEntry]:
        """Return the last ones, oldest first, without links that were opened unless they are asked for."""
        query = select(AuditRow).order_by(col(AuditRow.id).desc()).limit(MAX_LISTED)
        if not with_links:
            query = query.where(col(AuditRow.action) != OPEN_LINK)
        async with self._database.snapshot() as session:
            rows = list(await session.scalars(query))
        return [_entry(row) for row in reversed(rows)]

    async def batches(self) -> AsyncIterator[Sequence[AuditEntry]]:
        """Yield all of them, oldest first."""
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
        """True if each entry follows from the one before it, up to the last one that was ever kept.

        What is older than FOOTNOTE_AUDIT_DAYS is gone, so the first one that is kept is believed.

        Args:
            known: a digest that was written down earlier.
        """
        async with self._database.snapshot() as session:
            fact = await session.get(FactRow, HEAD)
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
        """True if the head was read; of an audit that is wholly too old, nothing is kept."""
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
