"""``footnote demo``: files it copies, and errors it reports at once."""

from __future__ import annotations

import argparse
import os
import socket
from pathlib import Path

import pytest

from bot.cli.setup.demo import SAMPLES, copy_changed, demo, home_of, pdfs_of
from storage.errors import SettingsError


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """Return a folder of PDFs, one in a subfolder, next to another file."""
    folder = tmp_path / "docs"
    (folder / "deep").mkdir(parents=True)
    (folder / "a.pdf").write_bytes(b"%PDF-1.7 a")
    (folder / "deep" / "B.PDF").write_bytes(b"%PDF-1.7 b")
    (folder / "notes.txt").write_text("no PDF")
    return folder


def copy(docs: Path, home: Path) -> int:
    return copy_changed(pdfs_of(docs), docs, home)


def arrived(home: Path) -> dict[str, bytes]:
    """Return the files in the watched folder by their relative path."""
    inbox = home / "inbox" / "demo"
    return {
        path.relative_to(inbox).as_posix(): path.read_bytes() for path in inbox.rglob("*") if path.is_file()
    }


def test_every_pdf_at_any_depth_arrives_and_nothing_else(docs: Path, tmp_path: Path) -> None:
    """Shows that subfolders are kept and only PDFs are copied."""
    assert copy(docs, tmp_path / "home") == 2
    assert arrived(tmp_path / "home") == {"a.pdf": b"%PDF-1.7 a", "deep/B.PDF": b"%PDF-1.7 b"}


def test_a_second_run_copies_only_changed_files(docs: Path, tmp_path: Path) -> None:
    """Shows that an unchanged file keeps its inode and times, so that it is not read again."""
    copy(docs, tmp_path / "home")
    before = os.stat(tmp_path / "home" / "inbox" / "demo" / "a.pdf")
    assert copy(docs, tmp_path / "home") == 0
    after = os.stat(tmp_path / "home" / "inbox" / "demo" / "a.pdf")
    assert (before.st_ino, before.st_mtime_ns, before.st_ctime_ns) == (
        after.st_ino,
        after.st_mtime_ns,
        after.st_ctime_ns,
    )
    (docs / "a.pdf").write_bytes(b"%PDF-1.7 a, second edition")
    assert copy(docs, tmp_path / "home") == 1
    assert arrived(tmp_path / "home")["a.pdf"].endswith(b"second edition")


def test_each_index_and_each_folder_has_a_home_of_its_own(docs: Path, tmp_path: Path) -> None:
    """Shows that answers never come from another demo's documents, or from an index without them."""
    twin = tmp_path / "other" / "docs"
    homes = [
        home_of(folder, index)
        for folder in (SAMPLES, docs, twin)
        for index in ("", "embedded", "http://127.0.0.1:8080", "http://127.0.0.1:8081")
    ]
    assert len(set(homes)) == len(homes)
    assert home_of(docs, "embedded") == home_of(docs / ".." / "docs", "embedded")


def demo_of(docs: Path, home: Path, port: int) -> argparse.Namespace:
    return argparse.Namespace(docs=docs, home=home, host="127.0.0.1", port=port, inbox=None, weaviate="")


@pytest.mark.parametrize(("wanted", "said"), [("missing", "is not a folder"), ("empty", "holds no PDF")])
async def test_a_folder_without_pdfs_is_an_error(wanted: str, said: str, tmp_path: Path) -> None:
    """Shows that a mistyped folder is reported before anything starts."""
    (tmp_path / "empty").mkdir()
    with pytest.raises(SettingsError, match=f"{tmp_path / wanted} {said}"):
        await demo(demo_of(tmp_path / wanted, tmp_path / "home", 0))


async def test_a_port_in_use_is_reported_before_anything_is_done(docs: Path, tmp_path: Path) -> None:
    """Shows that the error comes before any copying, and names the option for another port."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SettingsError, match=rf"as in `--port {port + 1}` \(with make: `PORT={port + 1}`"):
            await demo(demo_of(docs, tmp_path / "home", port))
    assert not (tmp_path / "home").exists()
