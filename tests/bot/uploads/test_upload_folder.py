"""The upload folder: files appear atomically, leave nothing behind, and follow no symlink."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from bot.uploads.upload_folder import UploadFolder
from ingestion.sources import open_source


@pytest.fixture
def channel(tmp_path: Path) -> Path:
    """Return the channel's folder in the inbox, which does not exist yet."""
    (tmp_path / "inbox").mkdir()
    return tmp_path / "inbox" / "sl_T1_C1"


def test_a_scan_sees_only_complete_files(channel: Path) -> None:
    """Shows that ingestion sees the file only when complete, and no temporary file."""
    folder = UploadFolder(channel)
    file = folder.create_partial("key")
    file.write(b"%PDF-1.7\n")
    assert open_source(str(channel)).scan().files == {}
    assert open_source(str(channel)).scan().unsupported_files == {}
    file.write(b"rest")
    folder.rename_or_discard(file, "a.pdf")
    assert list(open_source(str(channel)).scan().files) == ["uploads/a.pdf"]
    assert (channel / "uploads" / "a.pdf").read_bytes() == b"%PDF-1.7\nrest"
    assert (file.size, file.sha256) == (13, hashlib.sha256(b"%PDF-1.7\nrest").hexdigest())
    assert folder.names() == ["a.pdf"]


def test_a_retry_deletes_the_leftover_of_a_crash(channel: Path) -> None:
    """Shows that a retry deletes its own leftover file, and not that of another upload."""
    folder = UploadFolder(channel)
    for key in ("one", "two"):
        left = folder.create_partial(key)
        left.write(b"half")
        left.close()
    again = folder.create_partial("one")
    assert len(folder.names()) == 2
    again.write(b"whole")
    folder.rename_or_discard(again, "one.pdf")
    assert sorted(name.startswith(".") for name in folder.names()) == [False, True]


def test_an_existing_file_is_not_overwritten(channel: Path) -> None:
    """Shows that of two workers with the same upload the second leaves the first one's file unchanged."""
    folder = UploadFolder(channel)
    for text in (b"first", b"second"):
        file = folder.create_partial(text.decode())
        file.write(text)
        folder.rename_or_discard(file, "a.pdf")
    assert (channel / "uploads" / "a.pdf").read_bytes() == b"first"
    assert folder.names() == ["a.pdf"]


def test_discarded_and_removed_files_are_deleted(channel: Path) -> None:
    """Shows both, and that repeating them has no effect."""
    folder = UploadFolder(channel)
    assert folder.names() == []
    folder.remove("a.pdf")
    file = folder.create_partial("key")
    folder.discard(file)
    folder.discard(file)
    assert folder.names() == []
    kept = folder.create_partial("key")
    kept.write(b"x")
    folder.rename_or_discard(kept, "a.pdf")
    folder.remove("a.pdf")
    folder.remove("a.pdf")
    assert folder.names() == []


@pytest.mark.parametrize("which", ["channel", "uploads"])
def test_uploads_follow_no_symlink(channel: Path, tmp_path: Path, which: str) -> None:
    """Shows that write access to the inbox cannot redirect our writes or deletions."""
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "uploads").mkdir(parents=True)
    (elsewhere / "uploads" / "a.pdf").write_bytes(b"theirs")
    if which == "channel":
        channel.symlink_to(elsewhere)
    else:
        channel.mkdir()
        (channel / "uploads").symlink_to(elsewhere / "uploads")
    folder = UploadFolder(channel)
    with pytest.raises(OSError, match="Not a directory"):
        folder.create_partial("key")
    with pytest.raises(OSError, match="Not a directory"):
        folder.remove("a.pdf")
    assert [one.name for one in (elsewhere / "uploads").iterdir()] == ["a.pdf"]


def test_a_missing_inbox_is_not_created(tmp_path: Path) -> None:
    """Shows that an unmounted share is not replaced with a folder."""
    with pytest.raises(FileNotFoundError):
        UploadFolder(tmp_path / "away" / "sl_T1_C1").create_partial("key")
    assert not (tmp_path / "away").exists()


@pytest.mark.parametrize("size", [0, 3, 1024, 1030])
def test_a_partial_file_keeps_its_first_kilobyte(channel: Path, size: int) -> None:
    """Shows that a signature can be searched there, in chunks of any size."""
    file = UploadFolder(channel).create_partial("key")
    for number in range(size):
        file.write(bytes([number % 251]))
    assert file.head == bytes(number % 251 for number in range(min(size, 1024)))
    file.close()
