"""Hash chain of the audit log: changed, deleted and inserted entries are detected, on both engines."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import delete, insert, update
from sqlmodel import col

from storage.chat.retention import Retention
from storage.settings import StorageSettings
from storage.sql.audit import OPEN_LINK, AuditedAction, AuditLog, record_action
from storage.sql.database import Database
from storage.sql.tables import AuditRow


@pytest.fixture
async def audit(database: Database) -> AuditLog:
    """An audit log of five entries."""
    log = AuditLog(database)
    for number in range(5):
        await log.record(AuditedAction("local", "pause", "lo_x", str(number), is_done=number != 2))
    return log


async def everything(audit: AuditLog) -> AsyncIterator[dict[str, object]]:
    """Yield all entries as exported."""
    async for batch in audit.batches():
        for one in batch:
            yield {name: getattr(one, name) for name in one.__slots__}


async def test_the_chain_can_be_recomputed_from_an_export(audit: AuditLog) -> None:
    """Recomputes each digest; the last one is the head."""
    previous = ""
    async for one in everything(audit):
        at = one["at"].isoformat(timespec="microseconds")  # type: ignore[attr-defined]
        said = [previous, at, *(one[name] for name in ("actor", "action", "channel", "subject", "is_done"))]
        text = json.dumps(said, ensure_ascii=False, separators=(",", ":"))
        previous = hashlib.sha256(text.encode()).hexdigest()
        assert one["digest"] == previous
    check = await audit.verify()
    assert (check.entries, check.head, check.fault) == (5, previous, "")


TAMPERING = {
    "changed": (update(AuditRow).where(col(AuditRow.id) == 3).values(subject="9"), "entry 3 was changed"),
    "made done": (update(AuditRow).where(col(AuditRow.id) == 3).values(is_done=True), "entry 3 was changed"),
    "taken out": (delete(AuditRow).where(col(AuditRow.id) == 3), "entries before 4 are missing"),
    "taken off": (delete(AuditRow).where(col(AuditRow.id) == 5), "entries at the end are missing"),
    "put in": (
        insert(AuditRow).values(
            at=datetime.now(UTC), actor="x", action="erase", channel="", subject="", is_done=True
        ),
        "entry 6 was changed",
    ),
}


@pytest.mark.parametrize("tampering", TAMPERING)
async def test_tampering_with_the_table_is_detected(
    audit: AuditLog, database: Database, tampering: str
) -> None:
    """A row changed, marked as done, deleted, truncated from the end, or inserted."""
    statement, fault = TAMPERING[tampering]
    async with database.transaction() as session:
        await session.execute(statement)
    assert (await audit.verify()).fault == fault


async def test_concurrent_entries_form_one_chain(audit: AuditLog, database: Database) -> None:
    """Written by two logs in many tasks, as by replicas; a rollback leaves no gap."""
    other = AuditLog(database)
    await asyncio.gather(
        *(
            log.record(AuditedAction("local", "erase", "", str(n)))
            for n in range(20)
            for log in (audit, other)
        )
    )
    with suppress(RuntimeError):
        async with database.transaction() as session:
            await record_action(session, AuditedAction("local", "erase", ""))
            raise RuntimeError
    await audit.record(AuditedAction("local", "erase", ""))
    check = await audit.verify()
    assert (check.entries, check.fault) == (46, "")


async def test_the_chain_stays_valid_after_retention(audit: AuditLog, database: Database) -> None:
    """A noted digest is found while its entry is stored; new entries extend the chain after all expired."""
    old = (await audit.verify()).head
    assert [(await audit.verify(one)).is_known for one in (old, "f" * 64, None)] == [True, False, None]
    retention = Retention(database, StorageSettings(audit_days=1))
    long_ago = datetime.now(UTC) - timedelta(days=2)
    async with database.transaction() as session:
        await session.execute(update(AuditRow).where(col(AuditRow.id) < 3).values(at=long_ago))
    await retention.delete_expired()
    assert (await audit.verify()).fault == ""
    async with database.transaction() as session:
        await session.execute(delete(AuditRow))
    await audit.record(AuditedAction("local", "erase", ""))
    (entry,) = await audit.latest()
    assert (entry.previous, (await audit.verify(old)).is_known) == (old, False)


async def test_opened_links_are_listed_on_request_only(audit: AuditLog) -> None:
    """Shows that thousands of them do not hide admins' actions."""
    await audit.record(AuditedAction("link", OPEN_LINK, "sl_T_C", "citation 7"))
    assert len(await audit.latest()) == 5
    assert (await audit.latest(with_links=True))[-1].subject == "citation 7"
