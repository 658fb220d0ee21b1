"""Stability check: when a file counts as completely written."""

import os
from pathlib import Path

from harness.waiting import Clock

from ingestion.sources.base import FileStat, ScannedFile
from ingestion.sources.local import LocalSource
from ingestion.watch.settle import StabilityCheck


def seen(root: Path, name: str) -> ScannedFile:
    """Return a file as a scan sees it now."""
    return LocalSource(str(root)).scan().files[name]


def test_a_file_is_settled_after_two_equal_scans(tmp_path: Path) -> None:
    """Shows that a file that ends like a PDF needs one second."""
    clock = Clock()
    (tmp_path / "a.pdf").write_bytes(b"%PDF-1.4 ... %%EOF\n")
    stability = StabilityCheck(LocalSource(str(tmp_path)), 1, 10, clock=clock)
    assert not stability.is_settled(seen(tmp_path, "a.pdf"))
    clock.now += 0.5
    assert not stability.is_settled(seen(tmp_path, "a.pdf"))
    clock.now += 0.6
    assert stability.is_settled(seen(tmp_path, "a.pdf"))


def test_a_changed_file_starts_over(tmp_path: Path) -> None:
    """Shows that a growing file is never settled."""
    clock = Clock()
    path = tmp_path / "a.pdf"
    stability = StabilityCheck(LocalSource(str(tmp_path)), 1, 10, clock=clock)
    for size in range(1, 30):
        path.write_bytes(b"%%EOF" * size)
        assert not stability.is_settled(seen(tmp_path, "a.pdf"))
        clock.now += 0.9


def test_a_replacement_with_equal_size_and_mtime_is_noticed(tmp_path: Path) -> None:
    """Shows that inode and ctime are compared, too."""
    clock = Clock()
    path = tmp_path / "a.pdf"
    path.write_bytes(b"old %%EOF")
    status = path.stat()
    stability = StabilityCheck(LocalSource(str(tmp_path)), 1, 10, clock=clock)
    stability.is_settled(seen(tmp_path, "a.pdf"))
    clock.now += 2
    new = tmp_path / "new"
    new.write_bytes(b"new %%EOF")
    os.utime(new, ns=(status.st_atime_ns, status.st_mtime_ns))
    new.replace(path)
    assert not stability.is_settled(seen(tmp_path, "a.pdf"))


def test_a_truncated_file_takes_longer_to_settle(tmp_path: Path) -> None:
    """Shows that a half-copied file has ten seconds to grow."""
    clock = Clock()
    (tmp_path / "a.pdf").write_bytes(b"%PDF-1.4 the first half")
    stability = StabilityCheck(LocalSource(str(tmp_path)), 1, 10, clock=clock)
    stability.is_settled(seen(tmp_path, "a.pdf"))
    clock.now += 9
    assert not stability.is_settled(seen(tmp_path, "a.pdf"))
    clock.now += 2
    assert stability.is_settled(seen(tmp_path, "a.pdf"))


def test_a_single_run_trusts_the_age_of_old_files(tmp_path: Path) -> None:
    """Shows that one scan is enough for an old file; a new one still waits."""
    path = tmp_path / "a.pdf"
    path.write_bytes(b"%%EOF")
    stability = StabilityCheck(LocalSource(str(tmp_path)), 3600, 7200, trusts_age=True)
    assert not stability.is_settled(seen(tmp_path, "a.pdf"))
    an_hour = 3_600_000_000_000
    file_stat = seen(tmp_path, "a.pdf").stat
    old = FileStat(
        file_stat.size, file_stat.modified_ns - an_hour, file_stat.changed_ns - an_hour, file_stat.inode
    )
    assert stability.is_settled(ScannedFile("a.pdf", ("a.pdf",), old))
