"""The sample SOPs contain what the README, the demo and the golden case rely on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pymupdf
import pytest
from sources import ROOT

SAMPLES = ROOT / "bot" / "cli" / "setup" / "samples"
BACKUP = SAMPLES / "SOP-IT-04-Backup-and-Restore.pdf"


@pytest.fixture(params=sorted(SAMPLES.glob("*.pdf")), ids=lambda path: path.stem)
def sample(request: pytest.FixtureRequest) -> pymupdf.Document:
    """Yield an opened sample."""
    with pymupdf.open(request.param) as document:
        yield document


def words_of(page: pymupdf.Page) -> str:
    """Return a page's text on one line."""
    return " ".join(page.get_text().split())


def test_the_golden_case_is_in_the_backup_procedure() -> None:
    """Shows metadata and backup rules in SOP-IT-04 that the evaluation asks for."""
    with pymupdf.open(BACKUP) as document:
        first, second = (words_of(page) for page in document)
    for words in ("SOP ID: SOP-IT-04", "Version: 2.1", "Department: IT", "Effective: 2024-01-15"):
        assert words in first
    assert "Backups run daily at 2:00 AM." in first
    assert "Table 1." in first
    assert "WARNING" in second
    assert "Figure 1." in second


def test_a_sample_is_two_pages_with_a_title_and_a_numbered_foot(sample: pymupdf.Document) -> None:
    """Shows that page numbers and titles can be compared with the printed ones."""
    assert sample.page_count == 2
    assert sample.metadata["title"].startswith("SOP-")
    assert [f"Page {page.number + 1} of 2" in words_of(page) for page in sample] == [True, True]


def test_a_sample_has_a_figure_made_of_vectors(sample: pymupdf.Document) -> None:
    """Shows vector figures, for tests of figure detection without images."""
    assert any("Figure 1." in words_of(page) and len(page.get_drawings()) > 5 for page in sample)
    assert not any(page.get_images() for page in sample)


@pytest.mark.long
def test_the_script_generates_exactly_the_shipped_files(tmp_path: Path) -> None:
    """Shows that editing their text is enough to change the samples."""
    script = ROOT / "deploy" / "samples" / "make_samples.py"
    subprocess.run([sys.executable, script, tmp_path], check=True)
    drawn = {path.name: path.read_bytes() for path in tmp_path.glob("*.pdf")}
    assert drawn == {path.name: path.read_bytes() for path in SAMPLES.glob("*.pdf")}
