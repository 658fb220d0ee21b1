"""Deletions: with or without approval, undone, and never because of an unavailable disk."""

from __future__ import annotations

import asyncio
from pathlib import Path
from uuid import uuid4

import pytest
from harness.ingestion_home import Home
from harness.tables import for_each
from harness.waiting import Clock
from samples.paper import pdf

from ingestion.settings import IngestionSettings
from ingestion.sources.base import FileStat, Scan, ScannedFile
from ingestion.sources.local import LocalSource
from ingestion.watch.deletions import AWAY_SECONDS, DeletionPolicy, needs_approval, pending_approvals
from ingestion.watch.intake import Intake
from ingestion.watch.known_files import KnownFolder
from ingestion.watch.watched_folder import LocationScanner, WatchedFolder
from storage.clock import utc_now
from storage.documents.arrivals import Arrivals
from storage.documents.identity import Arrival
from storage.folders.folder_leases import FolderLeases
from storage.folders.folders import Folder, Folders
from storage.sql.tables import (
    BlobRow,
    DocumentRow,
    FolderRow,
    NoticeRow,
    PublicationRow,
    ReadingRow,
    VersionRow,
)


async def watched(home: Home, files: int = 4, folder: str = "hr") -> Folders:
    """Return the folders of a served home whose files 0.pdf, 1.pdf, ... are live."""
    await home.serve(stop_at="quick")
    for number in range(files):
        home.drop(f"{folder}/{number}.pdf", pdf(f"Rule\nThe rule has number {number}."))
    await home.until_files(folder, "rule", {f"{number}.pdf" for number in range(files)})
    return Folders(home.database)


def take_away(home: Home, *numbers: int) -> dict[Path, bytes]:
    """Delete files; return paths and contents to restore them."""
    gone = {path: path.read_bytes() for path in (home.inbox / "hr" / f"{one}.pdf" for one in numbers)}
    for path in gone:
        path.unlink()
    return gone


async def until_asked(home: Home, files: set[str]) -> int:
    """Wait until exactly these files await approval; return the folder's id."""
    found: list[int] = []

    async def is_asked() -> bool:
        status = [one for one in await Folders(home.database).status() if one.pending_deletions]
        found[:] = [one.id for one in status if {file for _, file in one.pending_deletions} == files]
        return bool(found)

    await home.until(is_asked)
    return found[0]


@for_each(
    ("lost", "of_folder", "before", "asks"),
    [
        (1, 1, 0, True),
        (4, 4, 0, True),
        (4, 5, 0, False),
        (51, 60, 0, True),
        (4, 60, 47, True),
        (0, 0, 0, False),
    ],
)
def test_deleting_a_folder_or_a_large_share_needs_approval(
    lost: int, of_folder: int, before: int, *, asks: bool
) -> None:
    """Shows that a folder is never emptied without it, however small next to the channel's 100 documents."""
    assert needs_approval(lost, of_folder, 100, 0.5, before=before) is asks


@pytest.mark.parametrize(
    ("asked", "away", "still"),
    [([0, 1, 2], [0, 1, 2], [0, 1, 2]), ([0, 1, 2], [0], []), ([0, 1, 2], [], []), ([0, 1], [0], [0, 1])],
)
def test_a_pending_deletion_of_a_whole_location_ends_on_return(
    asked: list[int], away: list[int], still: list[int]
) -> None:
    """A request for all three documents ends once some are back, one for some of them stays."""
    named = [uuid4() for _ in range(3)]
    left = pending_approvals({named[one] for one in asked}, {*named}, {named[one] for one in away})
    assert left == {named[one] for one in still}


async def test_only_approved_files_are_deleted(home: Home) -> None:
    """Shows that an approval covers exactly the files it was requested for."""
    folders = await watched(home)
    take_away(home, 0, 1, 2)
    folder = await until_asked(home, {"0.pdf", "1.pdf", "2.pdf"})
    assert set(await home.find("hr", "rule")) == {"0.pdf", "1.pdf", "2.pdf", "3.pdf"}
    assert await folders.approve(folder) == 3
    await home.until_files("hr", "rule", {"3.pdf"})
    await home.until_row(FolderRow, lambda row: not (row.problem or row.asked or row.approved))


async def test_a_restored_file_is_removed_from_the_pending_deletion(home: Home) -> None:
    """Shows that an approval covers what is still missing."""
    folders = await watched(home)
    gone = take_away(home, 0, 1, 2)
    await until_asked(home, {"0.pdf", "1.pdf", "2.pdf"})
    path = home.inbox / "hr" / "0.pdf"
    path.write_bytes(gone[path])
    folder = await until_asked(home, {"1.pdf", "2.pdf"})
    await folders.approve(folder)
    await home.until_files("hr", "rule", {"0.pdf", "3.pdf"})


async def test_a_further_loss_needs_a_new_approval(home: Home) -> None:
    folders = await watched(home, 5)
    take_away(home, 0, 1, 2)
    folder = await until_asked(home, {"0.pdf", "1.pdf", "2.pdf"})
    await folders.approve(folder)
    await home.until_files("hr", "rule", {"3.pdf", "4.pdf"})
    take_away(home, 3, 4)
    await until_asked(home, {"3.pdf", "4.pdf"})
    assert set(await home.find("hr", "rule")) == {"3.pdf", "4.pdf"}


@pytest.mark.long
async def test_a_pending_deletion_survives_a_restart_and_an_outage(home: Home) -> None:
    """Shows that an approval given while stopped or during an outage applies at the next complete scan."""
    folders = await watched(home)
    take_away(home, 0, 1, 2)
    folder = await until_asked(home, {"0.pdf", "1.pdf", "2.pdf"})
    await home.ingestions[0].stop()
    root = home.inbox / "hr"
    root.rename(home.path / "away")
    await folders.approve(folder)
    await home.serve(stop_at="quick")

    async def is_outage() -> bool:
        (row,) = await home.rows(FolderRow)
        return "missing" in (row.problem or "")

    await home.until(is_outage)
    await asyncio.sleep(1)
    assert len(await home.find("hr", "rule")) == 4
    (home.path / "away").rename(root)
    await home.until_files("hr", "rule", {"3.pdf"})


async def test_the_share_is_of_the_channel_not_of_the_folder(home: Home, tmp_path: Path) -> None:
    """Shows that two of three files of a small folder may be deleted when the channel has many more."""
    small = tmp_path / "small"
    small.mkdir()
    for number in range(3):
        (small / f"small-{number}.pdf").write_bytes(pdf(f"Rule\nThe small rule has number {number}."))
    home.path.mkdir(exist_ok=True)
    (home.path / "folders.toml").write_text(f'[[folder]]\nlocation = "{small}"\nchannel = "hr"\n')
    await home.ingestion(stop_at="quick").start(home.inbox, home.path / "folders.toml")
    for number in range(4):
        home.drop(f"hr/{number}.pdf", pdf(f"Rule\nThe rule has number {number}."))
    every = {f"{number}.pdf" for number in range(4)}
    await home.until_files("hr", "rule", every | {f"small-{number}.pdf" for number in range(3)})
    for number in range(2):
        (small / f"small-{number}.pdf").unlink()
    await home.until_files("hr", "rule", every | {"small-2.pdf"})


async def test_a_deleted_document_can_be_restored_without_rereading(home: Home) -> None:
    """Undo: put the file back within the grace period, under any name."""
    folders = await watched(home)
    gone = take_away(home, 0)
    await home.until_files("hr", "rule", {"1.pdf", "2.pdf", "3.pdf"})
    channel = (await home.channel("hr")).id
    (deleted,) = await folders.deleted(channel)
    assert (deleted.file, deleted.location) == ("0.pdf", str(home.inbox / "hr"))
    (data,) = gone.values()
    assert home.blobs.path(deleted.sha256).read_bytes() == data
    home.drop("hr/again.pdf", data)
    await home.until_files("hr", "rule", {"again.pdf", "1.pdf", "2.pdf", "3.pdf"})
    assert (await home.until_found("hr", "rule", "again.pdf")).document_id == deleted.id
    assert await folders.deleted(channel) == []
    assert len(await home.rows(ReadingRow)) == 4


class PartlyUnreadable(LocalSource):
    """A folder whose subfolder ``locked/`` cannot be listed."""

    is_locked = False

    def scan(self) -> Scan:
        """Scan without the locked subfolder."""
        seen = super().scan()
        if not self.is_locked:
            return seen
        rest = {file: one for file, one in seen.files.items() if not file.startswith("locked/")}
        return Scan(rest, "A part of the folder cannot be listed: Permission denied.")


async def test_an_unreadable_subfolder_stops_deletions_not_arrivals(home: Home, tmp_path: Path) -> None:
    """Shows that an incomplete scan deletes no document and still adds new ones."""
    (tmp_path / "locked").mkdir()
    for name in ("0.pdf", "locked/1.pdf", "2.pdf"):
        (tmp_path / name).write_bytes(pdf(f"Rule\nThe rule is {name}."))
    folders, channel = Folders(home.database), await home.channel("hr")
    folder = await folders.ensure(channel.id, str(tmp_path), watched=True, origin="map")
    source = PartlyUnreadable(str(tmp_path), 10)
    generations = home.ingestion(stop_at="quick").generations
    watch = LocationScanner(
        source,
        Intake(Arrivals(home.database, generations, home.blobs), home.blobs, 10**8),
        IngestionSettings(),
    )
    watch.feed([WatchedFolder(folder, folders, 0.5, away_seconds=0)])
    await home.until(lambda: _has_looked(watch, folders, folder, 3))
    source.is_locked = True
    (tmp_path / "0.pdf").unlink()
    (tmp_path / "3.pdf").write_bytes(pdf("Rule\nThe rule is 3."))
    await home.until(lambda: _has_looked(watch, folders, folder, 4))
    assert "cannot be listed" in ((await folders.status())[0].problem or "")
    source.is_locked = False
    await home.until(lambda: _has_looked(watch, folders, folder, 3))
    assert set(await folders.documents(folder.id)) == {"locked/1.pdf", "2.pdf", "3.pdf"}
    assert (await folders.status())[0].problem is None


async def _has_looked(watch: LocationScanner, folders: Folders, folder: Folder, documents: int) -> bool:
    await watch.tick()
    return len(await folders.documents(folder.id)) == documents


def scan_of(*files: str) -> Scan:
    """Return a complete scan that saw these files."""
    return Scan({file: ScannedFile(file, (file,), FileStat(1, 0, 0, 0)) for file in files})


@pytest.fixture
async def folder(home: Home) -> Folder:
    """A folder of ten live documents that exist in SQL only."""
    channel = await home.channel("hr")
    made = await Folders(home.database).ensure(channel.id, "/srv/hr", watched=True, origin="map")
    await know(home, made, [f"{number}.pdf" for number in range(10)], answer=True)
    return made


async def know(home: Home, folder: Folder, files: list[str], *, answer: bool) -> None:
    """Add documents that exist in SQL only, with live or failed readings."""
    ids = {"channel_id": folder.channel_id}
    async with home.database.transaction() as session:
        for file in files:
            document = DocumentRow(**ids, folder_id=folder.id, file=file)
            sha256 = uuid4().hex * 2
            reading = ReadingRow(sha256=sha256, generation="g", rung="quick", state="failed")
            session.add_all((document, BlobRow(sha256=sha256, size=1)))
            await session.flush()
            version = VersionRow(document_id=document.id, number=1, sha256=sha256)
            session.add_all((version, reading))
            await session.flush()
            if answer:
                reading.state = "done"
                shown = PublicationRow(**ids, version_id=version.id, reading_id=reading.id, state="live")
                shown.live_at = utc_now()
                session.add(shown)


async def judge(vanishing: DeletionPolicy, known: KnownFolder, *files: int) -> str | None:
    """Judge a complete scan that saw these files."""
    await known.load()
    return await vanishing.judge(scan_of(*(f"{number}.pdf" for number in files)), ())


async def test_an_ongoing_loss_is_judged_when_it_is_over(home: Home, folder: Folder) -> None:
    """Debounce: a folder that empties file by file is one large loss, not many small ones."""
    folders, clock = Folders(home.database), Clock()
    known = KnownFolder(folder, folders)
    vanishing = DeletionPolicy(known, folders, 0.5, clock, away_seconds=0)
    for left in range(9, 2, -1):
        assert await judge(vanishing, known, *range(left)) is None
        clock.now += 1
    assert "7 of 10" in (await judge(vanishing, known, *range(3)) or "")
    assert not [row for row in await home.rows(DocumentRow) if row.state == "deleted"]


async def test_a_briefly_missing_file_is_not_deleted(home: Home, folder: Folder) -> None:
    """Shows that quick scans delete nothing while a program saves, and that a longer absence counts."""
    folders, clock = Folders(home.database), Clock()
    known = KnownFolder(folder, folders)
    vanishing = DeletionPolicy(known, folders, 0.5, clock, away_seconds=1)
    for seconds in (0.0, 0.4, 0.4):
        clock.now += seconds
        await judge(vanishing, known, *range(9))
    assert not [row for row in await home.rows(DocumentRow) if row.state == "deleted"]
    clock.now += 0.4
    await judge(vanishing, known, *range(9))
    assert [row.file for row in await home.rows(DocumentRow) if row.state == "deleted"] == ["9.pdf"]


async def test_files_deleted_at_once_are_judged_together(home: Home, folder: Folder) -> None:
    """Shows that the first of six is not deleted alone because a scan ran in between."""
    folders, clock = Folders(home.database), Clock()
    known = KnownFolder(folder, folders)
    policy = DeletionPolicy(known, folders, 0.5, clock, away_seconds=1)
    for seconds, left in ((0.0, 9), (0.5, 4), (0.6, 4)):
        clock.now += seconds
        assert await judge(policy, known, *range(left)) is None
    clock.now += 0.6
    assert "6 of 10" in (await judge(policy, known, *range(4)) or "")
    assert not [row for row in await home.rows(DocumentRow) if row.state == "deleted"]


async def test_an_endless_loss_is_judged_after_a_limit(home: Home, folder: Folder) -> None:
    """Shows that losing a file at every scan does not postpone deletions for ever."""
    folders, clock = Folders(home.database), Clock()
    known = KnownFolder(folder, folders)
    vanishing = DeletionPolicy(known, folders, 0.5, clock, away_seconds=0)
    await judge(vanishing, known, *range(9))
    clock.now += AWAY_SECONDS + 1
    await judge(vanishing, known, *range(8))
    assert len([row for row in await home.rows(DocumentRow) if row.state == "deleted"]) == 1


async def test_a_document_renamed_concurrently_is_not_deleted(home: Home, folder: Folder) -> None:
    """Compare-and-set: a deletion names the file it means and is void if SQL has another."""
    folders = Folders(home.database)
    known = await folders.documents(folder.id)
    gone = {known["0.pdf"].id: "0.pdf", known["1.pdf"].id: "other.pdf"}
    assert await folders.delete(folder.id, gone) == [known["0.pdf"].id]


async def deleted_files(home: Home) -> set[str]:
    """Return the files of all deleted documents."""
    return {row.file for row in await home.rows(DocumentRow) if row.state == "deleted"}


async def look(policy: DeletionPolicy, known: KnownFolder, folders: Folders, *files: str) -> str | None:
    """Judge two complete scans that saw these files, and record the second."""
    for _ in range(2):
        await known.load()
        problem = await policy.judge(scan_of(*files), ())
    await folders.report(known.folder.id, problem, policy.asked)
    return problem


async def test_files_that_were_never_live_need_no_approval(home: Home) -> None:
    """Shows that five unreadable files of eight are deleted at once."""
    folders, channel = Folders(home.database), await home.channel("hr")
    made = await folders.ensure(channel.id, "/srv/hr", watched=True, origin="map")
    read, unread = ["a.pdf", "b.pdf", "c.pdf"], [f"bad-{number}.pdf" for number in range(5)]
    await know(home, made, read, answer=True)
    await know(home, made, unread, answer=False)
    known = KnownFolder(made, folders)
    policy = DeletionPolicy(known, folders, 0.5, away_seconds=0)
    assert await look(policy, known, folders, *read) is None
    assert await deleted_files(home) == set(unread)
    assert "2 of 3" in (await look(policy, known, folders, "a.pdf") or "")


async def test_a_pending_deletion_holds_back_only_its_own_files(home: Home, folder: Folder) -> None:
    """A single file is deleted while six others await approval; a further large loss needs it, too."""
    folders = Folders(home.database)
    known = KnownFolder(folder, folders)
    policy = DeletionPolicy(known, folders, 0.5, away_seconds=0)
    assert "6 of 10" in (await look(policy, known, folders, *(f"{one}.pdf" for one in range(6, 10))) or "")
    assert "6 of 9" in (await look(policy, known, folders, "6.pdf", "7.pdf", "8.pdf") or "")
    assert await deleted_files(home) == {"9.pdf"}
    assert "8 of 9" in (await look(policy, known, folders, "6.pdf") or "")
    assert await deleted_files(home) == {"9.pdf"}


async def test_a_slow_endless_loss_is_limited_to_the_share(home: Home, folder: Folder) -> None:
    """Shows that a mirror that empties the folder over minutes deletes no more than the share unapproved."""
    folders, clock = Folders(home.database), Clock()
    known = KnownFolder(folder, folders)
    vanishing = DeletionPolicy(known, folders, 0.5, clock, away_seconds=0)
    told = []
    for left in range(9, 1, -1):
        told.append(await judge(vanishing, known, *range(left)))
        clock.now += AWAY_SECONDS
    assert len([row for row in await home.rows(DocumentRow) if row.state == "deleted"]) == 5
    assert "2 of 5" in (told[-1] or "")


async def test_an_approval_of_restored_files_is_consumed(home: Home, folder: Folder) -> None:
    """Shows that it does not outlive a restart when no approved file is missing any more."""
    folders = Folders(home.database)
    known = KnownFolder(folder, folders)
    lost = {
        row.id for row in (await folders.documents(folder.id)).values() if row.file in "1.pdf 2.pdf 3.pdf"
    }
    await folders.report(folder.id, "3 files vanished", lost)
    assert await folders.approve(folder.id) == 3
    vanishing = DeletionPolicy(known, folders, 0.2, away_seconds=0)
    assert await judge(vanishing, known, *range(10)) is None
    for _ in range(2):
        problem = await judge(vanishing, known, 0, *range(4, 10))
    assert "3 of 10" in (problem or "")


async def test_a_pending_deletion_is_not_announced_again_on_restart(home: Home) -> None:
    """Shows that the first scan of a new process does not close it."""
    await watched(home)
    take_away(home, 0, 1, 2)
    await until_asked(home, {"0.pdf", "1.pdf", "2.pdf"})
    await home.ingestions[0].stop()
    (before,) = await home.rows(FolderRow)
    watch = WatchedFolder(
        (await Folders(home.database).watched())[0], Folders(home.database), 0.5, away_seconds=0
    )
    source = LocalSource(before.location)
    for scan in (Scan(problem="The disk is away."), source.scan(), source.scan(), source.scan()):
        await watch.finish_scan(scan, ())
        (row,) = await home.rows(FolderRow)
        assert row.asked == before.asked
    assert row.problem == before.problem
    told = [one.text for one in await home.rows(NoticeRow) if one.kind == "folder"]
    assert told == [before.problem, "The disk is away.", before.problem]


async def test_a_stale_scanner_neither_deletes_nor_stores(home: Home, tmp_path: Path) -> None:
    """Fencing: an old scan has no effect once another process has the lease."""
    channel = await home.channel("hr")
    halted = Folders(home.database, "halted")
    folder = await halted.ensure(channel.id, str(tmp_path), watched=True, origin="map")
    async with home.database.transaction() as session:
        session.add(DocumentRow(channel_id=channel.id, folder_id=folder.id, file="0.pdf"))
    gone = {one.id: one.file for one in (await halted.documents(folder.id)).values()}
    assert await FolderLeases(home.database, "another", 60).acquire(folder.location)
    assert await halted.delete(folder.id, gone) == []
    arrivals = Arrivals(home.database, home.ingestion(stop_at="quick").generations, home.blobs)
    temporary = home.blobs.new_temporary()
    temporary.write_bytes(b"old")
    arrival = Arrival("0.pdf", {}, "0" * 64, 3, lambda: home.blobs.adopt(temporary, "0" * 64))
    assert await arrivals.store(folder, [arrival], None, owner="halted") == []
    assert await Folders(home.database, "another").delete(folder.id, gone) == list(gone)
