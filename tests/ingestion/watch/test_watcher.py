"""Scan intervals of locations: a slow location delays no other, and a quiet one costs no query."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path
from typing import ClassVar

from harness.ingestion_home import Home
from harness.waiting import PATIENCE
from samples.paper import pdf
from sqlalchemy import event
from sqlalchemy.engine import Engine

from ingestion.folder_map.folder_map import FolderMapEntry
from ingestion.folder_map.watch_list import WatchTarget
from ingestion.jobs.scheduler import Scheduler
from ingestion.jobs.threads import run_for
from ingestion.settings import IngestionSettings
from ingestion.sources.base import Scan, ScannedFile
from ingestion.sources.local import LocalSource
from ingestion.watch.intake import Intake
from ingestion.watch.watched_folder import LocationScanner, WatchedFolder
from ingestion.watch.watcher import PausedFolders, WatchedLocation, WatchedLocations
from storage.documents.arrivals import Arrivals
from storage.files.blobs import Blobs
from storage.folders.folder_leases import FolderLeases
from storage.folders.folders import Folder, Folders
from storage.sql.audit import AuditedAction
from storage.sql.changes import PollGate
from storage.sql.tables import FolderRow

SETTINGS = IngestionSettings(scan_seconds=0.2)


def intake(home: Home) -> Intake:
    """Return the intake of files of any location."""
    return Intake(
        Arrivals(home.database, home.ingestion(stop_at="quick").generations, home.blobs), home.blobs, 10**8
    )


async def folder_at(home: Home, location: Path, channel: str = "hr") -> Folder:
    """Return a mapped folder."""
    location.mkdir(exist_ok=True)
    where = await home.channel(channel)
    return await Folders(home.database).ensure(where.id, str(location), watched=True, origin="map")


async def test_a_scan_without_changes_runs_no_query(home: Home, tmp_path: Path) -> None:
    """Covers a thousand scans."""
    folder = await folder_at(home, tmp_path / "hr")
    (tmp_path / "hr" / "a.pdf").write_bytes(pdf("A rule."))
    watch = LocationScanner(LocalSource(folder.location, 10), intake(home), SETTINGS)
    watch.feed([WatchedFolder(folder, Folders(home.database), 0.5, away_seconds=0)])

    async def is_taken() -> bool:
        return await watch.tick()

    await home.until(is_taken)
    await watch.tick()
    statements: list[str] = []

    def note(_: object, __: object, statement: str, *rest: object) -> None:
        statements.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        for _ in range(5):
            assert not await watch.tick()
    finally:
        event.remove(Engine, "before_cursor_execute", note)
    assert statements == []


class SlowSource(LocalSource):
    """A share whose scan blocks."""

    is_remote = True
    may_end = threading.Event()

    def scan(self) -> Scan:
        """Wait, then scan."""
        assert self.may_end.wait(PATIENCE)
        return super().scan()


async def test_slow_shares_do_not_occupy_the_shared_threads(tmp_path: Path) -> None:
    """Shows that more hanging shares than threads delay no local folder."""
    local = LocalSource(str(tmp_path), 10)
    slow = [SlowSource(str(tmp_path), 10) for _ in range(3 * (os.cpu_count() or 1) + 12)]
    for one in slow:
        one.is_remote = True
    hanging = [asyncio.create_task(run_for(one, one.scan)) for one in slow]
    await asyncio.sleep(0)
    assert (await run_for(local, local.scan)).problem is None
    assert not any(one.done() for one in hanging)
    SlowSource.may_end.set()
    await asyncio.gather(*hanging)


async def test_a_paused_location_is_not_opened(home: Home, tmp_path: Path) -> None:
    folder = await folder_at(home, tmp_path / "hr")
    (tmp_path / "hr" / "a.pdf").write_bytes(pdf("A rule."))
    place = WatchedLocation(folder.location, Folders(home.database), intake(home), SETTINGS)
    place.feed([WatchTarget(folder, FolderMapEntry(folder.location, "hr", is_paused=True))])
    assert place.is_paused
    assert not await place.tick()
    place.feed([WatchTarget(folder, FolderMapEntry(folder.location, "hr"))])
    await home.until(place.tick)


async def test_a_folder_paused_in_chat_is_not_scanned(home: Home, tmp_path: Path) -> None:
    """Applies from the next tick; nothing is added or deleted until it is resumed."""
    folder = await folder_at(home, tmp_path / "hr")
    file = tmp_path / "hr" / "a.pdf"
    folders, action = Folders(home.database), AuditedAction("local", "pause", "lo_x")
    place = WatchedLocation(folder.location, folders, intake(home), SETTINGS)
    place.feed([WatchTarget(folder, FolderMapEntry(folder.location, "hr"))])
    file.write_bytes(pdf("A rule."))
    assert await folders.pause([folder.id], action, is_paused=True) == 1
    for _ in range(3):
        assert not await place.tick()
    assert place.is_paused
    assert await folders.documents(folder.id) == {}
    assert await folders.pause([folder.id], action, is_paused=False) == 1
    await home.until(place.tick)
    assert list(await folders.documents(folder.id)) == ["a.pdf"]


async def test_locations_share_one_query_for_paused_folders(home: Home, tmp_path: Path) -> None:
    """Shows that they query only after a change, and see a pause at once then."""
    folder, other = await folder_at(home, tmp_path / "hr"), Folders(home.database)
    gate = PollGate(home.database.changes, FolderRow, seconds=3600)
    asked = list[bool]()

    def may_have_changed() -> bool:
        asked.append(gate.should_poll())
        return asked[-1]

    paused = PausedFolders(other, may_have_changed)
    assert await asyncio.gather(*(paused.current() for _ in range(100))) == [frozenset()] * 100
    await other.pause([folder.id], AuditedAction("local", "pause", ""), is_paused=True)
    assert await paused.current() == {folder.id}
    assert sum(asked) == 2


async def test_the_shortest_interval_of_a_location_counts(home: Home, tmp_path: Path) -> None:
    """Covers several channels with different intervals."""
    folder, other = await folder_at(home, tmp_path / "hr"), await folder_at(home, tmp_path / "hr", "it")
    place = WatchedLocation(folder.location, Folders(home.database), intake(home), SETTINGS)
    wish = FolderMapEntry(folder.location, "hr", every=60)
    place.feed(
        [WatchTarget(folder, wish), WatchTarget(other, FolderMapEntry(folder.location, "it", every=30))]
    )
    assert place.tick_seconds == 30
    place.feed([WatchTarget(folder, wish)])
    assert place.tick_seconds == 60


class GatedSource(LocalSource):
    """A source whose copies block until released."""

    def __init__(self, location: str) -> None:
        super().__init__(location)
        self.is_copying = threading.Event()
        self.may_go_on = threading.Event()

    def copy(self, seen: ScannedFile, target: Path, max_bytes: int) -> str:
        """Wait, then copy."""
        self.is_copying.set()
        self.may_go_on.wait(20)
        return super().copy(seen, target, max_bytes)


async def test_a_channel_attached_during_a_copy_gets_the_files_too(home: Home, tmp_path: Path) -> None:
    """Shows that a change of the map in the middle of a scan is not lost."""
    folder, other = await folder_at(home, tmp_path / "hr"), await folder_at(home, tmp_path / "hr", "it")
    (tmp_path / "hr" / "a.pdf").write_bytes(pdf("A rule."))
    folders, source = Folders(home.database), GatedSource(folder.location)
    watch = LocationScanner(source, intake(home), SETTINGS)
    first = WatchedFolder(folder, folders, 0.5, away_seconds=0)
    watch.feed([first])

    async def is_copying() -> bool:
        if not source.is_copying.is_set():
            looks.append(asyncio.create_task(watch.tick()))
            await asyncio.wait(looks[-1:], timeout=0.3)
        return source.is_copying.is_set()

    looks: list[asyncio.Task[bool]] = []
    await home.until(is_copying)
    watch.feed([first, WatchedFolder(other, folders, 0.5, away_seconds=0)])
    source.may_go_on.set()
    await asyncio.gather(*looks)
    await watch.tick()
    assert await folders.documents(folder.id)
    assert await folders.documents(other.id)


async def test_changes_are_settled_soon_even_with_a_long_interval(home: Home, tmp_path: Path) -> None:
    """Shows that a folder scanned every hour adds and deletes what it saw within seconds."""
    folder = await folder_at(home, tmp_path / "hr")
    for number in range(3):
        (tmp_path / "hr" / f"{number}.pdf").write_bytes(pdf(f"Rule {number}."))
    folders, taking = Folders(home.database), intake(home)
    leases = FolderLeases(home.database, "we", 60)

    async def watch_for(seconds: float, files: set[str]) -> None:
        schedule = Scheduler()
        schedule.start()
        places = WatchedLocations(
            lambda one: WatchedLocation(one, folders, taking, SETTINGS), schedule, leases, lambda: None
        )
        await places.set_targets([WatchTarget(folder, FolderMapEntry(folder.location, "hr", every=3600))])

        async def are_known() -> bool:
            return set(await folders.documents(folder.id)) == files

        await home.until(are_known, seconds)
        await schedule.stop()
        await places.close()

    await watch_for(30, {"0.pdf", "1.pdf", "2.pdf"})
    (tmp_path / "hr" / "0.pdf").unlink()
    await watch_for(30, {"1.pdf", "2.pdf"})


class HaltedSource(LocalSource):
    """A folder whose scan blocks until released, even when it is no longer awaited."""

    is_scanning = threading.Event()
    may_end = threading.Event()

    def scan(self) -> Scan:
        """Wait, then scan."""
        self.is_scanning.set()
        self.may_end.wait(20)
        return super().scan()


async def test_a_lease_is_released_after_the_last_scan_has_ended(home: Home, tmp_path: Path) -> None:
    """Shows that no other process scans a location while one of our threads still does."""
    folder = await folder_at(home, tmp_path / "hr")
    folders, taking = Folders(home.database), intake(home)
    ours, others = (FolderLeases(home.database, name, 60) for name in ("we", "others"))
    schedule = Scheduler()
    schedule.start()
    places = WatchedLocations(
        lambda one: WatchedLocation(one, folders, taking, SETTINGS, HaltedSource),
        schedule,
        ours,
        lambda: None,
    )
    await places.set_targets([WatchTarget(folder, FolderMapEntry(folder.location, "hr"))])
    await asyncio.to_thread(HaltedSource.is_scanning.wait, 20)
    unmapping = asyncio.create_task(places.set_targets([]))
    await asyncio.wait((unmapping,), timeout=0.3)
    assert not await others.acquire(folder.location)
    HaltedSource.may_end.set()
    await unmapping
    assert await others.acquire(folder.location)
    await schedule.stop()


class ThreadedPath(type(Path())):  # type(Path()) is the concrete path class of this system
    """A path that records the threads on which it was removed."""

    removed_on: ClassVar[list[int]] = []

    def unlink(self, missing_ok: bool = False) -> None:
        """Record the thread and remove."""
        self.removed_on.append(threading.get_ident())
        super().unlink(missing_ok)


class ThreadedBlobs(Blobs):
    """Blobs whose temporary files record which thread removes them."""

    def new_temporary(self) -> Path:
        """Return a unique temporary path."""
        return ThreadedPath(super().new_temporary())


async def test_temporary_files_are_removed_off_the_event_loop(home: Home, tmp_path: Path) -> None:
    """Shows that removing them from a slow disk delays no question."""
    folder = await folder_at(home, tmp_path / "hr")
    (tmp_path / "hr" / "a.pdf").write_bytes(pdf("A rule."))
    blobs = ThreadedBlobs(home.path / "blobs")
    arrivals = Arrivals(home.database, home.ingestion(stop_at="quick").generations, blobs)
    watch = LocationScanner(LocalSource(folder.location, 10), Intake(arrivals, blobs, 10**8), SETTINGS)
    watch.feed([WatchedFolder(folder, Folders(home.database), 0.5, away_seconds=0)])
    await home.until(watch.tick)
    assert ThreadedPath.removed_on
    assert threading.get_ident() not in ThreadedPath.removed_on
