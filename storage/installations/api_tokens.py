"""Bearer tokens of programs that use the API, each for one channel or for all.

A token is 256 random bits, so its SHA-256 is stored and cannot be reversed; the token itself is shown once.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import delete, select
from sqlmodel import col

from storage.models import Channel
from storage.sql.audit import AuditedAction, record_action
from storage.sql.database import Database
from storage.sql.tables import ApiTokenRow, ChannelRow

# Makes a leaked token recognizable to scanners of source code and logs.
PREFIX = "footnote_"
TOKEN_BYTES = 32
MAX_NAME_CHARS = 100
CREATE, REVOKE = "create token", "revoke token"


@dataclass(frozen=True, slots=True)
class ApiToken:
    """Stored token of a program, without its secret."""

    id: int
    # Given by the admin, to tell tokens apart.
    name: str
    # None: all channels.
    channel_id: int | None
    # Name of that channel; '' for all.
    channel: str
    created_at: datetime


class ApiTokens:
    """Creates, finds and revokes tokens.

    Calls raise DatabaseUnavailable if the database does not work; then nothing is changed.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(self, name: str, channel: Channel | None, actor: str) -> tuple[int, str]:
        """Store a new token for a channel, or for all; return its id, and the token, which nothing stores."""
        token = PREFIX + secrets.token_urlsafe(TOKEN_BYTES)
        row = ApiTokenRow(name=name, digest=_digest(token), channel_id=channel.id if channel else None)
        async with self._database.transaction() as session:
            session.add(row)
            await session.flush()
            tenant = channel.tenant if channel else ""
            await record_action(session, AuditedAction(actor, CREATE, tenant, str(row.id)))
            return row.id, token

    async def all(self) -> list[ApiToken]:
        """Return every token, oldest first."""
        named = select(ApiTokenRow, col(ChannelRow.name)).outerjoin(
            ChannelRow, col(ChannelRow.id) == ApiTokenRow.channel_id
        )
        async with self._database.snapshot() as session:
            rows = await session.execute(named.order_by(col(ApiTokenRow.id)))
            return [
                ApiToken(row.id, row.name, row.channel_id, name or "", row.created_at) for row, name in rows
            ]

    async def revoke(self, token_id: int, actor: str) -> bool:
        """Delete a token, which then opens nothing; return False if there is none."""
        async with self._database.transaction() as session:
            gone = delete(ApiTokenRow).where(col(ApiTokenRow.id) == token_id)
            row_id = await session.scalar(gone.returning(col(ApiTokenRow.id)))
            action = AuditedAction(actor, REVOKE, "", str(token_id), is_done=row_id is not None)
            await record_action(session, action)
            return row_id is not None

    async def find(self, token: str) -> ApiToken | None:
        """Return the stored token that this text is; None if it is none of ours."""
        # Looked up by digest: what the comparison's time reveals of a digest does not help to find a token.
        own = select(ApiTokenRow).where(col(ApiTokenRow.digest) == _digest(token))
        async with self._database.snapshot() as session:
            row = await session.scalar(own)
        return ApiToken(row.id, row.name, row.channel_id, "", row.created_at) if row else None

    async def has_any(self) -> bool:
        """True if there is a token, so that the API is on."""
        async with self._database.snapshot() as session:
            return await session.scalar(select(col(ApiTokenRow.id)).limit(1)) is not None


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()
