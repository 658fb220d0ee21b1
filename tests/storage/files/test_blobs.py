"""Blobs appear atomically and durably, or not at all."""

import hashlib
import os
from pathlib import Path

import pytest

from storage.errors import BlobsUnavailable
from storage.files.blobs import Blobs

CONTENT = b"%PDF-1.7 the bytes of a document"
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def blobs(tmp_path: Path) -> Blobs:
    """An empty blob store."""
    return Blobs(tmp_path / "blobs")


def write_temporary(blobs: Blobs, content: bytes = CONTENT) -> Path:
    temporary = blobs.new_temporary()
    temporary.write_bytes(content)
    return temporary


def test_an_adopted_file_is_stored_under_its_hash(blobs: Blobs) -> None:
    """Adopting moves the file: the blob is read-only, and the temporary file is gone."""
    temporary = write_temporary(blobs)
    place = blobs.adopt(temporary, SHA256)
    assert place == blobs.path(SHA256)
    assert place.read_bytes() == CONTENT
    assert place.stat().st_mode & 0o777 == 0o400
    assert not temporary.exists()


def test_the_same_content_is_stored_once(blobs: Blobs) -> None:
    """A second adoption keeps the existing blob and inode, and leaves no temporary file."""
    inode = blobs.adopt(write_temporary(blobs), SHA256).stat().st_ino
    temporary = write_temporary(blobs)
    assert blobs.adopt(temporary, SHA256).stat().st_ino == inode
    assert not temporary.exists()


def test_temporary_files_are_on_the_file_system_of_the_blobs(blobs: Blobs, tmp_path: Path) -> None:
    """A rename across file systems is not atomic; two temporary files never share a name."""
    first, second = blobs.new_temporary(), blobs.new_temporary()
    assert first != second
    assert first.parent.stat().st_dev == tmp_path.stat().st_dev


def test_blob_names_are_sha256_hashes_only(blobs: Blobs) -> None:
    """No name leads out of the store."""
    for name in ("../../etc/passwd", SHA256.upper(), SHA256[:-1], SHA256 + "\n", ""):
        with pytest.raises(ValueError, match="sha256"):
            blobs.path(name)


def test_removing_a_blob_is_idempotent(blobs: Blobs) -> None:
    blobs.adopt(write_temporary(blobs), SHA256)
    blobs.remove(SHA256)
    blobs.remove(SHA256)
    assert not blobs.path(SHA256).exists()


def test_sweeping_deletes_only_old_temporary_files(blobs: Blobs) -> None:
    """Leftovers of a killed process are deleted; recent temporary files and all blobs stay."""
    blob = blobs.adopt(write_temporary(blobs), SHA256)
    old, young = write_temporary(blobs), write_temporary(blobs)
    for file in (old, blob):
        os.utime(file, (1_000_000, 1_000_000))
    assert blobs.sweep() == 1
    assert (old.exists(), young.exists(), blob.exists()) == (False, True, True)


def test_a_file_renamed_while_sweeping_is_skipped(blobs: Blobs) -> None:
    """Another process may rename it between listing and stat; a dangling link stands for that."""
    old = write_temporary(blobs)
    os.utime(old, (1_000_000, 1_000_000))
    blobs.new_temporary().symlink_to(old.parent / "renamed")
    assert blobs.sweep() == 1


def test_a_store_that_cannot_write_is_an_outage(blobs: Blobs, tmp_path: Path) -> None:
    """A disk error is the infrastructure's fault, not the document's, and loses no temporary file."""
    temporary = write_temporary(blobs)
    (tmp_path / "blobs" / SHA256[:2]).write_text("a file where the folder should be")
    with pytest.raises(BlobsUnavailable):
        blobs.adopt(temporary, SHA256)
    assert temporary.read_bytes() == CONTENT
    with pytest.raises(BlobsUnavailable):
        Blobs(temporary / "inside a file")


def test_page_images_of_purged_contents_are_swept(tmp_path: Path) -> None:
    """Shows that other documents keep theirs."""
    blobs, gone = Blobs(tmp_path / "blobs"), "b" * 64
    blobs.adopt(write_temporary(blobs), SHA256)
    assert blobs.sweep() == 0
    (tmp_path / "images").mkdir()
    for name in (f"{SHA256}-1-150.png", f"{gone}-1-150.png", f"{gone}-12-72.jpg", ".being-written"):
        (tmp_path / "images" / name).write_bytes(b"picture")
    assert blobs.sweep() == 2
    assert {path.name for path in (tmp_path / "images").iterdir()} == {
        f"{SHA256}-1-150.png",
        ".being-written",
    }
