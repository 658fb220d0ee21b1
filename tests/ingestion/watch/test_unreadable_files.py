"""Files unreadable because of permissions or a damaged disk are reported and retried."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from harness.ingestion_home import Home
from samples.paper import pdf

from ingestion.errors import FileUnreadable
from ingestion.settings import IngestionSettings
from ingestion.sources.base import FileStat, Scan, ScannedFile
from ingestion.sources.local import LocalSource
from ingestion.sources.safe_copy import RETRY_SECONDS, UnreadableFiles
from ingestion.watch.intake import Intake
from ingestion.watch.watched_folder import LocationScanner, WatchedFolder
from storage.documents.arrivals import Arrivals
from storage.folders.folders import Folders

# A regular file whose first byte is unreadable: the kernel returns EIO, as for a damaged disk.
OWN_MEMORY = Path("/proc/self/mem")


def damaged() -> ScannedFile:
    """Return a scanned PDF whose bytes cannot be read."""
    return ScannedFile("bad.pdf", ("mem",), FileStat.of(OWN_MEMORY.stat()))


class DamagedDisk(LocalSource):
    """A folder with one file on a damaged part of the disk."""

    is_damaged = True

    def scan(self) -> Scan:
        """Scan the folder, and the damaged file while there is one."""
        seen = super().scan()
        if self.is_damaged:
            seen.files["bad.pdf"] = ScannedFile("bad.pdf", ("bad.pdf",), FileStat(100, 0, 0, 7))
        return seen

    def copy(self, seen: ScannedFile, target: Path, max_bytes: int) -> str:
        """Copy a file; the damaged one fails with EIO."""
        if self.is_damaged and seen.file == "bad.pdf":
            return LocalSource("/proc/self").copy(damaged(), target, max_bytes)
        return super().copy(seen, target, max_bytes)


def test_an_io_error_of_a_file_says_what_to_do(tmp_path: Path) -> None:
    """Shows that an input/output error applies to the file only, and that it can be retried."""
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        OWN_MEMORY.read_bytes()
    source = LocalSource("/proc/self")
    with pytest.raises(FileUnreadable, match=r"Input/output error.*check its disk"):
        source.copy(damaged(), tmp_path / "copy", 1000)


def test_an_unreadable_file_is_retried_periodically() -> None:
    """Shows that it is retried although it did not change, and not at every scan."""
    now, file_stat = [0.0], FileStat(1, 2, 3, 4)
    files = UnreadableFiles(lambda: now[0])
    assert files.stat_to_remember(("a.pdf",), file_stat) == file_stat
    files.add(("a.pdf",))
    first = files.stat_to_remember(("a.pdf",), file_stat)
    files.add(("a.pdf",))
    now[0] = RETRY_SECONDS - 1
    assert first == files.stat_to_remember(("a.pdf",), file_stat) != file_stat
    now[0] = RETRY_SECONDS + 1
    assert files.stat_to_remember(("a.pdf",), file_stat) not in (first, file_stat)
    assert files.stat_to_remember(("b.pdf",), file_stat) == file_stat
    files.remove(("a.pdf",))
    assert files.stat_to_remember(("a.pdf",), file_stat) == file_stat


async def test_an_unreadable_file_is_listed_and_blocks_no_other(home: Home, tmp_path: Path) -> None:
    """Shows that an admin finds it in the document list with advice, until it is readable."""
    (tmp_path / "good.pdf").write_bytes(pdf("Rule\nThe rule is good."))
    folders, channel = Folders(home.database), await home.channel("hr")
    folder = await folders.ensure(channel.id, str(tmp_path), watched=True, origin="map")
    arrivals = Arrivals(home.database, home.ingestion(stop_at="quick").generations, home.blobs)
    source = DamagedDisk(str(tmp_path))
    watch = LocationScanner(source, Intake(arrivals, home.blobs, 10**8), IngestionSettings(rest_seconds=1))
    watch.feed([WatchedFolder(folder, folders, 0.5, away_seconds=0)])

    async def are_listed() -> bool:
        await watch.tick()
        return len(await home.documents("hr")) == 2

    await home.until(are_listed)
    listed = await home.documents("hr")
    assert listed["bad.pdf"].state == "quarantined"
    assert "check its disk" in (listed["bad.pdf"].reason or "")
    assert listed["good.pdf"].state == "waiting"
    source.is_damaged = False
    (tmp_path / "bad.pdf").write_bytes(pdf("Rule\nThe rule was bad."))

    async def is_taken() -> bool:
        await watch.tick()
        return (await home.documents("hr"))["bad.pdf"].state == "waiting"

    await home.until(is_taken)
