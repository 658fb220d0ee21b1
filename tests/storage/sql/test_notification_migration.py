"""Homes of the release before: nobody is told today of what was there already."""

from __future__ import annotations

import sqlite3
from contextlib import aclosing, closing
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import create_engine, select
from sqlmodel import col

import storage.sql.migrations
from storage.chat.notifications import Notices
from storage.models import Rung
from storage.queues.publication_queue import PublicationQueue
from storage.sql.database import Database
from storage.sql.leases import Leases
from storage.sql.tables import NoticeRow, PublicationRow

OLD_HOME = """
INSERT INTO channel (id, tenant, platform, name, epoch, created_at)
    VALUES (1, 'lo_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', 'local', 'it', 1,
    '2026-01-05 09:00:00');
INSERT INTO folder (id, channel_id, location, watched, created_at)
    VALUES (1, 1, '/srv/it', 1, '2026-01-05 09:00:00');
INSERT INTO document (id, channel_id, folder_id, file, state, created_at) VALUES
    ('0000000000000000000000000000000a', 1, 1, 'good.pdf', 'present', '2026-01-05 09:00:00'),
    ('0000000000000000000000000000000b', 1, 1, 'bad.pdf', 'present', '2026-01-05 09:00:00');
INSERT INTO blob (sha256, size, created_at) VALUES
    ('good', 1, '2026-01-05 09:00:00'), ('bad', 1, '2026-01-05 09:00:00');
INSERT INTO version (id, document_id, number, sha256, created_at) VALUES
    (1, '0000000000000000000000000000000a', 1, 'good', '2026-01-05 09:00:00'),
    (2, '0000000000000000000000000000000b', 1, 'bad', '2026-01-05 09:00:00');
INSERT INTO reading (id, sha256, generation, rung, state, title, pages, chunks, fence, attempts, created_at)
    VALUES
    ('00000000000000000000000000000001', 'good', 'g1', 'quick', 'done', '', 1, 1, 1, 1,
    '2026-01-05 09:00:00'),
    ('00000000000000000000000000000002', 'bad', 'g1', 'quick', 'failed', '', 0, 0, 3, 3,
    '2026-01-05 09:00:00');
INSERT INTO publication (id, channel_id, version_id, reading_id, state, fence, attempts, created_at, live_at)
    VALUES ('00000000000000000000000000000003', 1, 1, '00000000000000000000000000000001', 'live', 1, 0,
    '2026-01-05 09:00:00', '2026-01-05 09:00:00');
"""


def make_old_home(file: Path) -> None:
    """A database of the first release with one file that answers and one that could not be read."""
    engine = create_engine(f"sqlite:///{file}")
    with engine.begin() as connection:
        config = Config(attributes={"connection": connection})
        config.set_main_option("script_location", str(Path(storage.sql.migrations.__file__).parent))
        command.upgrade(config, "0001")
    engine.dispose()
    with closing(sqlite3.connect(file)) as database:
        database.executescript(OLD_HOME)


async def test_an_old_homes_files_are_not_announced_even_when_they_are_published_again(
    tmp_path: Path,
) -> None:
    """Shows that after the upgrade nothing waits, and that a newly made publication tells nothing either."""
    make_old_home(tmp_path / "footnote.db")
    async with aclosing(await Database.open(f"sqlite:///{tmp_path}/footnote.db")) as database:
        notices = Notices(database)
        assert await notices.waiting() == []
        assert await notices.recent(1, 5) == []
        async with database.transaction() as session:
            row = (await session.scalars(select(PublicationRow))).one()
            row.state = "removed"
            session.add(PublicationRow(channel_id=1, version_id=1, reading_id=row.reading_id))
        work = PublicationQueue(database, Leases(database, "worker", 60))
        claim = await work.claim(Rung.QUICK)
        assert claim is not None
        assert await work.go_live(claim)
        async with database.snapshot() as session:
            kinds = await session.scalars(select(col(NoticeRow.kind)).order_by(col(NoticeRow.kind)))
            assert list(kinds) == ["failed", "live"]
        assert await notices.waiting() == []
