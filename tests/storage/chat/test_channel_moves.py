"""A conversation that its platform gives a new id stays the same channel."""

from __future__ import annotations

import pytest
from sqlmodel import select

from storage.chat.channels import Channels, MoveOutcome
from storage.models import ChannelKey, Platform
from storage.sql.audit import AuditLog
from storage.sql.database import Database
from storage.sql.tables import DocumentRow, FolderRow

OLD, NEW, NEWER, OTHER = (ChannelKey(Platform("slack"), "T1", name) for name in ("G1", "C1", "C2", "C3"))


@pytest.fixture
def channels(database: Database) -> Channels:
    """The channels of a fresh database."""
    return Channels(database)


async def feed(database: Database, channel_id: int, location: str, *, has_document: bool) -> None:
    """Add a folder to a channel, with or without a document."""
    async with database.transaction() as session:
        folder = FolderRow(channel_id=channel_id, location=location, watched=True)
        session.add(folder)
        await session.flush()
        if has_document:
            session.add(DocumentRow(channel_id=channel_id, folder_id=folder.id, file="a.pdf"))


async def audited(database: Database) -> list[tuple[str, str, str, str, bool]]:
    """Return the audit entries, newest first."""
    entries = await AuditLog(database).latest()
    return [(one.actor, one.action, one.channel, one.subject, one.is_done) for one in entries]


async def test_a_moved_channel_keeps_its_name_and_both_ids_find_it(
    channels: Channels, database: Database
) -> None:
    """Late events of the old id, events of the new one, and commands that name either resolve alike."""
    made = await channels.ensure(OLD, "#board")
    assert await channels.move(OLD, NEW) is MoveOutcome.MOVED
    assert [await channels.ensure(key) for key in (OLD, NEW)] == [made, made]
    assert await channels.by_name(NEW.tenant) == await channels.ensure_named(NEW.tenant) == made
    assert made.tenant == OLD.tenant
    assert await channels.all() == [made]
    assert await channels.moves(Platform("slack")) == [(OLD.tenant, NEW.tenant)]
    assert await channels.moves(Platform("teams")) == []
    assert await audited(database) == [("slack:T1", "move channel", OLD.tenant, NEW.tenant, True)]


async def test_repeated_and_late_moves_are_idempotent(channels: Channels, database: Database) -> None:
    """Also after the next move; the move of an unknown conversation is ignored."""
    made = await channels.ensure(OLD)
    assert await channels.move(OLD, NEW) is MoveOutcome.MOVED
    assert await channels.move(OLD, NEW) is MoveOutcome.KNOWN
    assert await channels.move(NEW, NEWER) is MoveOutcome.MOVED
    assert [await channels.move(*two) for two in ((OLD, NEW), (NEW, NEWER))] == [MoveOutcome.KNOWN] * 2
    assert [await channels.ensure(key) for key in (OLD, NEW, NEWER)] == [made] * 3
    assert await channels.move(OTHER, NEW) is MoveOutcome.UNKNOWN
    assert len(await audited(database)) == 2
    assert await channels.move(NEWER, OLD) is MoveOutcome.MOVED
    assert await channels.moves(Platform("slack")) == [
        (OLD.tenant, NEW.tenant),
        (OLD.tenant, NEWER.tenant),
        (OLD.tenant, OLD.tenant),
    ]
    assert await channels.all() == [made]


async def test_a_target_with_documents_is_refused_and_audited(channels: Channels, database: Database) -> None:
    """Documents are never merged: members of one channel may not read those of the other."""
    made, target = await channels.ensure(OLD), await channels.ensure(NEW)
    await feed(database, target.id, "/inbox/new", has_document=True)
    assert await channels.move(OLD, NEW) is MoveOutcome.OCCUPIED
    assert [await channels.ensure(key) for key in (OLD, NEW)] == [made, target]
    assert await audited(database) == [("slack:T1", "move channel", OLD.tenant, NEW.tenant, False)]
    third = await channels.ensure(OTHER)
    assert await channels.move(NEW, NEWER) is MoveOutcome.MOVED
    assert await channels.move(OTHER, NEWER) is MoveOutcome.OCCUPIED
    assert await channels.ensure(NEWER) == target != third


async def test_an_empty_target_channel_is_replaced_and_keeps_feeding(
    channels: Channels, database: Database
) -> None:
    """A question that arrived before the move created the channel; its folders now feed ours."""
    made, stray = await channels.ensure(OLD), await channels.ensure(NEW)
    await feed(database, made.id, "/inbox/old", has_document=True)
    await feed(database, stray.id, "/inbox/new", has_document=False)
    assert await channels.move(OLD, NEW) is MoveOutcome.MOVED
    assert await channels.ensure(NEW) == made
    assert await channels.all() == [made]
    async with database.snapshot() as session:
        folders = await session.scalars(select(FolderRow))
        assert {one.channel_id for one in folders} == {made.id}
