"""A home of the first release, filled, is brought up to date on both engines and loses nothing."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import (
    Connection,
    Engine,
    TableClause,
    column,
    create_engine,
    delete,
    insert,
    inspect,
    make_url,
    select,
    table,
    text,
)
from sqlalchemy.exc import IntegrityError
from sqlmodel import SQLModel, col

import storage.sql.migrations
from storage.chat.answer_sources import Subscriptions
from storage.chat.citations import Citations
from storage.chat_models import ShownWeb
from storage.folders.folders import Folders
from storage.models import Shown
from storage.sql.audit import AuditedAction, AuditLog
from storage.sql.database import Database
from storage.sql.tables import AnswerSourceRow, DocumentRow, FolderRow, OutboxRow, ReadingRow, WebTextRow
from storage.web_pages.page_store import WebPageStore, WebText, WebTextChunk

AT = datetime(2026, 1, 5, 9, tzinfo=UTC)
LEASED = {"fence": 2, "attempts": 1}
KEPT, GONE = UUID(int=10), UUID(int=11)
QUICK, FULL, CLOSED, BROKEN = UUID(int=20), UUID(int=21), UUID(int=22), UUID(int=23)
LOCKED = "the PDF opens only with a password; save a copy without one"
ASKED = {"platform": "slack", "channel_id": 1, "thread": "t", "text": "When?", "address": {"channel": "C1"}}
PUBLISHED = {"channel_id": 1, "version_id": 1, **LEASED, "created_at": AT, "live_at": AT}
READ = {
    "sha256": "a" * 64,
    "title": "Backup",
    "pages": 2,
    "chunks": 3,
    "reason": None,
    **LEASED,
    "created_at": AT,
    "done_at": AT,
}

HOME: dict[str, list[dict[str, Any]]] = {
    "channel": [
        {"id": 1, "tenant": f"lo_{52 * 'a'}", "platform": "local", "name": "it", "epoch": 3, "created_at": AT}
    ],
    "fact": [{"name": "embedder", "value": "onnx-0123456789abcdef"}],
    "folder": [
        {"id": 1, "channel_id": 1, "location": "/srv/inbox/it", "watched": True, "created_at": AT},
        {"id": 2, "channel_id": 1, "location": "/srv/once", "watched": False, "created_at": AT},
    ],
    "blob": [{"sha256": sha256, "size": 7, "created_at": AT} for sha256 in ("a" * 64, "b" * 64)],
    "document": [
        {"id": KEPT, "channel_id": 1, "folder_id": 1, "file": "a.pdf", "state": "present",
         "look": {"size": 7},         "deleted_at": None, "created_at": AT},
        {"id": GONE, "channel_id": 1, "folder_id": 1, "file": "b.pdf", "state": "deleted", "look": None,
         "deleted_at": AT, "created_at": AT},
    ],
    "version": [
        {"id": 1, "document_id": KEPT, "number": 1, "sha256": "a" * 64, "created_at": AT},
        {"id": 2, "document_id": GONE, "number": 1, "sha256": "b" * 64, "created_at": AT},
    ],
    "reading": [
        {"id": QUICK, "generation": "g1", "rung": "quick", "state": "done", **READ},
        {"id": FULL, "generation": "g1+onnx-0123456789abcdef", "rung": "full", "state": "done", **READ},
        {"id": CLOSED, "generation": "g2", "rung": "quick", "state": "failed", **READ, "reason": LOCKED},
        {"id": BROKEN, "generation": "g3", "rung": "quick", "state": "failed", **READ, "reason": "broken"},
    ],
    "publication": [
        {"id": UUID(int=30), "reading_id": QUICK, "state": "retired", **PUBLISHED},
        {"id": UUID(int=31), "reading_id": FULL, "state": "live", **PUBLISHED},
    ],
    "citation": [
        {"id": number, "channel_id": 1, "version_id": 1, "page": 2, "quote": "nightly", "created_at": AT,
         "boxes": [[0.1, 0.2, 0.3, 0.4]]}
        for number in (1, 2**31 - 1)
    ],
    "inbox": [
        {"id": 1, "event_key": "e1", "message_key": "m1", "state": "waiting", **ASKED, **LEASED,
         "created_at": AT}
    ],
    "outbox": [
        {"inbox_id": 1, "state": "placed", "message": {"ts": "1.2"}, "answer": None, "created_at": AT}
    ],
}  # fmt: skip
"""Rows of every table of the first release, in the order in which they may be written."""


def engine_of(database_url: str) -> Engine:
    """An engine without our own settings, as any program has it."""
    url = make_url(database_url)
    return create_engine(
        url.set(drivername="postgresql+psycopg") if url.get_backend_name() != "sqlite" else url
    )


def old_table(name: str) -> TableClause:
    """A table with the columns that ``HOME`` knows, and none of today's defaults."""
    today = SQLModel.metadata.tables[name].c
    return table(name, *(column(one, today[one].type) for one in HOME[name][0]))


def upgrade(connection: Connection, revision: str) -> None:
    """Bring the tables to a revision, as a release of that time did."""
    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(Path(storage.sql.migrations.__file__).parent))
    command.upgrade(config, revision)


def fill_old_home(connection: Connection) -> None:
    """Make the tables of the first release and write ``HOME`` into them."""
    upgrade(connection, "0001")
    for name, rows in HOME.items():
        connection.execute(insert(old_table(name)), rows)


def read_home(connection: Connection) -> dict[str, list[dict[str, Any]]]:
    """What the tables now hold in the columns that ``HOME`` knows."""
    found = {name: connection.execute(select(old_table(name))).mappings().all() for name in HOME}
    return {name: sorted(map(dict, rows), key=str) for name, rows in found.items()}


def make_home(url: str, fill: Callable[[Connection], None]) -> None:
    """Fill an empty database."""
    parsed = make_url(url)
    if parsed.get_backend_name() == "sqlite" and parsed.database:
        Path(parsed.database).parent.mkdir()
    engine = engine_of(url)
    with engine.begin() as connection:
        fill(connection)
    engine.dispose()


@pytest.fixture
def old_home_url(database_url: str) -> str:
    """A filled home of the first release, on each engine in turn."""
    make_home(database_url, fill_old_home)
    return database_url


async def test_a_filled_home_is_upgraded_without_a_loss(old_home_url: str) -> None:
    """Shows that every row stays as it was, with what the new columns say of it."""
    async with aclosing(await Database.open(old_home_url)) as database:
        engine = engine_of(old_home_url)
        with engine.connect() as connection:
            assert read_home(connection) == {name: sorted(rows, key=str) for name, rows in HOME.items()}
            if connection.dialect.name == "sqlite":
                assert connection.execute(text("PRAGMA foreign_key_check")).all() == []
        engine.dispose()
        async with database.snapshot() as session:
            origins = await session.scalars(select(col(FolderRow.origin)).order_by(col(FolderRow.id)))
            assert list(origins) == ["inbox", "hand"]
            readings = list(await session.scalars(select(ReadingRow).order_by(col(ReadingRow.id))))
            assert [(row.id, row.space, row.again, row.locked) for row in readings] == [
                (QUICK, None, False, False),
                (FULL, "onnx_0123456789abcdef", False, False),
                (CLOSED, None, False, True),
                (BROKEN, None, False, False),
            ]
            assert {row.figures for row in readings} == {0}


async def test_an_upgraded_home_takes_what_the_old_one_could_not(old_home_url: str) -> None:
    """Shows that a deleted document's name is free, and that ids of new citations are wide enough."""
    async with aclosing(await Database.open(old_home_url)) as database:
        async with database.transaction() as session:
            session.add(DocumentRow(channel_id=1, folder_id=1, file="b.pdf"))
        citations = Citations(database)
        kept = await citations.add(1, 4 * [Shown(1, 1, "nightly")])
        assert max(one.id for one in kept) > 2**31
        assert [await citations.get(one.id) for one in kept] == kept


NOTICE = {
    "id": 7,
    "kind": "failed",
    "key": "failed:2",
    "channel_id": 1,
    "document_id": KEPT,
    "version_id": 1,
    "text": "it is damaged",
    "state": "waiting",
    "created_at": AT,
}
RECORD = {"id": 9, "key": "q1", "channel_id": 1, "asked_at": AT, "state": "grounded", "record": {"looks": []}}
PAGE = "https://example.org/"


def columns_of(name: str, row: dict[str, Any]) -> TableClause:
    """A table with the columns of a row, and none of today's others."""
    today = SQLModel.metadata.tables[name].c
    return table(name, *(column(one, today[one].type) for one in row))


def fill_home_without_web_pages(connection: Connection) -> None:
    """A home of the revision before web pages, with a notice that waits and a question's record."""
    fill_old_home(connection)
    upgrade(connection, "0009")
    assert "web_page" not in inspect(connection).get_table_names()
    for name, row in (("notice", NOTICE), ("question_record", RECORD)):
        connection.execute(insert(columns_of(name, row)), [row])


async def test_a_home_without_web_pages_gets_them_and_keeps_its_rows(database_url: str) -> None:
    """Shows the tables of web pages in use, their foreign keys, and notices and records as they were."""
    make_home(database_url, fill_home_without_web_pages)
    async with aclosing(await Database.open(database_url)) as database:
        engine = engine_of(database_url)
        with engine.connect() as connection:
            for name, row in (("notice", NOTICE), ("question_record", RECORD)):
                assert row in connection.execute(select(columns_of(name, row))).mappings().all()
            assert read_home(connection) == {name: sorted(rows, key=str) for name, rows in HOME.items()}
            assert set(connection.execute(text("SELECT url FROM notice")).scalars()) == {None}
        pages = WebPageStore(database)
        before, after = (WebText("T", "", (WebTextChunk(f"Within {days} days.", 4),)) for days in (30, 10))
        await pages.approve([PAGE])
        await pages.keep_text(PAGE, before, {"If-None-Match": "x"})
        await pages.keep_vectors(before.sha256, "terms", np.ones((1, 4), np.float32))
        await Citations(database).add_web(1, [ShownWeb(PAGE, before.sha256, "Within 30 days.")])
        assert await pages.keep_text(PAGE, after, {})
        assert await pages.prune() == 0
        assert await pages.text(before.sha256) == before
        assert (await pages.vectors([before.sha256], "terms"))[before.sha256].tolist() == [1.0] * 4
        assert await pages.lost_quotes() == [(PAGE, "Within 30 days.")]
        with engine.begin() as connection:
            notice = text("SELECT kind, url FROM notice WHERE url IS NOT NULL")
            assert connection.execute(notice).all() == [("source changed", PAGE)]
        engine.dispose()
        with pytest.raises(IntegrityError):
            async with database.transaction() as session:
                await session.execute(delete(WebTextRow))


def fill_home_with_an_answer(connection: Connection) -> None:
    """A home of the revision before sources of answers were kept, with an answer that cites two versions."""
    fill_old_home(connection)
    upgrade(connection, "0015")
    outbox = SQLModel.metadata.tables["outbox"]
    (inbox_id,) = connection.execute(select(outbox.c.inbox_id)).scalars()
    answer = {"citations": [{"version_id": 1}, {"version_id": 1}, {"version_id": 4711}, {"url": "https://x"}]}
    connection.execute(outbox.update().where(outbox.c.inbox_id == inbox_id).values(answer=answer))


async def test_what_older_answers_cite_is_known_after_the_upgrade(database_url: str) -> None:
    """Shows each version that is still there once, and that no message waits for what happened before."""
    make_home(database_url, fill_home_with_an_answer)
    async with aclosing(await Database.open(database_url)) as database, database.snapshot() as session:
        assert list(await session.scalars(select(col(AnswerSourceRow.version_id)))) == [1]
        (reply,) = await session.scalars(select(OutboxRow))
        assert (reply.changed_at, reply.shown_changes) == (None, None)


def fill_home_without_an_audit(connection: Connection) -> None:
    """A home of the revision before the audit."""
    fill_old_home(connection)
    upgrade(connection, "0016")


async def test_no_folder_is_paused_after_the_upgrade_and_the_audit_is_empty(database_url: str) -> None:
    """Shows the new column and the new table in use, with the folders as they were."""
    make_home(database_url, fill_home_without_an_audit)
    async with aclosing(await Database.open(database_url)) as database:
        folders, audit = Folders(database), AuditLog(database)
        assert (await folders.paused(), await audit.latest()) == (frozenset(), [])
        action = AuditedAction("local", "pause", "lo_x")
        paused = await folders.pause(None, action, is_paused=True)
        assert (len(await folders.paused()), paused) == (paused, paused)
        assert paused > 0
        assert [one.action for one in await audit.latest()] == ["pause"]


def fill_home_with_an_audit(connection: Connection) -> None:
    """A home of the revision before the audit's chain, in which an admin did two things."""
    fill_old_home(connection)
    upgrade(connection, "0023")
    for number in (1, 2):
        done = {"actor": "slack:T:Ü", "action": "pause", "channel": "lo_x", "subject": str(number)}
        row = {"at": AT, "is_done": number == 1, **done}
        types = {name: SQLModel.metadata.tables["audit"].c[name].type for name in row}
        old = table("audit", *(column(name, type_) for name, type_ in types.items()))
        connection.execute(insert(old), row)


async def test_the_audit_of_an_older_home_is_chained(database_url: str) -> None:
    """Shows that what was done before the upgrade holds, and that the next action follows from it."""
    make_home(database_url, fill_home_with_an_audit)
    async with aclosing(await Database.open(database_url)) as database:
        audit = AuditLog(database)
        await audit.keep(AuditedAction("local", "pause", "lo_x"))
        check = await audit.verify()
        assert (check.entries, check.fault) == (3, "")


def fill_home_without_subscriptions(connection: Connection) -> None:
    """A home of the revision before threads could follow a page."""
    fill_old_home(connection)
    upgrade(connection, "0017")


async def test_a_thread_of_an_older_home_can_follow_a_page(database_url: str) -> None:
    """Shows the new table in use, and its rows going with the version that they are of."""
    make_home(database_url, fill_home_without_subscriptions)
    async with aclosing(await Database.open(database_url)) as database:
        subscriptions = Subscriptions(database)
        assert await subscriptions.add("1", Shown(1, 2, "nightly"), "en")
        kept = await subscriptions.get(1)
        assert kept is not None
        assert (kept.shown, kept.language) == (Shown(1, 2, "nightly"), "en")
        assert await subscriptions.remove(1, "t") == 1
