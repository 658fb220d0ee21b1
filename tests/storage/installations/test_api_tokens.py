"""Tokens of programs on both engines: shown once, stored hashed, audited, gone with their channel."""

from __future__ import annotations

import hashlib

from sqlalchemy import text

from storage.chat.channels import Channels
from storage.installations.api_tokens import ApiTokens
from storage.models import ChannelKey, Platform
from storage.sql.audit import AuditLog
from storage.sql.database import Database

IT = ChannelKey(Platform.LOCAL, "", "it")


async def test_a_token_is_stored_as_its_hash_only(database: Database) -> None:
    """Shows that no column has the token, and that each is 256 random bits."""
    tokens, channel = ApiTokens(database), await Channels(database).ensure(IT)
    (number, token), (_, other) = [await tokens.create("wiki", channel, "local") for _ in range(2)]
    assert token != other
    assert len(token.removeprefix("footnote_")) == 43
    async with database.snapshot() as session:
        rows = [list(row) for row in await session.execute(text("SELECT * FROM api_token"))]
    assert token not in str(rows)
    assert hashlib.sha256(token.encode()).hexdigest() in rows[0]
    found = await tokens.find(token)
    assert found is not None
    assert (found.id, found.name, found.channel_id) == (number, "wiki", channel.id)
    assert await tokens.find(token[:-1]) is None
    assert await tokens.find("\ud800") is None


async def test_creating_and_revoking_are_audited(database: Database) -> None:
    """A revoked token is found no more; revoking twice is recorded as refused."""
    tokens, channel = ApiTokens(database), await Channels(database).ensure(IT)
    assert not await tokens.has_any()
    number, token = await tokens.create("wiki", channel, "local")
    everything, _ = await tokens.create("all", None, "local")
    assert [(one.id, one.channel) for one in await tokens.all()] == [(number, "it"), (everything, "")]
    assert [await tokens.revoke(number, "local") for _ in range(2)] == [True, False]
    assert await tokens.find(token) is None
    entries = [(one.action, one.subject, one.is_done) for one in await AuditLog(database).latest()]
    assert entries == [
        ("create token", str(number), True),
        ("create token", str(everything), True),
        ("revoke token", str(number), True),
        ("revoke token", str(number), False),
    ]
