"""Remote source: servers that send bad names, hang, change files during a copy or revoke permissions."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from ingestion.errors import FileChanged, FileRefused, NotAFile
from ingestion.sources import FileStat
from ingestion.sources.base import Parts
from ingestion.sources.shares.fsspec_share import FsspecShare
from ingestion.sources.shares.remote_source import (
    RemoteSource,
    ShareEntry,
    ShareError,
    ShareFileMissing,
    Stream,
    plain_share_error,
)
from ingestion.sources.watchdog import CallAbandoned, Heartbeat, ShareTimeout, Watchdog
from storage.errors import BlobsUnavailable


class ShareInMemory:
    """An in-memory share that a test can make misbehave; it serves ``files``."""

    def __init__(self, files: dict[Parts, bytes]) -> None:
        self.files = files
        self.locked: set[Parts] = set()
        self.while_reading: Callable[[], None] = lambda: None
        self.connections = 0

    def connect(self) -> ShareInMemory:
        """Count connections."""
        self.connections += 1
        return self

    def list(self, folder: Parts) -> Iterator[ShareEntry]:
        """Yield all files at once, as a store without folders does."""
        for parts in list(self.files):
            yield ShareEntry(parts, self.stat(parts))

    def stat(self, file: Parts) -> FileStat:
        """Return the size, with the bytes as a tag."""
        if file not in self.files:
            raise ShareFileMissing("gone")
        return FileStat(len(self.files[file]), 0, 0, 0, self.files[file][:20].hex())

    @contextmanager
    def open(self, file: Parts, look: FileStat, start: int) -> Iterator[Stream]:
        """Yield the bytes, unless the file is locked."""
        if file in self.locked:
            raise PermissionError
        data = self.files[file]
        self.while_reading()
        yield BytesIO(data[start:])

    def as_share_error(self, error: Exception) -> ShareError:
        """Map Python's own errors."""
        return plain_share_error(error)

    def close(self) -> None:
        """Do nothing."""


def source_of(share: ShareInMemory, seconds: float = 60.0) -> RemoteSource:
    """Return a source over an in-memory share."""
    return RemoteSource("test://share", share.connect, seconds)


def test_path_traversal_in_keys_is_skipped_and_reported() -> None:
    """Covers `..`, absolute and empty parts, NUL and excessive depth."""
    hostile: list[Parts] = [
        ("..", "up.pdf"),
        ("a", "..", "up.pdf"),
        ("", "absolute.pdf"),
        ("a", "", "double.pdf"),
        (".", "here.pdf"),
        ("a/b.pdf",),
        ("nul\0.pdf",),
        ("deep",) * 200 + ("a.pdf",),
    ]
    share = ShareInMemory({parts: b"x" for parts in [*hostile, ("good.pdf",), ("back\\slash.pdf",)]})
    seen = source_of(share).scan()
    assert set(seen.files) == {"good.pdf", "back\\\\slash.pdf"}
    assert seen.problem is None
    assert any("skipped" in remark for remark in seen.remarks)
    assert not any("\0" in remark for remark in seen.remarks)


def test_a_name_of_a_thousand_letters_is_accepted(tmp_path: Path) -> None:
    """Shows that names from a share never become local file names."""
    parts = ("x" * 1020 + ".pdf",)
    source = source_of(ShareInMemory({parts: b"x"}))
    (seen,) = source.scan().files.values()
    source.copy(seen, tmp_path / "copy", 100)
    assert (tmp_path / "copy").read_bytes() == b"x"


def test_temporary_files_are_skipped_at_every_level() -> None:
    """Shows that flat keys are checked component by component, as on a disk."""
    names: list[Parts] = [("~$a.pdf",), (".hidden", "a.pdf"), ("a.pdf.download", "a.pdf"), ("a.part",)]
    assert source_of(ShareInMemory({parts: b"x" for parts in names})).scan().files == {}


def test_a_file_replaced_during_its_copy_is_rejected(tmp_path: Path) -> None:
    """Shows that stat before and after a copy must equal the settled one."""
    share = ShareInMemory({("a.pdf",): b"one"})
    source = source_of(share)
    seen = source.scan().files["a.pdf"]
    share.while_reading = lambda: share.files.update({("a.pdf",): b"two"})
    with pytest.raises(FileChanged):
        source.copy(seen, tmp_path / "copy", 100)


def test_a_stream_of_the_wrong_length_is_rejected(tmp_path: Path) -> None:
    for wrong in (b"on", b"one and more"):
        share = ShareInMemory({("a.pdf",): b"one"})
        source = source_of(share)
        seen = source.scan().files["a.pdf"]
        share.while_reading = lambda share=share: share.files.clear()  # type: ignore[misc]
        look = seen.stat
        share.stat = lambda file, look=look: look  # type: ignore[method-assign, misc]
        share.files[("a.pdf",)] = wrong
        with pytest.raises(FileChanged):
            source.copy(seen, tmp_path / "copy", 100)


def test_a_file_deleted_during_its_copy_is_missing(tmp_path: Path) -> None:
    """Shows that it is distinguished from an outage."""
    share = ShareInMemory({("a.pdf",): b"one"})
    source = source_of(share)
    seen = source.scan().files["a.pdf"]
    share.while_reading = share.files.clear
    with pytest.raises(NotAFile):
        source.copy(seen, tmp_path / "copy", 100)


def test_a_file_without_permission_is_refused_and_retried(
    tmp_path: Path,
) -> None:
    """Shows that it appears as changed later, because shares do not report changed permissions."""
    share = ShareInMemory({("a.pdf",): b"one"})
    source = source_of(share)
    seen = source.scan().files["a.pdf"]
    share.locked.add(("a.pdf",))
    with pytest.raises(FileRefused, match="right"):
        source.copy(seen, tmp_path / "copy", 100)
    again = source.scan().files["a.pdf"]
    assert again.stat != seen.stat
    share.locked.clear()
    source.copy(again, tmp_path / "copy", 100)
    assert source.scan().files["a.pdf"] == seen
    assert share.connections == 1


def test_a_full_local_disk_is_not_blamed_on_the_share(tmp_path: Path) -> None:
    """Shows that it is an outage and closes no connection."""
    share = ShareInMemory({("a.pdf",): b"one"})
    source = source_of(share)
    seen = source.scan().files["a.pdf"]
    with pytest.raises(BlobsUnavailable, match="copied"):
        source.copy(seen, tmp_path / "no such folder" / "copy", 100)
    assert source.scan().problem is None
    assert share.connections == 1


def test_an_unexpected_error_is_an_outage_and_reconnects() -> None:
    """Shows that a scan never raises and leaks no secret of the error."""
    share = ShareInMemory({("a.pdf",): b"one"})
    source = source_of(share)
    whole = share.list

    def fail(folder: Parts) -> Iterator[ShareEntry]:
        raise RuntimeError("token=hunter2")

    share.list = fail  # type: ignore[method-assign]
    problem = source.scan().problem or ""
    assert "RuntimeError" in problem
    assert "hunter2" not in problem
    share.list = whole  # type: ignore[method-assign]
    assert set(source.scan().files) == {"a.pdf"}
    assert share.connections == 2


def test_a_hanging_call_is_abandoned_and_blocks_new_ones() -> None:
    """Shows that one hung call costs one thread, and that its late result is discarded."""
    watchdog, goes_on = Watchdog(0.2), threading.Event()
    ended: list[str] = []

    def hang(heartbeat: Heartbeat) -> str:
        goes_on.wait(60)
        try:
            heartbeat()
        except CallAbandoned:
            ended.append("given up")
            raise
        return "late"

    for _ in range(3):
        with pytest.raises(ShareTimeout, match="did not answer"):
            watchdog.call(hang)
    goes_on.set()
    assert Watchdog.call(Watchdog(60), lambda heartbeat: "other places answer") == "other places answer"
    while not ended:
        pass
    assert ended == ["given up"]


def test_closing_a_hanging_source_does_not_block() -> None:
    """Shows that a share being unmapped is closed once its call returns."""
    may_go_on, is_listing, is_closed = threading.Event(), threading.Event(), threading.Event()

    class Hanging(ShareInMemory):
        def list(self, folder: Parts) -> Iterator[ShareEntry]:
            is_listing.set()
            may_go_on.wait(20)
            return super().list(folder)

        def close(self) -> None:
            is_closed.set()

    share = Hanging({})
    source = source_of(share)
    look = threading.Thread(target=source.scan)
    look.start()
    assert is_listing.wait(20)
    source.close()
    assert not is_closed.is_set()
    may_go_on.set()
    assert is_closed.wait(20)
    look.join()
    assert "not watched" in (source.scan().problem or "")
    assert share.connections == 1


def test_a_slow_call_that_makes_progress_is_waited_for() -> None:
    """Shows that only inactivity ends a call, however long it takes in total."""
    watchdog, tick = Watchdog(1.0), threading.Event()

    def crawl(heartbeat: Heartbeat) -> str:
        for _ in range(15):
            tick.wait(0.1)
            heartbeat()
        return "done"

    assert watchdog.call(crawl) == "done"


def test_any_fsspec_file_system_can_be_a_folder(tmp_path: Path) -> None:
    """Listing, tags, copies and deletions use fsspec's interface only."""
    system = MemoryFileSystem(skip_instance_cache=True)
    system.store, system.pseudo_dirs = {}, [""]
    system.pipe("/papers/deep/a.pdf", b"one %%EOF")
    system.pipe("/papers/notes.txt", b"no PDF")
    source = RemoteSource("any://papers", lambda: FsspecShare(system, "/papers"), 60)
    seen = source.scan()
    assert (set(seen.files), seen.problem) == ({"deep/a.pdf"}, None)
    one = seen.files["deep/a.pdf"]
    assert source.tail(one, 5) == b"%%EOF"
    source.copy(one, tmp_path / "copy", 100)
    assert (tmp_path / "copy").read_bytes() == b"one %%EOF"
    system.rm("/papers/deep/a.pdf")
    assert source.scan().files == {}
    with pytest.raises(NotAFile):
        source.copy(one, tmp_path / "copy", 100)
    system.rm("/papers", recursive=True)
    assert "missing" in (source.scan().problem or "")
