"""An object store in a folder: listed objects are complete, and a missing folder is an outage."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage.errors import BlobsUnavailable, SettingsError
from storage.files.object_store import ObjectStore, hash_file


def store_at(url: str) -> ObjectStore:
    """Return the blob store at an address."""
    return ObjectStore(url, BlobsUnavailable, "the blob store")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A source file."""
    file = tmp_path / "source.pdf"
    file.write_bytes(b"%PDF-1.7 " * 10)
    return file


def test_two_writers_of_one_content_do_not_share_a_draft(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows that a copy in progress is not overwritten by another writer, and that drafts are not listed."""
    store, replace = store_at(f"file://{tmp_path}/store"), Path.replace

    def interrupted(draft: Path, place: Path) -> Path:
        monkeypatch.setattr(Path, "replace", replace)
        assert store.listed("blobs") == {}
        store.put(source, "blobs/ab/abc")
        return replace(draft, place)

    monkeypatch.setattr(Path, "replace", interrupted)
    store.put(source, "blobs/ab/abc")
    assert store.read("blobs/ab/abc") == source.read_bytes()
    assert [path.name for path in (tmp_path / "store").rglob("*") if path.is_file()] == ["abc"]


def test_a_missing_store_folder_is_an_outage(tmp_path: Path, source: Path) -> None:
    """Shows that FileNotFoundError, which S3 packages raise for a wrong bucket, becomes the store's error."""
    missing = store_at(f"dir://missing::file://{tmp_path}")
    assert missing.read("footnote-home.txt") is None
    with pytest.raises(BlobsUnavailable, match="no such bucket or folder"):
        missing.put(source, "footnote-home.txt")
    with pytest.raises(FileNotFoundError):
        missing.put(tmp_path / "gone", "footnote-home.txt")


@pytest.mark.parametrize("url", ["file://{}/store", "memory://{}"])
def test_no_more_than_the_limit_is_fetched(tmp_path: Path, source: Path, url: str) -> None:
    """Shows that an object over the size limit does not match and leaves nothing on disk."""
    store, target = store_at(url.format(tmp_path)), tmp_path / "copy"
    store.put(source, "blobs/ab/abc")
    size = source.stat().st_size
    assert store.copy_to("blobs/ab/abc", target, size - 1) != hash_file(source)
    assert target.stat().st_size == 0
    assert store.read("blobs/ab/abc", size - 1) == b""
    assert store.copy_to("blobs/ab/abc", target, size) == hash_file(source)
    assert store.copy_to("blobs/ab/abc", target, None) == hash_file(source)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("ftp://a..example/x", "has an invalid host"),
        ("ftp://xn--ü.example/x", "has an invalid host"),
        ("s3://\N{ACCOUNT OF}.example/x", "or no host"),
        ("nonsense://host/x", "unknown protocol"),
        ("webdav://host/x", r"cannot be opened \(TypeError\)"),
    ],
)
def test_an_invalid_address_is_refused_with_a_message(url: str, words: str) -> None:
    """Covers addresses that packages refuse on construction, each with its own exception."""
    with pytest.raises(SettingsError, match=f"the URL of the blob store .*{words}"):
        store_at(url)


def test_a_failed_connection_on_construction_is_an_outage() -> None:
    """Covers a server that does not answer on construction."""
    with pytest.raises(BlobsUnavailable, match="the blob store cannot be reached: Connection refused"):
        store_at("ftp://127.0.0.1:1/x")
