"""A missing root folder is an outage until an admin approves its deletion."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import pytest
from harness.ingestion_home import Home
from samples.paper import pdf

from ingestion.sources.base import Scan
from ingestion.sources.local import LocalSource
from ingestion.watch.watched_folder import WatchedFolder
from storage.folders.folder_status import FolderStatus
from storage.folders.folders import Folders
from storage.sql.tables import DocumentRow, FolderRow, NoticeRow, ReadingRow

FILES = {"0.pdf", "1.pdf", "2.pdf"}


def fill(root: Path) -> None:
    """Write the files."""
    root.mkdir(parents=True, exist_ok=True)
    for file in FILES:
        (root / file).write_bytes(pdf(f"Rule\nThe rule is {file}."))


async def until_told(home: Home, words: str) -> FolderStatus:
    """Wait until the only folder has a problem with these words."""
    found: list[FolderStatus] = []

    async def is_so() -> bool:
        found[:] = [one for one in await Folders(home.database).status() if words in (one.problem or "")]
        return bool(found)

    await home.until(is_so)
    return found[0]


async def until_watched(home: Home, *, watched: bool) -> None:
    """Wait until the only folder is watched, or not."""

    async def is_so() -> bool:
        return [row.watched for row in await home.rows(FolderRow)] == [watched]

    await home.until(is_so)


async def states(home: Home) -> set[str]:
    """Return the distinct states of the documents."""
    return {row.state for row in await home.rows(DocumentRow)}


async def test_a_removed_inbox_folder_needs_approval_and_can_return(
    home: Home,
) -> None:
    """Asked, approved, deleted, forgotten, and restored without reading again."""
    await home.serve(stop_at="quick")
    fill(home.inbox / "hr")
    await home.until_files("hr", "rule", FILES)
    shutil.move(home.inbox / "hr", home.path / "kept")
    folder = await until_told(home, "footnote folders approve")
    assert "Its 3 documents stay searchable" in (folder.problem or "")
    assert {file for _, file in folder.pending_deletions} == FILES
    assert set(await home.find("hr", "rule")) == FILES
    assert await Folders(home.database).approve(folder.id) == 3
    await home.until_files("hr", "rule", set())
    await until_watched(home, watched=False)
    assert await states(home) == {"deleted"}
    shutil.move(home.path / "kept", home.inbox / "hr")
    await home.until_files("hr", "rule", FILES)
    assert len(await home.rows(ReadingRow)) == 3
    (row,) = await home.rows(FolderRow)
    assert (row.watched, row.problem, row.asked, row.approved) == (True, None, None, None)


async def test_a_folder_back_before_the_next_scan_loses_nothing(home: Home) -> None:
    """Shows that an approval covers what is still missing, and is consumed otherwise."""
    serving = await home.serve(stop_at="quick")
    root = home.inbox / "hr"
    fill(root)
    await home.until_files("hr", "rule", FILES)
    root.rename(home.path / "kept")
    folder = await until_told(home, "approve")
    await serving.stop()
    assert await Folders(home.database).approve(folder.id) == 3
    (home.path / "kept").rename(root)
    await home.serve(stop_at="quick")
    await home.until_row(FolderRow, lambda row: not (row.problem or row.asked or row.approved))
    assert set(await home.find("hr", "rule")) == FILES
    assert await states(home) == {"present"}


@pytest.mark.parametrize("restarts", [pytest.param(False, marks=pytest.mark.long), True])
async def test_a_file_deleted_during_an_outage_needs_no_approval(home: Home, *, restarts: bool) -> None:
    """Shows that the request for the whole location ends when it is back, even across a restart."""
    serving = await home.serve(stop_at="quick")
    root = home.inbox / "hr"
    fill(root)
    await home.until_files("hr", "rule", FILES)
    root.rename(home.path / "kept")
    assert {file for _, file in (await until_told(home, "approve")).pending_deletions} == FILES
    if restarts:
        await serving.stop()
    (home.path / "kept" / "0.pdf").unlink()
    (home.path / "kept").rename(root)
    if restarts:
        await home.serve(stop_at="quick")
    await home.until_files("hr", "rule", FILES - {"0.pdf"})
    await home.until_row(FolderRow, lambda row: not (row.problem or row.asked))


async def test_a_location_that_returns_nearly_empty_needs_approval(home: Home) -> None:
    """Shows that the usual share applies."""
    await home.serve(stop_at="quick")
    root = home.inbox / "hr"
    fill(root)
    await home.until_files("hr", "rule", FILES)
    root.rename(home.path / "kept")
    await until_told(home, "approve")
    for file in ("0.pdf", "1.pdf"):
        (home.path / "kept" / file).unlink()
    (home.path / "kept").rename(root)
    assert {file for _, file in (await until_told(home, "2 of 3 files disappeared")).pending_deletions} == {
        "0.pdf",
        "1.pdf",
    }
    assert set(await home.find("hr", "rule")) == FILES


async def test_emptying_an_existing_folder_needs_approval(home: Home) -> None:
    """Shows that it is watched afterwards as before."""
    await home.serve(stop_at="quick")
    root = home.inbox / "hr"
    fill(root)
    await home.until_files("hr", "rule", FILES)
    for file in FILES:
        (root / file).unlink()
    folder = await until_told(home, "3 of 3 files disappeared")
    assert await Folders(home.database).approve(folder.id) == 3
    await home.until_files("hr", "rule", set())
    home.drop("hr/new.pdf", pdf("Rule\nThe new rule."))
    await home.until_files("hr", "rule", {"new.pdf"})


async def test_a_mapped_location_gone_for_good_names_its_entry(home: Home, tmp_path: Path) -> None:
    """Shows that the map stays authoritative: its entry has to be removed."""
    root = tmp_path / "share"
    fill(root)
    home.path.mkdir(exist_ok=True)
    (home.path / "folders.toml").write_text(f'[[folder]]\nlocation = "{root}"\nchannel = "hr"\n')
    await home.ingestion(stop_at="quick").start(home.inbox, home.path / "folders.toml")
    await home.until_files("hr", "rule", FILES)
    shutil.rmtree(root)
    folder = await until_told(home, "approve")
    await Folders(home.database).approve(folder.id)
    await home.until_files("hr", "rule", set())
    assert not (await until_told(home, "remove its entry from folders.toml")).pending_deletions
    await until_watched(home, watched=True)


async def test_an_inbox_folder_without_documents_needs_no_approval(home: Home) -> None:
    """Shows that removing it leaves no problem behind."""
    await home.serve(stop_at="quick")
    (home.inbox / "hr").mkdir(parents=True)
    await until_watched(home, watched=True)
    (home.inbox / "hr").rmdir()
    await until_watched(home, watched=False)
    assert await Folders(home.database).status() == []


async def test_a_partial_approval_never_covers_a_missing_location(home: Home) -> None:
    """Shows that no document of an unavailable location is deleted unless all were approved."""
    folders, channel = Folders(home.database), await home.channel("hr")
    folder = await folders.ensure(channel.id, str(home.path / "gone"), watched=True, origin="map")
    async with home.database.transaction() as session:
        session.add_all(DocumentRow(channel_id=channel.id, folder_id=folder.id, file=file) for file in FILES)
    watched, away = WatchedFolder(folder, folders, 0.5, away_seconds=0), LocalSource(folder.location).scan()
    assert away.is_gone
    await watched.finish_scan(away, ())
    some = [one.id for one in (await folders.documents(folder.id)).values()][:2]
    assert await folders.approve(folder.id, some) == 2
    await watched.finish_scan(away, ())
    assert await states(home) == {"present"}
    await folders.approve(folder.id)
    await watched.finish_scan(Scan(problem="The server did not answer."), ())
    assert await states(home) == {"present"}
    await watched.finish_scan(away, ())
    assert await states(home) == {"deleted"}


async def test_an_unlistable_subfolder_is_named_to_admins_only(
    home: Home, caplog: pytest.LogCaptureFixture
) -> None:
    """Shows that the problem says where to look, and that the log has no names."""
    folders, channel = Folders(home.database), await home.channel("hr")
    folder = await folders.ensure(channel.id, "/srv/hr", watched=True, origin="map")
    scan = Scan(problem="A part of the folder cannot be listed: Permission denied.", where='"wages"')
    with caplog.at_level(logging.INFO):
        await WatchedFolder(folder, folders, 0.5, away_seconds=0).finish_scan(scan, ())
    told = 'A part of the folder cannot be listed: Permission denied. See "wages".'
    assert (await folders.status())[0].problem == told
    assert [one.text for one in await home.rows(NoticeRow)] == [told]
    assert "cannot be listed" in caplog.text
    assert "wages" not in caplog.text
