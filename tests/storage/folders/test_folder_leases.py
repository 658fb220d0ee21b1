"""Folder leases: one scanner per location, takeover from dead owners, no trust in fast clocks."""

from __future__ import annotations

from datetime import timedelta

import pytest
from harness.clocks import shift_wall_clock
from harness.waiting import Clock

from storage.chat.channels import Channels
from storage.folders.folder_leases import FolderLeases
from storage.folders.folders import Folders
from storage.sql.database import Database
from storage.sql.tables import DocumentRow

PLACE = "/srv/library"


@pytest.fixture
async def place(database: Database) -> str:
    """A location that feeds two channels."""
    channels = Channels(database)
    for name in ("a", "b"):
        channel = await channels.ensure_named(name)
        await Folders(database).ensure(channel.id, PLACE, watched=True, origin="map")
    return PLACE


async def test_a_location_is_leased_to_one_process_until_released(database: Database, place: str) -> None:
    """Shows that all folders of a location are leased together."""
    first, second = FolderLeases(database, "first", 30), FolderLeases(database, "second", 30)
    assert await first.acquire(place)
    assert first.holds(place)
    assert not await second.acquire(place)
    assert not second.holds(place)
    await first.release()
    assert await second.acquire(place)
    assert not first.holds(place)


async def test_a_holder_distrusts_its_lease_before_it_expires(database: Database, place: str) -> None:
    """Shows that a process that was frozen scans nothing before it renews."""
    clock = Clock()
    first, second = FolderLeases(database, "first", 30, clock=clock), FolderLeases(database, "second", 30)
    assert await first.acquire(place)
    clock.now += 21
    assert not first.holds(place)
    assert not await second.acquire(place)
    await first.renew()
    assert first.holds(place)


async def test_an_expired_lease_is_taken_over_and_not_renewed(database: Database, place: str) -> None:
    """Shows that the old holder notices at its next renewal."""
    first, second = FolderLeases(database, "first", 30), FolderLeases(database, "second", 30)
    assert await first.acquire(place)
    with shift_wall_clock(timedelta(seconds=31)):
        assert await second.acquire(place)
        await first.renew()
    assert not first.holds(place)
    assert second.holds(place)


async def test_the_lease_of_a_dead_process_is_taken_at_once(database: Database, place: str) -> None:
    """Shows that a restart after a kill continues immediately."""
    killed = FolderLeases(database, "killed", 30)
    assert await killed.acquire(place)
    assert await FolderLeases(database, "next", 30, is_dead=lambda owner: owner == "killed").acquire(place)


async def test_a_lease_from_a_fast_clock_is_ignored(database: Database, place: str) -> None:
    """Shows that a lease until tomorrow is not honoured."""
    with shift_wall_clock(timedelta(days=1)):
        assert await FolderLeases(database, "ahead", 30).acquire(place)
    assert await FolderLeases(database, "right", 30).acquire(place)


async def test_a_folder_attached_later_joins_the_lease(database: Database, place: str) -> None:
    """Shows that another channel of a location needs no second scanner."""
    first = FolderLeases(database, "first", 30)
    assert await first.acquire(place)
    channel = await Channels(database).ensure_named("c")
    await Folders(database).ensure(channel.id, place, watched=True, origin="map")
    await first.renew()
    assert first.holds(place)
    assert not await FolderLeases(database, "second", 30).acquire(place)


async def test_a_former_holder_does_not_release_the_new_lease(database: Database, place: str) -> None:
    """Shows that a process that was suspended does not open the location to a third one."""
    first, second = FolderLeases(database, "first", 30), FolderLeases(database, "second", 30)
    assert await first.acquire(place)
    with shift_wall_clock(timedelta(seconds=31)):
        assert await second.acquire(place)
        await first.release()
        assert not await FolderLeases(database, "third", 30).acquire(place)


async def test_a_former_holder_deletes_no_documents(database: Database, place: str) -> None:
    """Fencing: files that an old scan missed stay once another process has the lease."""
    channel = await Channels(database).ensure_named("a")
    first, second = Folders(database, "first"), Folders(database, "second")
    folder = await first.ensure(channel.id, place, watched=True, origin="map")
    document = DocumentRow(channel_id=channel.id, folder_id=folder.id, file="0.pdf")
    gone = {document.id: document.file}
    async with database.transaction() as session:
        session.add(document)
    assert await FolderLeases(database, "second", 30).acquire(place)
    assert await first.delete(folder.id, gone) == []
    assert await second.delete(folder.id, gone) == list(gone)
