"""A corrupt tenant is rebuilt automatically; meanwhile its channel is told to retry."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest
from harness.ingestion_home import Home, open_home
from harness.waiting import PATIENCE
from samples.paper import pdf

from storage.embeddings.onnx_embedder import BundledEmbedder
from storage.errors import IndexUnavailable
from storage.index.base import IndexedChunk, SearchFilter
from storage.index.embedded.index import EmbeddedIndex
from storage.index.live_index import LiveIndex
from storage.queues.inventory import Inventory
from storage.sql.tables import PublicationRow, ReadingRow
from storage.text.analyzer import analyze

LEAVE = pdf("Leave\nEmployees get twenty five days of marzipan leave a year.")
TRAVEL = pdf("Travel\nEmployees go by lantern train, second class.")


def cut(file: Path) -> None:
    """Truncate the file to half its size."""
    with file.open("r+b") as opened:
        opened.truncate(file.stat().st_size // 2)


def flip(file: Path) -> None:
    """Change a word of a chunk without making any database page invalid."""
    file.write_bytes(file.read_bytes().replace(b"marzipan leave", b"marzipan lease"))


async def file_of(home: Home, channel: str) -> Path:
    """Return the path of the channel's tenant file."""
    return home.path / "index" / f"{(await home.channel(channel)).tenant}.sqlite3"


async def asked(home: Home, channel: str, words: str) -> set[str] | None:
    """Return the files that a question in the channel finds, or None if it is told to retry."""
    live = LiveIndex(home.index, home.catalog, home.embedder.space)
    try:
        found = await live.search(await home.channel(channel), analyze(words), None)
    except IndexUnavailable:
        return None
    return {one.file for one in found.publications.values()}


async def live_ids(home: Home, channel: str) -> set[UUID]:
    """Return the live publications of the channel."""
    where = await home.channel(channel)
    rows = await home.rows(PublicationRow)
    return {row.id for row in rows if row.state == "live" and row.channel_id == where.id}


async def come_back(home: Home, damage: Callable[[Path], None], *, is_running: bool) -> None:
    """Damage a channel's file and wait until it is rebuilt, without a wrong answer in between."""
    serving = await home.serve(stop_at="quick")
    home.drop("hr/leave.pdf", LEAVE)
    home.drop("hr/travel.pdf", TRAVEL)
    home.drop("it/travel.pdf", TRAVEL)
    await home.until_found("hr", "marzipan", "leave.pdf")
    await home.until_found("hr", "lantern", "travel.pdf")
    await home.until_found("it", "lantern", "travel.pdf")
    before, others = await live_ids(home, "hr"), await live_ids(home, "it")
    if not is_running:
        await serving.stop()
    damage(await file_of(home, "hr"))
    serving = serving if is_running else await home.serve(stop_at="quick")
    answers: list[set[str] | None] = []

    async def is_back() -> bool:
        await serving.reconcile()
        answers.append(await asked(home, "hr", "marzipan"))
        return answers[-1] is not None and not before & await live_ids(home, "hr")

    await home.until(is_back)
    assert all(answer in (None, {"leave.pdf"}) for answer in answers)
    assert await asked(home, "hr", "lantern") == {"travel.pdf"}
    assert await live_ids(home, "it") == others
    assert await asked(home, "it", "lantern") == {"travel.pdf"}
    assert home.index.upkeep is None or await home.index.upkeep.corrupt_tenants() == set()


@pytest.mark.parametrize(
    ("is_running", "damage"),
    [
        pytest.param(True, cut, id="running, cut"),
        pytest.param(False, flip, id="stopped, flipped"),
        pytest.param(True, flip, id="running, flipped", marks=pytest.mark.long),
        pytest.param(False, cut, id="stopped, cut", marks=pytest.mark.long),
    ],
)
async def test_a_corrupt_tenant_is_republished_and_never_seems_empty(
    home: Home, damage: Callable[[Path], None], is_running: bool
) -> None:
    """Shows that a truncated or changed file is repaired, while its channel is told to retry."""
    await come_back(home, damage, is_running=is_running)


async def test_a_missing_tenant_never_seems_empty(home: Home) -> None:
    """Shows that a channel with documents whose file was deleted is told to retry."""
    serving = await home.serve(stop_at="quick")
    home.drop("hr/leave.pdf", LEAVE)
    await home.until_found("hr", "marzipan", "leave.pdf")
    await serving.stop()
    await home.index.drop_tenant((await home.channel("hr")).tenant)
    assert await asked(home, "hr", "marzipan") is None
    assert await asked(home, "never used", "marzipan") == set()


async def drop_index(home: Home, channel: str) -> None:
    """Start a rebuild of the channel's index, as an erasure does."""
    where = await home.channel(channel)
    await Inventory(home.database).rebuilds.begin(where.id)
    await home.index.drop_tenant(where.tenant)


async def test_a_channel_answers_once_its_index_is_rebuilt(home: Home) -> None:
    """Shows that a dropped tenant is refilled, and that no question is answered from a part of it."""
    serving = await home.serve(stop_at="quick")
    home.drop("hr/leave.pdf", LEAVE)
    home.drop("hr/travel.pdf", TRAVEL)
    leave = await home.until_found("hr", "marzipan", "leave.pdf")
    travel = await home.until_found("hr", "lantern", "travel.pdf")
    await serving.stop()
    where, rebuilds = await home.channel("hr"), Inventory(home.database).rebuilds
    await drop_index(home, "hr")
    assert await asked(home, "hr", "marzipan") is None
    await home.index.ensure_tenant(where.tenant)
    half = IndexedChunk(travel.id, 0, "lantern", "Employees go by lantern train", 1, 1, (), ())
    await home.index.write(where.tenant, [half])
    assert await home.index.search_keywords(where.tenant, ["lantern"], SearchFilter(), 9)
    assert [await asked(home, "hr", word) for word in ("marzipan", "lantern")] == [None, None]
    serving = await home.serve(stop_at="quick")

    async def is_back() -> bool:
        await serving.reconcile()
        return await asked(home, "hr", "marzipan") is not None

    await home.until(is_back)
    assert await asked(home, "hr", "marzipan") == {"leave.pdf"}
    assert await asked(home, "hr", "lantern") == {"travel.pdf"}
    assert leave.id not in await live_ids(home, "hr")
    assert (await rebuilds.running(), await rebuilds.sequence(where.id)) == ({}, 2)


async def test_a_failed_reading_does_not_block_the_rebuild(home: Home) -> None:
    """Shows that a channel is not unavailable for ever because one of its readings was lost."""
    serving = await home.serve(stop_at="quick")
    home.drop("hr/leave.pdf", LEAVE)
    home.drop("hr/travel.pdf", TRAVEL)
    leave = await home.until_found("hr", "marzipan", "leave.pdf")
    await home.until_found("hr", "lantern", "travel.pdf")
    await drop_index(home, "hr")
    async with home.database.transaction() as session:
        reading = await session.get_one(ReadingRow, leave.reading_id)
        reading.state = "failed"

    async def is_back() -> bool:
        await serving.reconcile()
        return await asked(home, "hr", "lantern") == {"travel.pdf"}

    await home.until(is_back)
    assert await asked(home, "hr", "marzipan") == set()


async def test_an_unreadable_tenant_does_not_stop_reconciliation(
    tmp_path: Path, embedder: BundledEmbedder
) -> None:
    async with open_home(tmp_path, embedder, EmbeddedIndex(tmp_path / "index", timeout=2)) as home:
        serving = await home.serve(stop_at="quick")
        home.drop("a/leave.pdf", LEAVE)
        home.drop("b/travel.pdf", TRAVEL)
        await home.until_found("a", "marzipan", "leave.pdf")
        found = await home.until_found("b", "lantern", "travel.pdf")
        blocked = await file_of(home, "a")
        blocked.unlink()
        blocked.mkdir()
        await home.index.remove((await home.channel("b")).tenant, found.id, found.chunks)
        await asyncio.wait_for(serving.reconcile(), PATIENCE)
        again = await home.until_found("b", "lantern", "travel.pdf")
        assert again.id != found.id
