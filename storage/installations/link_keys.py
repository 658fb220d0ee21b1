"""Keys that sign links, shared by all machines of a database.

They are not encrypted: a machine with an empty home must verify links with what it reads here. Where readers
of the database must not be able to sign, a mounted file holds the keys instead (FOOTNOTE_LINK_KEYS).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import delete, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from storage.clock import utc_now
from storage.sql.audit import AuditedAction, record_action
from storage.sql.database import Database
from storage.sql.tables import LinkKeyRow


@dataclass(frozen=True, slots=True)
class StoredLinkKey:
    """Signing key."""

    # 0 to 255; consecutive keys never share one.
    number: int
    secret: bytes = field(repr=False)
    made_at: datetime


class LinkKeyStore:
    """Reads and adds keys; every method raises ``DatabaseUnavailable`` if the database fails."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def keys(self) -> list[StoredLinkKey]:
        """Return all keys, newest first."""
        async with self._database.snapshot() as session:
            return await _keys(session)

    async def begin(self, secret: bytes) -> list[StoredLinkKey]:
        """Store the first key unless another process has done so; return the stored keys."""
        async with self._database.transaction() as session:
            if held := await _keys(session):
                return held
            session.add(LinkKeyRow(number=1, secret=secret))
            await session.flush()
            return await _keys(session)

    async def add(self, secret: bytes, most: int, actor: str) -> None:
        """Add a key, remove the oldest beyond ``most``, and record the action."""
        async with self._database.transaction() as session:
            held = await _keys(session)
            number = (held[0].number + 1) % 256 if held else 1
            session.add(LinkKeyRow(number=number, secret=secret, made_at=utc_now()))
            await session.flush()
            kept = select(col(LinkKeyRow.id)).order_by(col(LinkKeyRow.id).desc()).limit(most)
            ids = list(await session.scalars(kept))
            await session.execute(delete(LinkKeyRow).where(col(LinkKeyRow.id).not_in(ids)))
            await record_action(session, AuditedAction(actor, "rotate key", "", str(number)))


async def _keys(session: AsyncSession) -> list[StoredLinkKey]:
    rows = await session.scalars(select(LinkKeyRow).order_by(col(LinkKeyRow.id).desc()))
    return [StoredLinkKey(row.number, row.secret, row.made_at) for row in rows]
