"""``make demo``: what it copies, and that the second time it copies nothing."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from sources import ROOT

SCRIPT = ROOT / "deploy" / "demo.py"
DEMO = runpy.run_path(str(SCRIPT))


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """A folder of PDFs, one of them deeper, beside a file that is none."""
    folder = tmp_path / "docs"
    (folder / "deep").mkdir(parents=True)
    (folder / "a.pdf").write_bytes(b"%PDF-1.7 a")
    (folder / "deep" / "B.PDF").write_bytes(b"%PDF-1.7 b")
    (folder / "notes.txt").write_text("no PDF")
    return folder


def copy(docs: Path, home: Path) -> int:
    """What ``make demo`` does before it serves."""
    return int(DEMO["drop"](DEMO["pdfs_of"](docs), docs, home))


def arrived(home: Path) -> dict[str, bytes]:
    """The files in the watched folder by their path in it."""
    inbox = home / "inbox" / "demo"
    return {
        path.relative_to(inbox).as_posix(): path.read_bytes() for path in inbox.rglob("*") if path.is_file()
    }


def test_every_pdf_at_any_depth_arrives_and_nothing_else(docs: Path, tmp_path: Path) -> None:
    """Shows that a folder keeps its shape and that only PDFs are taken."""
    assert copy(docs, tmp_path / "home") == 2
    assert arrived(tmp_path / "home") == {"a.pdf": b"%PDF-1.7 a", "deep/B.PDF": b"%PDF-1.7 b"}


def test_the_second_time_nothing_is_copied(docs: Path, tmp_path: Path) -> None:
    """Shows that an unchanged file keeps its look, so that nothing is read again."""
    copy(docs, tmp_path / "home")
    before = os.stat(tmp_path / "home" / "inbox" / "demo" / "a.pdf")
    assert copy(docs, tmp_path / "home") == 0
    after = os.stat(tmp_path / "home" / "inbox" / "demo" / "a.pdf")
    assert (before.st_ino, before.st_mtime_ns, before.st_ctime_ns) == (
        after.st_ino,
        after.st_mtime_ns,
        after.st_ctime_ns,
    )


def test_a_changed_file_arrives_again(docs: Path, tmp_path: Path) -> None:
    """Shows that the demo follows the folder it was given."""
    copy(docs, tmp_path / "home")
    (docs / "a.pdf").write_bytes(b"%PDF-1.7 a, second edition")
    assert copy(docs, tmp_path / "home") == 1
    assert arrived(tmp_path / "home")["a.pdf"].endswith(b"second edition")


def test_each_index_and_each_folder_has_a_home_of_its_own(docs: Path, tmp_path: Path) -> None:
    """Shows that answers never come from the documents of another demo, nor from an index that lacks them."""
    twin = tmp_path / "other" / "docs"
    home_of, samples = DEMO["home_of"], DEMO["SAMPLES"]
    homes = [
        home_of(folder, index)
        for folder in (samples, docs, twin)
        for index in ("", "embedded", "http://127.0.0.1:8080", "http://127.0.0.1:8081")
    ]
    assert len(set(homes)) == len(homes)
    assert home_of(docs, "embedded") == home_of(docs / ".." / "docs", "embedded")


@pytest.mark.parametrize("wanted", ["missing", "empty"])
def test_a_folder_without_pdfs_ends_in_a_sentence(wanted: str, tmp_path: Path) -> None:
    """Shows that a mistyped DOCS is told before anything starts."""
    (tmp_path / "empty").mkdir()
    command = [sys.executable, SCRIPT, "--docs", tmp_path / wanted]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(f"DOCS={tmp_path / wanted} ")
    assert "Traceback" not in done.stderr
