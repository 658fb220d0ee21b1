"""Poll gates: a lane queries after relevant commits, when a row is due, and at a slow interval."""

from __future__ import annotations

import sqlite3
from contextlib import aclosing, closing
from datetime import timedelta
from pathlib import Path

import pytest
from harness.clocks import advance_clocks
from harness.empty_homes import make_sqlite
from sqlalchemy import select, update
from sqlmodel import col

from storage.errors import DatabaseUnavailable
from storage.sql.changes import PollGate
from storage.sql.database import Database
from storage.sql.leased_queue import LeasedQueue
from storage.sql.tables import BlobRow, FactRow, InboxRow, ReadingRow


async def test_a_gate_opens_for_its_tables_only(database: Database) -> None:
    """A commit opens the gates of its tables once, after a flush or a statement."""
    facts = PollGate(database.changes, FactRow, seconds=3600)
    readings = PollGate(database.changes, ReadingRow, seconds=3600)
    assert facts.should_poll()
    assert readings.should_poll()
    async with database.transaction() as session:
        session.add(FactRow(name="one", value="1"))
        await session.flush()
        assert not facts.should_poll()
    assert facts.should_poll()
    assert not facts.should_poll()
    async with database.transaction() as session:
        await session.execute(update(FactRow).where(col(FactRow.name) == "one").values(value="2"))
    assert facts.should_poll()
    assert not readings.should_poll()


async def test_a_rollback_opens_no_gate(database: Database) -> None:
    facts = PollGate(database.changes, FactRow, seconds=3600)
    assert facts.should_poll()

    async def fail() -> None:
        async with database.transaction() as session:
            session.add(FactRow(name="one", value="1"))
            await session.flush()
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await fail()
    assert not facts.should_poll()


async def test_a_gate_opens_when_another_process_may_have_committed(database: Database) -> None:
    """Polls at a slow interval, without a commit of this process."""
    gate = PollGate(database.changes, FactRow, seconds=5)
    assert gate.should_poll()
    assert not gate.should_poll()
    with advance_clocks(timedelta(seconds=5)):
        assert gate.should_poll()


async def test_a_gate_opens_when_a_lease_ends(database: Database) -> None:
    """Shows that a claim that found a leased row queries again at the end of the lease, not before."""
    async with database.transaction() as session:
        session.add(BlobRow(sha256="0" * 64, size=1))
        await session.flush()
        session.add(ReadingRow(sha256="0" * 64, generation="g", rung="quick"))
    dead, living = (LeasedQueue(database, ReadingRow, name, 30) for name in ("dead", "living"))
    query = select(ReadingRow)
    gate = PollGate(database.changes, ReadingRow, seconds=3600)
    for rows in (dead, living):
        async with database.transaction() as session:
            await rows.claim(session, query)
    assert gate.should_poll()
    assert not gate.should_poll()
    with advance_clocks(timedelta(seconds=31)):
        assert gate.should_poll()


async def test_an_outage_opens_every_gate(tmp_path: Path) -> None:
    """Shows that a lane whose query failed queries again at its next turn."""
    url = make_sqlite(tmp_path)
    async with aclosing(await Database.open(url, busy_seconds=0.1)) as database:
        gate = PollGate(database.changes, InboxRow, seconds=3600)
        assert gate.should_poll()
        assert not gate.should_poll()
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(DatabaseUnavailable):
                await database.ping()
        assert gate.should_poll()
