"""Reconciliation of SQL, index and disk: losses are repaired, orphans deleted."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from engines.weaviate import RealWeaviate
from harness.ingestion_home import Home, open_home
from samples.paper import pdf

from ingestion.app import Ingestion
from storage.chat.channels import Channels
from storage.chat.citations import Citations
from storage.documents.catalog import Catalog
from storage.embeddings.onnx_embedder import BundledEmbedder
from storage.errors import UnknownTenant
from storage.files.blobs import Blobs
from storage.files.object_store import StoredFile
from storage.index.base import Index, IndexedChunk
from storage.index.embedded.index import EmbeddedIndex
from storage.index.live_index import LiveIndex
from storage.models import CitedPlace, TenantName
from storage.queues.inventory import Inventory
from storage.sql.database import Database
from storage.sql.tables import PublicationRow, ReadingRow

LEAVE = pdf("Leave\nEmployees get twenty five days of marzipan leave a year.")
TRAVEL = pdf("Travel\nEmployees go by lantern train, second class.")
NEWER = pdf("Leave\nEmployees get thirty days of saffron leave a year.")


WEAVIATE = pytest.mark.engine("weaviate")
BOTH_ENGINES = pytest.mark.parametrize(
    "home", ["embedded", pytest.param("weaviate", marks=[WEAVIATE, pytest.mark.long])], indirect=True
)


@pytest.fixture
async def home(
    request: pytest.FixtureRequest, tmp_path: Path, embedder: BundledEmbedder
) -> AsyncIterator[Home]:
    """A new home, on the embedded index unless a test requests another."""
    path = tmp_path / "home"
    async with open_home(path, embedder, await _index(request, path)) as made:
        yield made


async def _index(request: pytest.FixtureRequest, path: Path) -> Index:
    if getattr(request, "param", "embedded") == "embedded":
        return EmbeddedIndex(path / "index", 10)
    server: RealWeaviate = request.getfixturevalue("weaviate")
    return await server.connect()


@pytest.fixture
def channel() -> str:
    """A channel name unique on the server."""
    return f"hr {uuid4().hex}"


async def tenant_of(home: Home, channel: str) -> TenantName:
    """Return the channel's tenant."""
    return (await home.channel(channel)).tenant


async def serve(home: Home, **settings: Any) -> Ingestion:
    """Start an ingestion; return when its first reconciliation, due at once, can repair nothing any more."""
    serving = await home.serve(**settings)

    async def is_first_over() -> bool:
        return await serving.reconcile() is not None

    await home.until(is_first_over)
    return serving


async def reconcile(serving: Ingestion) -> dict[str, int]:
    """Reconcile; return the repairs that are not zero."""
    repairs = await serving.reconcile()
    assert repairs is not None
    found = {name: getattr(repairs, name) for name in repairs.__slots__}
    return {name: number for name, number in found.items() if number}


async def is_equal(home: Home, channel: str) -> bool:
    """True if the index holds what is live, and besides only what undoing a deletion may need."""
    rows = await home.rows(PublicationRow)
    live, retired = ({row.id for row in rows if row.state == state} for state in ("live", "retired"))
    try:
        held = await home.index.publications(await tenant_of(home, channel))
    except UnknownTenant:
        held = {}
    return live <= held.keys() <= live | retired


@BOTH_ENGINES
async def test_reconciling_a_consistent_home_changes_nothing(home: Home, channel: str) -> None:
    serving = await serve(home, stop_at="quick")
    home.drop(f"{channel}/leave.pdf", LEAVE)
    home.drop(f"{channel}/travel.pdf", TRAVEL)
    await home.until_found(channel, "marzipan", "leave.pdf")
    await home.until_found(channel, "lantern", "travel.pdf")
    before = {row.id: row.state for row in await home.rows(PublicationRow)}
    assert await reconcile(serving) == {}
    assert {row.id: row.state for row in await home.rows(PublicationRow)} == before


@BOTH_ENGINES
async def test_lost_publications_are_republished(home: Home, channel: str) -> None:
    """Covers a lost publication and a lost tenant; the successor has a new id."""
    serving = await serve(home, stop_at="quick")
    home.drop(f"{channel}/leave.pdf", LEAVE)
    live = await home.until_found(channel, "marzipan", "leave.pdf")
    tenant = await tenant_of(home, channel)
    await home.index.remove(tenant, live.id, live.chunks)
    assert await reconcile(serving) == {"republished": 1}
    again = await home.until_found(channel, "marzipan", "leave.pdf")
    assert again.id != live.id
    await home.index.drop_tenant(tenant)
    assert await reconcile(serving) == {"republished": 1}
    await home.until_found(channel, "marzipan", "leave.pdf")


@BOTH_ENGINES
async def test_resurrected_objects_are_never_hits_and_are_removed(home: Home, channel: str) -> None:
    """Covers objects of a removed or unknown publication."""
    serving = await serve(home, stop_at="quick")
    home.drop(f"{channel}/leave.pdf", LEAVE)
    await home.until_found(channel, "marzipan", "leave.pdf")
    where = await home.channel(channel)
    stray = ghost(uuid4())
    await home.index.write(where.tenant, [stray])
    found = await LiveIndex(home.index, home.catalog, "none").search(where, ["resurrect"], None)
    assert found.words == []
    assert await reconcile(serving) == {"orphans_removed": 1}
    assert await is_equal(home, channel)


def ghost(publication: UUID) -> IndexedChunk:
    """Return a chunk of an unknown publication."""
    return IndexedChunk(publication, 0, "resurrect", "resurrect", 1, 1, (), ())


@BOTH_ENGINES
async def test_an_unknown_tenant_is_dropped_from_our_own_index_only(home: Home, channel: str) -> None:
    """Shows that other tenants of a shared server are left alone, because another home may own them."""
    serving = await serve(home, stop_at="quick")
    home.drop(f"{channel}/leave.pdf", LEAVE)
    await home.until_found(channel, "marzipan", "leave.pdf")
    foreign = TenantName("lo_" + 52 * "b")
    await home.index.ensure_tenant(foreign)
    await reconcile(serving)
    assert await home.index.has_tenant(foreign) is not home.index.is_exclusive
    await home.index.drop_tenant(foreign)


@pytest.mark.parametrize("damage", ["gone", "cut"])
async def test_a_lost_blob_is_copied_again_from_its_folder(home: Home, channel: str, damage: str) -> None:
    """The document gets neither a new version nor a second reading."""
    serving = await serve(home, stop_at="quick")
    home.drop(f"{channel}/leave.pdf", LEAVE)
    live = await home.until_found(channel, "marzipan", "leave.pdf")
    path = home.blobs.path(live.sha256)
    path.unlink()
    if damage == "cut":
        path.write_bytes(LEAVE[:100])
    assert await reconcile(serving) == {"blobs_requeued": 1}

    async def is_back() -> bool:
        return path.exists() and path.read_bytes() == LEAVE

    await home.until(is_back)
    await home.until(lambda: has_no_reason(home, channel))
    assert len(await home.rows(ReadingRow)) == 1
    assert (await home.until_found(channel, "marzipan", "leave.pdf")).version_id == live.version_id


async def test_a_renamed_file_with_a_lost_blob_stays_live(
    home: Home, channel: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Shows that the document waits for the new name to settle, although its blob is lost."""
    caplog.set_level("INFO")
    serving = await serve(home, stop_at="quick", settle_seconds=1.0)
    old = home.drop(f"{channel}/leave.pdf", LEAVE)
    home.drop(f"{channel}/travel.pdf", TRAVEL)
    before = await home.until_found(channel, "marzipan", "leave.pdf")
    await serving.stop()
    home.blobs.remove(before.sha256)
    assert await reconcile(serving) == {"blobs_requeued": 1}
    old.rename(old.with_name("holidays.pdf"))
    await home.serve(stop_at="quick", settle_seconds=1.0)
    after = await home.until_found(channel, "marzipan", "holidays.pdf")
    assert after.document_id == before.document_id
    assert home.blobs.path(before.sha256).read_bytes() == LEAVE
    assert "outcome=deleted" not in caplog.text


async def has_no_reason(home: Home, channel: str) -> bool:
    """True if no document of the channel has a problem."""
    return all(one.reason is None for one in (await home.documents(channel)).values())


async def test_a_lost_blob_without_a_file_is_reported(home: Home, channel: str) -> None:
    """A document that was ingested manually stays live and says what to do."""
    folder = home.path / "by hand"
    folder.mkdir()
    (folder / "leave.pdf").write_bytes(LEAVE)
    await home.ingest(folder, channel, stop_at="quick")
    live = await home.until_found(channel, "marzipan", "leave.pdf")
    home.blobs.remove(live.sha256)
    assert await reconcile(home.ingestion(stop_at="quick")) == {"blobs_requeued": 1}
    (one,) = (await home.documents(channel)).values()
    assert (one.state, "ingest it again" in (one.reason or "")) == ("live", True)
    await home.ingest(folder, channel, stop_at="quick")
    assert home.blobs.path(live.sha256).read_bytes() == LEAVE


@pytest.mark.parametrize(
    "file",
    [
        "chunks.lines",
        *(
            pytest.param(one, marks=pytest.mark.long)
            for one in ("chunks.index", "pages.lines", "vectors.npy")
        ),
    ],
)
async def test_a_damaged_reading_is_read_again(home: Home, channel: str, file: str) -> None:
    """Shows that the document stays live; a worker at work would repair one before it is compared."""
    serving = await serve(home)
    home.drop(f"{channel}/leave.pdf", LEAVE)
    await home.until(lambda: is_full(home, channel))
    await serving.stop()
    for path in (home.path / "readings").glob(f"??/*/{file}"):
        path.write_bytes(path.read_bytes()[:-1])
    repaired = await reconcile(home.ingestion())
    assert repaired == {"readings_requeued": 1 if file == "vectors.npy" else 2}
    assert "leave.pdf" in await home.find(channel, "marzipan")
    serving = await serve(home)

    async def is_whole() -> bool:
        states = [row.state for row in await home.rows(ReadingRow)]
        return states == ["done", "done"]

    await home.until(is_whole)
    assert await reconcile(serving) == {}


async def is_full(home: Home, channel: str) -> bool:
    """True if the only document is live with vectors."""
    return {one.rung for one in (await home.documents(channel)).values()} == {"full"}


class BusyBlobs(Blobs):
    """A blob store that receives a file while it is being listed."""

    def __init__(self, root: Path, arrive: Callable[[], Coroutine[Any, Any, None]]) -> None:
        super().__init__(root)
        self._loop, self._arrive = asyncio.get_running_loop(), arrive

    def listed(self, shelves: Iterable[str]) -> dict[str, StoredFile]:
        """List, then let the file arrive, and return the earlier listing."""
        found = super().listed(shelves)
        asyncio.run_coroutine_threadsafe(self._arrive(), self._loop).result(60)
        return found


async def test_a_file_arriving_during_the_listing_is_not_swept(home: Home, channel: str) -> None:
    """Shows that no blob is removed that was added to SQL after the disk was listed."""
    home.blobs = BusyBlobs(home.path / "blobs", lambda: home.store(channel, "leave.pdf", LEAVE))
    assert await reconcile(home.ingestion()) == {}
    assert home.blobs.path(hashlib.sha256(LEAVE).hexdigest()).read_bytes() == LEAVE


async def test_orphaned_files_are_swept_after_a_grace_period(home: Home, channel: str) -> None:
    """Covers blobs, readings and drafts; recent ones may still be added to SQL."""
    serving = await serve(home, stop_at="quick")
    home.drop(f"{channel}/leave.pdf", LEAVE)
    await home.until_found(channel, "marzipan", "leave.pdf")
    orphan = home.blobs.path("ab" + 62 * "0")
    orphan.parent.mkdir(exist_ok=True)
    orphan.write_bytes(b"nobody's")
    reading = uuid4()
    draft = home.path / "readings" / reading.hex[:2] / f".{reading}.{uuid4().hex}"
    draft.mkdir(parents=True)
    await home.files.write(reading, [], [], None)
    assert await reconcile(serving) == {}
    old = time.time() - 7200
    for path in (orphan, draft, home.path / "readings" / reading.hex[:2] / str(reading)):
        os.utime(path, (old, old))
    assert await reconcile(serving) == {"files_swept": 3}
    assert not orphan.exists()
    assert not draft.exists()


async def test_one_process_reconciles_at_a_time(home: Home) -> None:
    """Shows that a second process skips it until the first is done or its lease expires."""
    second, sql = home.ingestion(lease_seconds=2), Inventory(home.database)
    assert await sql.acquire_lease(timedelta(seconds=1), is_wanted_now=True)
    assert await second.reconcile() is None

    async def is_free() -> bool:
        return await second.reconcile() is not None

    await home.until(is_free)
    assert not await sql.acquire_lease(timedelta(seconds=1), is_wanted_now=False)


@BOTH_ENGINES
async def test_a_restored_older_database_is_repaired_from_the_folders(home: Home, channel: str) -> None:
    """Today's files are read again, deleted files are not live, and no orphan is left."""
    serving = await home.serve()
    home.drop(f"{channel}/leave.pdf", LEAVE)
    gone = home.drop(f"{channel}/gone.pdf", pdf("Gone\nThe walnut clause ends today."))
    for number in range(3):
        home.drop(f"{channel}/stays{number}.pdf", pdf(f"Stays\nThe copper clause {number} stays."))
    for file, word in (("leave.pdf", "marzipan"), ("gone.pdf", "walnut"), ("stays2.pdf", "copper")):
        await home.until_found(channel, word, file)
    await home.until(lambda: is_full(home, channel))
    await serving.stop()
    yesterday = home.path / "yesterday.db"
    back_up(home.path / "footnote.db", yesterday)

    serving = await home.serve(delete_grace_seconds=0)
    home.drop(f"{channel}/leave.pdf", NEWER)
    home.drop(f"{channel}/travel.pdf", TRAVEL)
    gone.unlink()
    today = await home.until_found(channel, "saffron", "leave.pdf")
    await home.until_found(channel, "lantern", "travel.pdf")
    await home.until(lambda: is_state(home, channel, "gone.pdf", "deleted"))
    where = await home.channel(channel)
    (cited,) = await Citations(home.database).add(where.id, [CitedPlace(today.version_id, 1, "thirty days")])
    await home.until(lambda: is_equal(home, channel))
    await serving.stop()
    await restore(home, yesterday)

    serving = await home.serve(sweep_grace_seconds=0)
    await home.until_found(channel, "saffron", "leave.pdf")
    await home.until_found(channel, "lantern", "travel.pdf")
    await home.until(lambda: is_state(home, channel, "gone.pdf", "deleted"))
    assert await home.find(channel, "walnut") == {}
    assert await home.find(channel, "marzipan") == {}
    assert await Citations(home.database).get(cited.id) is None
    await reconcile_until_equal(home, serving, channel)
    assert {*(await home.find(channel, "copper"))} == {f"stays{number}.pdf" for number in range(3)}


def back_up(source: Path, target: Path) -> None:
    """Copy an SQLite database online."""
    with closing(sqlite3.connect(source)) as connection, closing(sqlite3.connect(target)) as copy:
        connection.backup(copy)


async def restore(home: Home, copy: Path) -> None:
    """Replace the database by the copy while it is closed."""
    await home.database.aclose()
    for end in ("", "-wal", "-shm"):
        (home.path / f"footnote.db{end}").unlink(missing_ok=True)
    shutil.copy(copy, home.path / "footnote.db")
    home.database = await Database.open(f"sqlite:///{home.path}/footnote.db")
    home.channels, home.catalog = Channels(home.database), Catalog(home.database)


async def is_state(home: Home, channel: str, file: str, state: str) -> bool:
    """True if the file's document has this state."""
    one = (await home.documents(channel)).get(file)
    return one is not None and one.state == state


@BOTH_ENGINES
async def test_a_restored_older_index_is_repaired(
    home: Home, channel: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Shows that an old data folder loses no current document and shows no outdated one."""
    serving = await home.serve(stop_at="quick")
    home.drop(f"{channel}/leave.pdf", LEAVE)
    home.drop(f"{channel}/stays.pdf", pdf("Stays\nThe copper clause stays."))
    await home.until_found(channel, "marzipan", "leave.pdf")
    await home.until_found(channel, "copper", "stays.pdf")
    await home.until(lambda: is_equal(home, channel))
    is_weaviate = not home.index.is_exclusive
    server: RealWeaviate | None = request.getfixturevalue("weaviate") if is_weaviate else None
    data = server.data if server else home.path / "index"
    if server:
        server.stop()
    shutil.copytree(data, tmp_path / "yesterday")
    if server:
        server.start()
    home.drop(f"{channel}/leave.pdf", NEWER)
    await home.until_found(channel, "saffron", "leave.pdf")
    await home.until(lambda: is_equal(home, channel))
    await serving.stop()
    if server:
        server.stop()
    shutil.rmtree(data)
    shutil.copytree(tmp_path / "yesterday", data)
    if server:
        server.start()
    serving = await home.serve(stop_at="quick")
    await home.until_found(channel, "saffron", "leave.pdf")
    assert await home.find(channel, "marzipan") == {}
    await reconcile_until_equal(home, serving, channel)


async def reconcile_until_equal(home: Home, serving: Ingestion, channel: str) -> None:
    """Reconcile until the index equals SQL: retired publications leave after a grace period."""

    async def is_so() -> bool:
        await serving.reconcile()
        return await is_equal(home, channel)

    await home.until(is_so)


async def test_a_lost_blob_is_copied_on_demand(home: Home, channel: str) -> None:
    """Works without a scan, even for a folder that has none; a blob without a file is counted."""
    folder = home.path / "by hand"
    folder.mkdir()
    for name, data in (("leave.pdf", LEAVE), ("travel.pdf", TRAVEL)):
        (folder / name).write_bytes(data)
    await home.ingest(folder, channel, stop_at="quick")
    live = [
        await home.until_found(channel, word, file)
        for word, file in (("marzipan", "leave.pdf"), ("lantern", "travel.pdf"))
    ]
    for one in live:
        home.blobs.remove(one.sha256)
    (folder / "travel.pdf").unlink()
    command, told = home.ingestion(stop_at="quick"), list[tuple[int, int]]()
    assert await reconcile(command) == {"blobs_requeued": 2}
    assert await command.lost_copies.copy(lambda tried, total: told.append((tried, total))) == (1, 1)
    assert told == [(2, 2)]
    assert [home.blobs.exists(one.sha256) for one in live] == [True, False]
    assert home.blobs.path(live[0].sha256).read_bytes() == LEAVE
    (folder / "travel.pdf").write_bytes(TRAVEL)
    assert await command.lost_copies.copy(lambda tried, total: told.append((tried, total))) == (1, 0)
    assert home.blobs.path(live[1].sha256).read_bytes() == TRAVEL
