"""``folders.toml`` that is changed and changed back, under the eyes of several processes."""

from __future__ import annotations

from pathlib import Path

from ingestion_home import Home

from ingestion.mapped import MappedFolders
from storage.folders import Folders


async def test_a_map_that_was_changed_and_changed_back_unseen_is_put_in_force_again(
    home: Home, tmp_path: Path
) -> None:
    """Shows that who saw nothing of the change mends what another process, which saw it, has unmapped."""
    folders, path = Folders(home.database), tmp_path / "folders.toml"
    text = f'[[folder]]\nlocation = "{tmp_path / "share"}"\nchannel = "hr"\n'
    path.write_text(text)
    seeing, late = (MappedFolders(path, home.inbox, home.channels, folders) for _ in range(2))
    await seeing.begin()
    await late.begin()
    path.write_text("# nothing for a moment\n")
    assert [await seeing.follow() for _ in range(3)] == [False, True, False]
    assert await folders.watched() == []
    path.write_text(text)
    assert [await late.follow() for _ in range(3)] == [False, True, False]
    assert [one.origin for one in await folders.watched()] == ["map"]
