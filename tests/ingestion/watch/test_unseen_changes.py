"""Changes that were reverted before this process saw them, while another process did."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from harness.clocks import advance_clocks
from harness.ingestion_home import Home

from ingestion.folder_map.inbox import WatchedInbox
from ingestion.folder_map.watch_list import FolderMap
from ingestion.watch.watched_folder import REMEMBERED_SECONDS
from storage.folders.folder_leases import FolderLeases
from storage.folders.folders import Folders
from storage.sql.tables import NoticeRow


async def test_a_map_reverted_unseen_is_applied_again(home: Home, tmp_path: Path) -> None:
    """Shows that a process that saw no change restores what another process has unmapped."""
    folders, path = Folders(home.database), tmp_path / "folders.toml"
    text = f'[[folder]]\nlocation = "{tmp_path / "share"}"\nchannel = "hr"\n'
    path.write_text(text)
    seeing, late = (FolderMap(path, home.inbox, home.channels, folders) for _ in range(2))
    await seeing.begin()
    await late.begin()
    path.write_text("# nothing for a moment\n")
    assert [await seeing.refresh() for _ in range(3)] == [False, True, False]
    assert await folders.watched() == []
    path.write_text(text)
    assert [await late.refresh() for _ in range(3)] == [False, True, False]
    assert [one.origin for one in await folders.watched()] == ["map"]


async def test_a_folder_forgotten_by_another_process_is_watched_again(home: Home) -> None:
    """Shows that the cached set of watched folders expires."""
    folders, leases = Folders(home.database), FolderLeases(home.database, "late", 60)
    seeing, late = (WatchedInbox(home.inbox, home.channels, folders, leases) for _ in range(2))
    (home.inbox / "hr").mkdir(parents=True)
    ((folder,), _) = await seeing.refresh()
    assert await late.load() == [folder]
    (home.inbox / "hr").rmdir()
    assert await seeing.refresh() == ([], {folder.id})
    (home.inbox / "hr").mkdir()
    assert await late.refresh() == ([], set())
    assert await folders.watched() == []
    with advance_clocks(timedelta(seconds=REMEMBERED_SECONDS + 1)):
        assert await late.refresh() == ([folder], {folder.id})
        assert await late.refresh() == ([], set())
    assert await folders.watched() == [folder]


async def test_a_scan_of_a_forgotten_folder_reports_no_problem(home: Home) -> None:
    """Shows that no notice and no row of the folder is left."""
    folders, channel = Folders(home.database), await home.channel("hr")
    folder = await folders.ensure(channel.id, str(home.inbox / "hr"), watched=True, origin="inbox")
    assert await folders.unwatch_empty([folder.id]) == {folder.id}
    await folders.report(folder.id, "The folder is missing.")
    assert await folders.status() == []
    assert await home.rows(NoticeRow) == []
