"""Publication queue: claims use an index, newer versions replace older ones, and stale owners are fenced."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import event, insert, select, text
from sqlalchemy.engine import Engine

from storage.chat.channels import Channels
from storage.clock import utc_now
from storage.errors import LeaseLost
from storage.models import ChannelKey, Platform, Rung
from storage.queues.publication_queue import PublicationQueue
from storage.sql.database import Database
from storage.sql.leased_queue import LeasedQueue
from storage.sql.tables import BlobRow, DocumentRow, FolderRow, PublicationRow, ReadingRow, VersionRow

PENDING = 3000


class Shelf:
    """A document of two versions, each read at both rungs."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._channel = 0
        self._versions: dict[int, int] = {}
        self._readings: dict[tuple[int, Rung], UUID] = {}

    async def fill(self) -> None:
        """Create the rows."""
        channel = await Channels(self._database).ensure(ChannelKey(Platform.LOCAL, "", "shelf"))
        self._channel = channel.id
        async with self._database.transaction() as session:
            folder = FolderRow(channel_id=channel.id, location="/shelf", watched=True)
            session.add(folder)
            await session.flush()
            document = DocumentRow(channel_id=channel.id, folder_id=folder.id, file="a.pdf")
            session.add_all([document, *(BlobRow(sha256=str(number), size=1) for number in (1, 2))])
            await session.flush()
            for number in (1, 2):
                version = VersionRow(document_id=document.id, number=number, sha256=str(number))
                session.add(version)
                for rung in Rung:
                    reading = ReadingRow(sha256=str(number), generation=rung, rung=rung.value, state="done")
                    session.add(reading)
                    self._readings[number, rung] = reading.id
                await session.flush()
                self._versions[number] = version.id

    async def publish(self, version: int, rung: Rung, count: int = 1) -> None:
        """Add pending publications of one reading."""
        rows = [
            PublicationRow(
                channel_id=self._channel,
                version_id=self._versions[version],
                reading_id=self._readings[version, rung],
                rung=rung.value,
                created_at=utc_now(),
            ).model_dump()
            for _ in range(count)
        ]
        async with self._database.transaction() as session:
            await session.execute(insert(PublicationRow), rows)

    async def rows(self) -> list[PublicationRow]:
        async with self._database.snapshot() as session:
            return list(await session.scalars(select(PublicationRow)))

    async def live(self) -> list[tuple[int, Rung]]:
        """Return version and rung of the live publications."""
        numbers = {id: number for number, id in self._versions.items()}
        return [(numbers[row.version_id], Rung(row.rung)) for row in await self.rows() if row.state == "live"]


@pytest.fixture
async def shelf(database: Database) -> Shelf:
    """A document without publications."""
    shelf = Shelf(database)
    await shelf.fill()
    return shelf


@pytest.fixture
def work(database: Database) -> PublicationQueue:
    """The queue of one worker."""
    return PublicationQueue(LeasedQueue(database, PublicationRow, "me", 60))


@contextmanager
def plans() -> Iterator[list[str]]:
    """Yield the query plans of statements that claim a publication, a line per step."""
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


async def test_a_claim_uses_the_index_of_the_queue(
    request: pytest.FixtureRequest, database: Database, shelf: Shelf, work: PublicationQueue
) -> None:
    """Shows that a claim of either rung searches the index and neither sorts nor scans."""
    await shelf.publish(1, Rung.FULL, PENDING)
    await shelf.publish(1, Rung.QUICK)
    if "postgres" in request.node.name:
        async with database.transaction() as session:
            await session.execute(text("ANALYZE publication"))
    for rung in Rung:
        with plans() as steps:
            claim = await work.claim(rung)
        assert claim is not None
        assert claim.rung is rung
        assert any("ix_publication_queue" in step for step in steps), steps
        slow = ("TEMP B-TREE", "Sort", "SCAN publication", "Seq Scan on publication")
        assert not any(word in step for step in steps for word in slow), steps


@pytest.mark.parametrize(
    ("live", "later", "replaces"),
    [
        ((1, Rung.QUICK), (1, Rung.FULL), True),
        ((1, Rung.FULL), (2, Rung.QUICK), True),
        ((2, Rung.QUICK), (1, Rung.FULL), False),
        ((2, Rung.QUICK), (1, Rung.QUICK), False),
        ((2, Rung.FULL), (2, Rung.QUICK), False),
    ],
)
async def test_only_newer_or_better_publications_replace_the_live_one(
    shelf: Shelf, work: PublicationQueue, live: tuple[int, Rung], later: tuple[int, Rung], *, replaces: bool
) -> None:
    """A newer version takes precedence over a better reading; nothing is downgraded."""
    went = []
    for version, rung in (live, later):
        await shelf.publish(version, rung)
        claim = await work.claim(rung)
        assert claim is not None
        went.append(await work.go_live(claim))
    assert went == [True, replaces]
    assert await shelf.live() == [later if replaces else live]


async def test_a_stale_owner_cannot_change_a_publication(
    database: Database, shelf: Shelf, work: PublicationQueue
) -> None:
    """Fencing: a step still running after the publication was released and claimed again has no effect."""
    await shelf.publish(1, Rung.QUICK)
    lost = await work.claim(Rung.QUICK)
    assert lost is not None
    await work.release(lost)
    held = await work.claim(Rung.QUICK)
    assert held is not None
    before = await shelf.rows()
    for step in (
        lost.lease.renew(),
        work.go_live(lost),
        work.release(lost, "late"),
        work.retry_under_new_id(lost, "late"),
        work.requeue_reading(lost, "late"),
    ):
        with pytest.raises(LeaseLost):
            await step
    assert await shelf.rows() == before
    assert await work.go_live(held)
