"""The rhythm of places: nobody waits for a slow one, and a quiet one costs the database nothing."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

from ingestion_home import Home
from paper import pdf
from sqlalchemy import event
from sqlalchemy.engine import Engine

from ingestion.aside import run_for
from ingestion.intake import Intake
from ingestion.lease_owner import is_surely_dead, own_name
from ingestion.mapped import Wanted
from ingestion.mapping_checks import Wish
from ingestion.places import Place
from ingestion.settings import IngestionSettings
from ingestion.sources.local import LocalSource
from ingestion.sources.port import Scan
from ingestion.watching import PlaceWatch, WatchedFolder
from storage.arrivals import Arrivals
from storage.folders import Folder, Folders

SETTINGS = IngestionSettings(scan_seconds=0.2)


def intake(home: Home) -> Intake:
    """What takes files of any place."""
    return Intake(Arrivals(home.database, home.ingestion(stop_at="quick").generations), home.blobs, 10**8)


async def folder_at(home: Home, location: Path, channel: str = "hr") -> Folder:
    """A mapped folder."""
    location.mkdir(exist_ok=True)
    where = await home.channel(channel)
    return await Folders(home.database).ensure(where.id, str(location), watched=True, origin="map")


async def test_a_quiet_scan_asks_the_database_nothing(home: Home, tmp_path: Path) -> None:
    """Shows that a thousand looks at an unchanged folder cost a thousand scans."""
    folder = await folder_at(home, tmp_path / "hr")
    (tmp_path / "hr" / "a.pdf").write_bytes(pdf("A rule."))
    watch = PlaceWatch(LocalSource(folder.location, 10), intake(home), SETTINGS)
    watch.feed([WatchedFolder(folder, Folders(home.database), 0.5)])

    async def is_taken() -> bool:
        return await watch.look()

    await home.until(is_taken)
    await watch.look()
    statements: list[str] = []

    def note(_: object, __: object, statement: str, *rest: object) -> None:
        statements.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        for _ in range(5):
            assert not await watch.look()
    finally:
        event.remove(Engine, "before_cursor_execute", note)
    assert statements == []


class SlowSource(LocalSource):
    """A share that takes its time."""

    is_remote = True

    def scan(self) -> Scan:
        """See every PDF in it, at last."""
        time.sleep(1.0)
        return super().scan()


async def test_a_share_that_is_slow_leaves_the_shared_threads_to_others(tmp_path: Path) -> None:
    """Shows that more hanging shares than there are threads delay no local folder."""
    local = LocalSource(str(tmp_path), 10)
    slow = [SlowSource(str(tmp_path), 10) for _ in range(3 * (os.cpu_count() or 1) + 12)]
    for one in slow:
        one.is_remote = True
    hanging = [asyncio.create_task(run_for(one, one.scan)) for one in slow]
    await asyncio.sleep(0)
    assert (await run_for(local, local.scan)).problem is None
    assert not any(one.done() for one in hanging)
    await asyncio.gather(*hanging)


async def test_a_paused_place_is_not_even_opened(home: Home, tmp_path: Path) -> None:
    """Shows that pausing leaves a share in peace."""
    folder = await folder_at(home, tmp_path / "hr")
    (tmp_path / "hr" / "a.pdf").write_bytes(pdf("A rule."))
    place = Place(folder.location, Folders(home.database), intake(home), SETTINGS)
    place.feed([Wanted(folder, Wish(folder.location, "hr", is_paused=True))])
    assert place.is_paused
    assert not await place.look()
    place.feed([Wanted(folder, Wish(folder.location, "hr"))])
    await home.until(place.look)


async def test_the_most_eager_channel_of_a_place_sets_its_rhythm(home: Home, tmp_path: Path) -> None:
    """Shows whose cadence counts where several are wished."""
    folder, other = await folder_at(home, tmp_path / "hr"), await folder_at(home, tmp_path / "hr", "it")
    place = Place(folder.location, Folders(home.database), intake(home), SETTINGS)
    wish = Wish(folder.location, "hr", every=60)
    place.feed([Wanted(folder, wish), Wanted(other, Wish(folder.location, "it", every=30))])
    assert place.tick_seconds == 30
    place.feed([Wanted(folder, wish)])
    assert place.tick_seconds == 60


def test_a_process_of_this_machine_that_ended_is_surely_dead() -> None:
    """Shows that a name tells a living process from a dead one, and claims nothing of other machines."""
    ended = subprocess.run(
        [sys.executable, "-c", "from ingestion.lease_owner import own_name; print(own_name())"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    assert is_surely_dead(ended)
    assert not is_surely_dead(own_name())
    assert not is_surely_dead("elsewhere:1:abc")
    assert not is_surely_dead("nonsense")
