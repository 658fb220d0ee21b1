"""Whoever takes the next publication of a rung finds it at once, however many wait at the other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import event, insert, text
from sqlalchemy.engine import Engine

from storage.chat.channels import Channels
from storage.clock import utc_now
from storage.models import ChannelKey, Platform, Rung
from storage.queues.publication_queue import PublicationQueue
from storage.sql.database import Database
from storage.sql.leases import Leases
from storage.sql.tables import BlobRow, DocumentRow, FolderRow, PublicationRow, ReadingRow, VersionRow

PENDING = 3000


async def fill(database: Database) -> None:
    """Thousands of pending full publications, and after them one quick one."""
    channel = await Channels(database).ensure(ChannelKey(Platform.LOCAL, "", "shelf"))
    async with database.transaction() as session:
        folder = FolderRow(channel_id=channel.id, location="/shelf", watched=True)
        session.add(folder)
        await session.flush()
        document = DocumentRow(channel_id=channel.id, folder_id=folder.id, file="a.pdf")
        session.add_all([document, BlobRow(sha256="a", size=1)])
        await session.flush()
        readings = {
            rung: ReadingRow(sha256="a", generation=rung, rung=rung.value, state="done") for rung in Rung
        }
        version = VersionRow(document_id=document.id, number=1, sha256="a")
        session.add_all([version, *readings.values()])
        await session.flush()
        rungs = [Rung.FULL] * PENDING + [Rung.QUICK]
        rows = [
            PublicationRow(
                channel_id=channel.id,
                version_id=version.id,
                reading_id=readings[rung].id,
                rung=rung.value,
                created_at=utc_now(),
            ).model_dump()
            for rung in rungs
        ]
        await session.execute(insert(PublicationRow), rows)


@contextmanager
def plans() -> Iterator[list[str]]:
    """How the engine carries out each statement that takes a publication: a line per step."""
    seen: list[str] = []

    def explain(*happening: Any) -> None:
        connection, cursor, statement, parameters, *_ = happening
        if statement.startswith("SELECT publication.") and "reading.state" in statement:
            word = "EXPLAIN QUERY PLAN " if connection.dialect.name == "sqlite" else "EXPLAIN "
            cursor.execute(word + statement, parameters)
            seen.extend(str(row) for row in cursor.fetchall())

    event.listen(Engine, "before_cursor_execute", explain)
    try:
        yield seen
    finally:
        event.remove(Engine, "before_cursor_execute", explain)


@pytest.mark.parametrize("rung", list(Rung))
async def test_a_claim_goes_to_its_row_by_the_queue(
    request: pytest.FixtureRequest, database: Database, rung: Rung
) -> None:
    """Shows that a claim of either rung searches the queue's index, and sorts and scans nothing."""
    await fill(database)
    if "postgres" in request.node.name:
        async with database.transaction() as session:
            await session.execute(text("ANALYZE publication"))
    with plans() as steps:
        claim = await PublicationQueue(database, Leases(database, "me", 60)).claim(rung)
    assert claim is not None
    assert claim.rung is rung
    assert any("ix_publication_queue" in step for step in steps), steps
    slow = ("TEMP B-TREE", "Sort", "SCAN publication", "Seq Scan on publication")
    assert not any(word in step for step in steps for word in slow), steps
