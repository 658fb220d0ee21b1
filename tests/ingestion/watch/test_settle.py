"""When a file counts as finished, and how it is copied."""

import hashlib
import os
from pathlib import Path

import pytest

from ingestion.errors import FileChanged, FileRefused, NotAFile
from ingestion.sources import safe_copy
from ingestion.sources.base import FileStat, ScannedFile
from ingestion.sources.local import LocalSource
from ingestion.sources.safe_copy import open_beneath
from ingestion.watch.settle import StabilityCheck


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def copy(root: Path, file: ScannedFile, target: Path, max_bytes: int) -> str:
    """Copy a file of a folder of this machine."""
    return LocalSource(str(root)).copy(file, target, max_bytes)


def seen(root: Path, name: str) -> ScannedFile:
    """One file as a scan sees it now."""
    return LocalSource(str(root)).scan().files[name]


def test_a_file_is_taken_after_two_equal_looks_a_second_apart(tmp_path: Path) -> None:
    """Shows that a file which ends as a PDF does rests for one second."""
    clock = Clock()
    (tmp_path / "a.pdf").write_bytes(b"%PDF-1.4 ... %%EOF\n")
    stability = StabilityCheck(LocalSource(str(tmp_path)), 1, 10, clock=clock)
    assert not stability.is_settled(seen(tmp_path, "a.pdf"))
    clock.now += 0.5
    assert not stability.is_settled(seen(tmp_path, "a.pdf"))
    clock.now += 0.6
    assert stability.is_settled(seen(tmp_path, "a.pdf"))


def test_a_file_that_changed_between_two_looks_begins_its_rest_again(tmp_path: Path) -> None:
    """Shows that a growing file is never taken, however long it grows."""
    clock = Clock()
    path = tmp_path / "a.pdf"
    stability = StabilityCheck(LocalSource(str(tmp_path)), 1, 10, clock=clock)
    for size in range(1, 30):
        path.write_bytes(b"%%EOF" * size)
        assert not stability.is_settled(seen(tmp_path, "a.pdf"))
        clock.now += 0.9


def test_a_replacement_that_keeps_size_and_time_is_noticed(tmp_path: Path) -> None:
    """Shows that inode and change time give away what the modification time hides."""
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


def test_a_file_that_looks_cut_off_rests_longer(tmp_path: Path) -> None:
    """Shows that a half-copied file has ten seconds to go on growing."""
    clock = Clock()
    (tmp_path / "a.pdf").write_bytes(b"%PDF-1.4 the first half")
    stability = StabilityCheck(LocalSource(str(tmp_path)), 1, 10, clock=clock)
    stability.is_settled(seen(tmp_path, "a.pdf"))
    clock.now += 9
    assert not stability.is_settled(seen(tmp_path, "a.pdf"))
    clock.now += 2
    assert stability.is_settled(seen(tmp_path, "a.pdf"))


def test_a_single_run_does_not_wait_for_files_that_have_rested_already(tmp_path: Path) -> None:
    """Shows that one look is enough for a file nobody touched for long; a fresh one still waits."""
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


def test_a_copy_has_the_bytes_and_their_hash(tmp_path: Path) -> None:
    """Shows the ordinary case."""
    (tmp_path / "a.pdf").write_bytes(b"x" * 3_000_000)
    sha256 = copy(tmp_path, seen(tmp_path, "a.pdf"), tmp_path / "copy", 10_000_000)
    assert sha256 == hashlib.sha256(b"x" * 3_000_000).hexdigest()
    assert (tmp_path / "copy").read_bytes() == b"x" * 3_000_000


def test_a_file_that_changed_since_it_was_seen_is_not_copied(tmp_path: Path) -> None:
    """Shows that the bytes taken are the bytes that settled."""
    path = tmp_path / "a.pdf"
    path.write_bytes(b"one")
    before = seen(tmp_path, "a.pdf")
    path.write_bytes(b"other")
    with pytest.raises(FileChanged):
        copy(tmp_path, before, tmp_path / "copy", 10_000_000)


def test_a_file_that_grows_faster_than_it_is_copied_fills_no_disk(tmp_path: Path) -> None:
    """Shows that no more is copied than was seen, however much a writer goes on adding."""
    path = tmp_path / "a.pdf"
    path.write_bytes(b"x" * 3_000_000)

    def grow() -> None:
        with path.open("ab") as file:
            file.write(b"x" * 2_000_000)
        assert path.stat().st_size < 30_000_000, "it would have gone on for ever"

    with pytest.raises(FileChanged):
        safe_copy.copy(tmp_path, seen(tmp_path, "a.pdf"), tmp_path / "copy", 10_000_000, grow)
    assert (tmp_path / "copy").stat().st_size < 3_000_000 + safe_copy.BLOCK_BYTES


def test_a_file_above_the_limit_is_refused_before_it_is_copied(tmp_path: Path) -> None:
    """Shows that a sparse file of 50 GB costs nothing."""
    with (tmp_path / "a.pdf").open("wb") as file:
        file.truncate(50_000_000_000)
    with pytest.raises(FileRefused, match="FOOTNOTE_MAX_FILE_MB"):
        copy(tmp_path, seen(tmp_path, "a.pdf"), tmp_path / "copy", 200_000_000)
    assert not (tmp_path / "copy").exists()


def test_a_link_or_pipe_swapped_in_after_the_scan_is_not_followed(tmp_path: Path) -> None:
    """Shows that neither the file nor a folder above it can be exchanged for a link, and nothing blocks."""
    (tmp_path / "secret.pdf").write_bytes(b"secret")
    root = tmp_path / "root"
    root.mkdir()
    (root / "link.pdf").symlink_to(tmp_path / "secret.pdf")
    (root / "linked").symlink_to(tmp_path)
    os.mkfifo(root / "pipe.pdf")
    for parts in (("link.pdf",), ("linked", "secret.pdf"), ("pipe.pdf",), ("gone.pdf",)):
        with pytest.raises(NotAFile):
            open_beneath(root, parts)
