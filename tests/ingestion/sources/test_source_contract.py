"""Contract of sources, run on local folders and on four kinds of servers."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from engines.support.shares import Place

from ingestion.errors import FileChanged, FileRefused, NotAFile
from ingestion.sources import ScannedFile, Source, open_source
from storage.errors import BlobsUnavailable

# A hanging server takes 6 s: the others are left to the long run.
FAILING = [
    pytest.param(name, marks=[pytest.mark.engine(name), *([] if name == "sftp" else [pytest.mark.long])])
    for name in ("s3", "sftp", "smb", "webdav")
]
REMOTE = [pytest.param(name, marks=pytest.mark.engine(name)) for name in ("s3", "sftp", "smb", "webdav")]
WRONG_ACCOUNT = {
    "s3": {"aws_secret_access_key": "wrong"},
    "smb": {"smb_password": "wrong"},
    "webdav": {"webdav_password": "wrong"},
}
LIMIT = 10_000_000


class LocalFolder:
    """A local folder with the interface of the server fixtures."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.location = str(folder)
        folder.mkdir()

    def source(self, **_: Any) -> Source:
        """Return a source of it."""
        return open_source(self.location)

    def put(self, name: str, data: bytes) -> None:
        """Write a file."""
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_bytes(data)

    def remove(self, name: str) -> None:
        """Delete a file."""
        (self.folder / name).unlink()

    def rename(self, old: str, new: str) -> None:
        """Rename a file."""
        (self.folder / old).rename(self.folder / new)

    def vanish(self) -> None:
        """Make the folder itself disappear."""
        self.folder.rename(self.folder.with_name("gone"))


@pytest.fixture(params=["local", *REMOTE])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """A new folder on each kind of server."""
    if request.param == "local":
        return LocalFolder(tmp_path / "folder")
    return request.getfixturevalue(f"{request.param}_server").place()


@pytest.fixture(params=FAILING)
def share(request: pytest.FixtureRequest) -> Iterator[Place]:
    """A new folder on each server; the server is restarted afterwards."""
    server = request.getfixturevalue(f"{request.param}_server")
    yield server.place()
    server.kill()
    server.start()


@pytest.fixture
def source(place: Place) -> Iterator[Source]:
    """A source of the place."""
    opened = place.source()
    yield opened
    opened.close()


def see(source: Source) -> dict[str, ScannedFile]:
    """Scan without a problem and return the files."""
    seen = source.scan()
    assert seen.problem is None
    return seen.files


def test_files_are_seen_at_any_depth_and_copied_with_their_hash(
    place: Place, source: Source, tmp_path: Path
) -> None:
    """Covers a file larger than a block."""
    large = bytes(range(256)) * 12_000
    place.put("a.pdf", b"one")
    place.put("deep/er/b.pdf", large)
    place.put("notes.txt", b"no PDF")
    seen = see(source)
    assert set(seen) == {"a.pdf", "deep/er/b.pdf"}
    assert source.copy(seen["deep/er/b.pdf"], tmp_path / "copy", LIMIT) == hashlib.sha256(large).hexdigest()
    assert (tmp_path / "copy").read_bytes() == large
    assert see(source) == seen


def test_the_tail_of_a_file_can_be_read_alone(place: Place, source: Source) -> None:
    """Shows that checking a PDF's end reads no more than that."""
    place.put("a.pdf", b"x" * 100_000 + b"%%EOF")
    place.put("short.pdf", b"%%EOF")
    seen = see(source)
    assert source.tail(seen["a.pdf"], 8) == b"xxx%%EOF"
    assert source.tail(seen["short.pdf"], 2048) == b"%%EOF"
    place.remove("a.pdf")
    assert source.tail(seen["a.pdf"], 8) == b""


def test_one_file_can_be_scanned_alone(place: Place, source: Source) -> None:
    """The result equals its entry in a scan; a missing file yields none."""
    place.put("a.pdf", b"one")
    place.put("b.pdf", b"two")
    assert source.scan_file("a.pdf").files == {"a.pdf": see(source)["a.pdf"]}
    assert source.scan_file("gone.pdf").files == {}
    assert source.scan_file("gone.pdf").problem is None


def test_names_with_special_characters_reach_their_own_file(
    place: Place, source: Source, tmp_path: Path
) -> None:
    """Shows that URL and shell characters have no meaning in a name."""
    names = ["a b.pdf", "50%41.pdf", "c#1.pdf", "Prüfung 手順.pdf", "it's;ok&x=[1].pdf", "+(1)~.pdf"]
    for name in names:
        place.put(f"sub folder #2/{name}", name.encode())
    seen = see(source)
    assert set(seen) == {f"sub folder #2/{name}" for name in names}
    for name in names:
        source.copy(seen[f"sub folder #2/{name}"], tmp_path / "copy", LIMIT)
        assert (tmp_path / "copy").read_bytes() == name.encode()


def test_a_replacement_has_another_stat(place: Place, source: Source, tmp_path: Path) -> None:
    """Shows that the old stat can no longer be copied."""
    place.put("a.pdf", b"one")
    before = see(source)["a.pdf"]
    place.put("a.pdf", b"another")
    assert see(source)["a.pdf"].stat != before.stat
    with pytest.raises(FileChanged):
        source.copy(before, tmp_path / "copy", LIMIT)


def test_renamed_and_deleted_files_are_not_in_the_next_scan(
    place: Place, source: Source, tmp_path: Path
) -> None:
    """Shows that no listing is stale."""
    place.put("a.pdf", b"one")
    place.put("b.pdf", b"two")
    before = see(source)
    place.rename("a.pdf", "c.pdf")
    place.remove("b.pdf")
    assert set(see(source)) == {"c.pdf"}
    with pytest.raises(NotAFile):
        source.copy(before["b.pdf"], tmp_path / "copy", LIMIT)


def test_a_file_above_the_limit_is_refused_before_it_is_copied(
    place: Place, source: Source, tmp_path: Path
) -> None:
    """Shows that the size alone is enough."""
    place.put("a.pdf", b"x" * 1001)
    with pytest.raises(FileRefused, match="raise the limit"):
        source.copy(see(source)["a.pdf"], tmp_path / "copy", 1000)
    assert not (tmp_path / "copy").exists()


def test_an_empty_root_is_fine_but_a_missing_one_is_a_problem(place: Place, source: Source) -> None:
    """Shows that an outage is never taken for a deletion."""
    place.put("a.pdf", b"one")
    place.remove("a.pdf")
    assert see(source) == {}
    place.vanish()
    problem = source.scan().problem
    assert problem is not None
    assert "missing" in problem or "no such" in problem


def test_an_unavailable_server_is_a_problem_until_it_is_back(share: Place, tmp_path: Path) -> None:
    """Shows that a killed server deletes no document, and that the same source reconnects."""
    share.put("a.pdf", b"one")
    source = share.source()
    seen = see(source)
    share.kill()
    assert source.scan().problem is not None
    with pytest.raises(BlobsUnavailable):
        source.copy(seen["a.pdf"], tmp_path / "copy", LIMIT)
    share.start()
    assert set(see(source)) == {"a.pdf"}
    source.close()


def test_a_hung_server_times_out_without_leaking_threads(share: Place, tmp_path: Path) -> None:
    """Shows that retries use no further thread, and that the source recovers."""
    share.put("a.pdf", b"one")
    source = share.source(share_timeout=2)
    while (listed := source.scan()).problem is not None:
        pass  # a busy machine may take this long; the test's own limit ends a failure
    seen = listed.files
    share.pause()
    assert "did not answer" in (source.scan().problem or "")
    for _ in range(2):
        with pytest.raises(BlobsUnavailable, match="answer"):
            source.copy(seen["a.pdf"], tmp_path / "copy", LIMIT)
    assert sum(thread.name == "source" for thread in threading.enumerate()) <= 1
    share.resume()
    while source.scan().problem is not None:
        pass  # every call waits for the hanging thread; the test's own limit ends a failure
    assert set(see(source)) == {"a.pdf"}
    source.close()


@pytest.mark.parametrize(("place", "wrong"), [
    pytest.param(name, wrong, marks=pytest.mark.engine(name)) for name, wrong in WRONG_ACCOUNT.items()
], indirect=["place"])  # fmt: skip
def test_wrong_credentials_name_the_variables_to_check(place: Place, wrong: dict[str, str]) -> None:
    """Shows that the message never contains the secret."""
    place.put("a.pdf", b"one")
    source = place.source(**wrong)
    problem = source.scan().problem or ""
    assert "check" in problem
    assert "_PASSWORD" in problem or "AWS_" in problem
    assert "wrong" not in problem
    source.close()
