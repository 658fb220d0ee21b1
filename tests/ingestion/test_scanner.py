"""What a scan sees in a folder, and what it passes over."""

import os
from pathlib import Path

import pytest

from ingestion.sources.listing import first_level, scan_file
from ingestion.sources.local import LocalSource
from ingestion.sources.names import safe_name
from ingestion.sources.port import Scan


def scan(root: Path) -> Scan:
    """One complete look at a folder."""
    return LocalSource(str(root)).scan()


def test_a_scan_sees_every_pdf_at_any_depth_whatever_the_case_of_its_ending(tmp_path: Path) -> None:
    """Shows that files are found by their path inside the folder."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    for name in ("one.pdf", "TWO.PDF", "a/b/three.Pdf"):
        (tmp_path / name).write_bytes(b"x")
    seen = scan(tmp_path)
    assert set(seen.files) == {"one.pdf", "TWO.PDF", "a/b/three.Pdf"}
    assert seen.problem is None


def test_a_look_at_one_file_sees_that_file_as_a_scan_does_and_no_other(tmp_path: Path) -> None:
    """Shows that a single file costs one look, and that a link or a missing file is nothing."""
    for name in ("one.pdf", "two.pdf"):
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "link.pdf").symlink_to("one.pdf")
    assert scan_file(tmp_path, "one.pdf").files == {"one.pdf": scan(tmp_path).files["one.pdf"]}
    assert scan_file(tmp_path, "link.pdf") == scan_file(tmp_path, "gone.pdf") == Scan()
    assert scan_file(tmp_path / "one.pdf", "below.pdf").problem is not None


@pytest.mark.parametrize(
    "name",
    [
        "report.pdf.part",
        "report.pdf.crdownload",
        "~$report.pdf",
        ".syncthing.report.pdf",
        "~syncthing~report.pdf",
        "._report.pdf",
        ".DS_Store",
        "report.docx",
        "@eaDir/report.pdf",
        "__MACOSX/report.pdf",
        ".stversions/report.pdf",
    ],
)
def test_temporary_and_foreign_files_are_passed_over(tmp_path: Path, name: str) -> None:
    """Shows that unfinished copies and other programs' files are no documents."""
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"x")
    assert scan(tmp_path).files == {}


def test_links_pipes_and_folders_named_like_pdfs_are_passed_over(tmp_path: Path) -> None:
    """Shows that nothing but a regular file is taken, so no link leads out of the folder."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "secret.pdf").write_bytes(b"x")
    root = tmp_path / "root"
    (root / "folder.pdf").mkdir(parents=True)
    (root / "link.pdf").symlink_to(elsewhere / "secret.pdf")
    (root / "linked").symlink_to(elsewhere)
    os.mkfifo(root / "pipe.pdf")
    assert scan(root).files == {}


def test_a_name_that_is_not_utf8_is_shown_safely_and_can_be_opened(tmp_path: Path) -> None:
    """Shows that an undecodable name neither stops the scan nor reaches SQL as it is."""
    raw = os.fsencode(tmp_path) + b"/caf\xe9\n.pdf"
    with open(raw, "wb") as file:
        file.write(b"x")
    (seen,) = scan(tmp_path).files.values()
    assert seen.file == "caf\\xe9\\u{a}.pdf"
    assert tmp_path.joinpath(*seen.parts).read_bytes() == b"x"


def test_two_different_names_never_come_out_the_same() -> None:
    """Shows that escaping cannot make one document of two files."""
    names = [
        "a\udce9.pdf",
        "a\\xe9.pdf",
        "a\\\\xe9.pdf",
        "a\u202ex.pdf",
        "a\\u{202e}x.pdf",
        "a\u200bx.pdf",
        "ax.pdf",
    ]
    assert len({safe_name((name,)) for name in names}) == len(names)


def test_ordinary_names_in_any_script_stay_as_they_are() -> None:
    """Shows that only what cannot be shown is escaped."""
    for name in ("Prüfanweisung 7.pdf", "手順書.pdf", "a b (1).pdf"):
        assert safe_name(("x", name)) == f"x/{name}"


def test_a_missing_root_is_a_problem_and_not_an_empty_folder(tmp_path: Path) -> None:
    """Shows that an outage is told from a folder whose files were taken away."""
    seen = scan(tmp_path / "gone")
    assert seen.problem is not None
    assert "missing" in seen.problem


def test_the_first_level_tells_folders_from_loose_pdfs(tmp_path: Path) -> None:
    """Shows what becomes a channel of an inbox, and what is nobody's."""
    for name in ("hr", ".hidden", "@eaDir"):
        (tmp_path / name).mkdir()
    (tmp_path / "loose.pdf").write_bytes(b"x")
    (tmp_path / "linked").symlink_to(tmp_path / "hr")
    assert first_level(tmp_path) == (["hr"], ["loose.pdf"])
