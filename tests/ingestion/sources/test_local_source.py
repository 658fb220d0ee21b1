"""Scans of local folders: found and skipped files."""

import ctypes
import os
import unicodedata
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import pytest

from ingestion.errors import FileChanged, FileRefused, NotAFile
from ingestion.sources import local, safe_copy
from ingestion.sources.base import Scan
from ingestion.sources.local import LocalSource, first_level, scan_file
from ingestion.sources.safe_copy import open_beneath
from ingestion.sources.scan_report import MAX_UNSUPPORTED_FILES, safe_name

T = TypeVar("T")
CAPABILITY_VERSION = 0x20080522
# CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH: with these root may read everything.
OVERRIDES = 1 << 1 | 1 << 2


def scan(root: Path) -> Scan:
    """Scan a folder once."""
    return LocalSource(str(root)).scan()


def test_a_scan_finds_pdfs_at_any_depth_in_any_case(tmp_path: Path) -> None:
    """Files are identified by their path inside the folder."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    for name in ("one.pdf", "TWO.PDF", "a/b/three.Pdf"):
        (tmp_path / name).write_bytes(b"x")
    seen = scan(tmp_path)
    assert set(seen.files) == {"one.pdf", "TWO.PDF", "a/b/three.Pdf"}
    assert seen.problem is None


def test_scan_file_returns_one_file_as_a_scan_does(tmp_path: Path) -> None:
    """A link or a missing file yields none."""
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
        "report.pdf.ocTransferId12345.part",
        "report.pdf.filepart",
        "report.pdf.syncthing.tmp",
        ".~lock.report.pdf#",
        ".report.pdf.Xa81bQ",
        "report.pdf.3f9a1c.partial",
        "report.pdf.download/report.pdf",
        "#recycle/report.pdf",
        "@Recycle/report.pdf",
        "$RECYCLE.BIN/report.pdf",
        ".Trash-1000/report.pdf",
        "tmp.drivedownload/report.pdf",
    ],
)
def test_temporary_and_foreign_files_are_skipped(tmp_path: Path, name: str) -> None:
    """Covers partial copies and other programs' files."""
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x")
    assert scan(tmp_path).files == {}


def test_links_pipes_and_folders_named_like_pdfs_are_skipped(tmp_path: Path) -> None:
    """Shows that only regular files count, so that no link leads out of the folder."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "secret.pdf").write_bytes(b"x")
    root = tmp_path / "root"
    (root / "folder.pdf").mkdir(parents=True)
    (root / "link.pdf").symlink_to(elsewhere / "secret.pdf")
    (root / "linked").symlink_to(elsewhere)
    os.mkfifo(root / "pipe.pdf")
    assert scan(root).files == {}


def test_unsupported_files_are_listed_with_a_reason(tmp_path: Path) -> None:
    """Other kinds of documents and links are listed, other programs' leftovers are not."""
    (tmp_path / "deep").mkdir()
    for name in ("deep/plan.docx", "notes.txt", "Thumbs.db", "~$plan.docx", "half.pdf.part", "read.pdf"):
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "link.pdf").symlink_to("read.pdf")
    unsupported_files = scan(tmp_path).unsupported_files
    assert list(unsupported_files) == ["deep/plan.docx", "link.pdf", "notes.txt"]
    assert "Only PDFs" in unsupported_files["notes.txt"]
    assert "Links" in unsupported_files["link.pdf"]


def test_the_list_of_unsupported_files_is_limited(tmp_path: Path) -> None:
    for number in range(MAX_UNSUPPORTED_FILES + 5):
        (tmp_path / f"{number:04}.jpg").write_bytes(b"x")
    assert len(scan(tmp_path).unsupported_files) == MAX_UNSUPPORTED_FILES


def test_a_name_that_is_not_utf8_is_escaped_and_can_be_opened(tmp_path: Path) -> None:
    """Shows that it neither stops the scan nor reaches SQL unescaped."""
    raw = os.fsencode(tmp_path) + b"/caf\xe9\n.pdf"
    with open(raw, "wb") as file:
        file.write(b"x")
    (seen,) = scan(tmp_path).files.values()
    assert seen.file == "caf\\xe9\\u{a}.pdf"
    assert tmp_path.joinpath(*seen.parts).read_bytes() == b"x"


def test_escaping_names_is_injective() -> None:
    """Shows that two files never become one document."""
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


def test_ordinary_names_in_any_script_are_not_escaped() -> None:
    for name in ("Prüfanweisung 7.pdf", "手順書.pdf", "a b (1).pdf"):
        assert safe_name(("x", name)) == f"x/{name}"


def test_a_missing_root_is_no_empty_folder(tmp_path: Path) -> None:
    """Shows that an outage is distinguished from a folder whose files were deleted."""
    seen = scan(tmp_path / "gone")
    assert seen.is_gone
    assert "missing" in (seen.problem or "")


def test_the_first_level_separates_folders_and_loose_pdfs(tmp_path: Path) -> None:
    """Folders become channels of an inbox; loose files belong to none."""
    for name in ("hr", ".hidden", "@eaDir"):
        (tmp_path / name).mkdir()
    (tmp_path / "loose.pdf").write_bytes(b"x")
    (tmp_path / "linked").symlink_to(tmp_path / "hr")
    assert first_level(tmp_path) == (["hr"], ["loose.pdf"])


ODD_NAMES = [
    b"plain.pdf",
    b"two  spaces.pdf",
    b" leading and trailing .pdf",
    b"new\nline.pdf",
    b"tab\there.pdf",
    b"caf\xe9.pdf",
    "caf\u00e9.pdf".encode(),
    "cafe\u0301.pdf".encode(),
    "right\u202efdp.pdf".encode(),
    "zero\u200bwidth.pdf".encode(),
    b"back\\slash.pdf",
    b"-rf.pdf",
    b"%2e%2e%2fup.pdf",
    "手順書 😀.pdf".encode(),
]


def test_odd_names_are_distinct_and_displayed_safely(tmp_path: Path) -> None:
    """Shows that each of 14 odd names is one document whose name can be stored, shown and opened."""
    for number, name in enumerate(ODD_NAMES):
        with open(os.fsencode(tmp_path) + b"/" + name, "wb") as file:
            file.write(b"%d" % number)
    seen = scan(tmp_path).files
    assert len(seen) == len(ODD_NAMES)
    for file, one in seen.items():
        file.encode()
        assert not {unicodedata.category(letter) for letter in file} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
        number = int(tmp_path.joinpath(*one.parts).read_bytes())
        assert os.fsencode(one.parts[0]) == ODD_NAMES[number]


def test_names_that_look_the_same_are_kept_and_reported(tmp_path: Path) -> None:
    """Shows that Unicode normalization forms and letter case make two documents and a remark."""
    for name in ("caf\u00e9.pdf", "cafe\u0301.pdf", "Plan.pdf", "plan.pdf", "other.pdf"):
        (tmp_path / name).write_bytes(b"x")
    seen = scan(tmp_path)
    assert len(seen.files) == 5
    assert len([remark for remark in seen.remarks if "look the same" in remark]) == 2


def test_a_hard_link_is_accepted_with_a_warning(tmp_path: Path) -> None:
    """Admins are warned because another user may write through the other name."""
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "elsewhere.pdf").write_bytes(b"x")
    (root / "linked.pdf").hardlink_to(tmp_path / "elsewhere.pdf")
    seen = scan(root)
    assert set(seen.files) == {"linked.pdf"}
    assert any("linked.pdf" in remark and "hard link" in remark for remark in seen.remarks)


def test_a_file_readable_again_is_copied(tmp_path: Path) -> None:
    """Shows that it is retried whatever its stat says, as on shares with permissions of their own."""
    path, source = tmp_path / "a.pdf", LocalSource(str(tmp_path))
    path.write_bytes(b"x")
    path.chmod(0)
    plain = source.scan().files["a.pdf"]
    with pytest.raises(FileRefused, match="permission"):
        as_user(lambda: source.copy(plain, tmp_path / "copy", 100))
    path.chmod(0o644)
    again = source.scan().files["a.pdf"]
    assert (plain.stat.tag, bool(again.stat.tag)) == ("", True)
    source.copy(again, tmp_path / "copy", 100)
    assert (tmp_path / "copy").read_bytes() == b"x"
    assert source.scan().files["a.pdf"].stat.tag == ""


def test_a_nested_mount_that_disappears_is_a_problem(tmp_path: Path) -> None:
    """Shows that files of a disk mounted inside the folder are not deleted with the mount."""
    (tmp_path / "a.pdf").write_bytes(b"x")
    (tmp_path / "disk").mkdir()
    devices: dict[tuple[str, ...], int] = {}
    assert local.scan(tmp_path, devices, lambda: None).problem is None
    devices[("disk",)] += 1  # as if another device had been mounted there
    assert "connect it again" in (local.scan(tmp_path, devices, lambda: None).problem or "")
    assert "connect it again" in (local.scan(tmp_path, devices, lambda: None).problem or "")


def test_a_scan_opens_no_file(tmp_path: Path) -> None:
    """Shows that scanning reads no file: the files are not even readable."""
    for number in range(200):
        path = tmp_path / f"{number % 10}" / f"{number}.pdf"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x")
        path.chmod(0)
    assert len(as_user(lambda: scan(tmp_path)).files) == 200  # none could have been opened


def test_unlistable_subfolders_are_named_separately(tmp_path: Path) -> None:
    """Shows that an admin sees where to look, however odd the name, and that the rest is scanned."""
    (tmp_path / "a.pdf").write_bytes(b"x")
    for name in ("wages", "odd\nname"):
        (tmp_path / name).mkdir(mode=0)
    seen = as_user(lambda: scan(tmp_path))
    assert (seen.problem, seen.is_gone, set(seen.files)) == (
        "A part of the folder cannot be listed: Permission denied.",
        False,
        {"a.pdf"},
    )
    assert seen.problem_text == f'{seen.problem} See "{safe_name(("odd" + chr(10) + "name",))}", "wages".'
    for name in ("wages", "odd\nname"):
        (tmp_path / name).chmod(0o755)
    assert scan(tmp_path).problem is None


def as_user(job: Callable[[], T]) -> T:
    """Run a job without root's capability to read other users' files."""
    if os.geteuid() != 0:
        return job()
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(_without_override, job).result()


def _without_override(job: Callable[[], T]) -> T:
    """Drop two capabilities of root in this thread only, then run the job; the thread ends afterwards."""
    libc = ctypes.CDLL(None)
    header, sets = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION, 0), (ctypes.c_uint32 * 6)()
    assert libc.capget(header, sets) == 0
    sets[0] &= ~OVERRIDES
    assert libc.capset(header, sets) == 0
    return job()


def test_a_path_too_long_for_the_kernel_hides_no_other(tmp_path: Path) -> None:
    """Shows that it is a problem, and that the rest of the folder is scanned."""
    folder, length = os.open(tmp_path, os.O_RDONLY), len(str(tmp_path))
    while length < 3900:
        name = "d" * min(200, 3900 - length)
        os.mkdir(name, dir_fd=folder)
        above, folder = folder, os.open(name, os.O_RDONLY, dir_fd=folder)
        os.close(above)
        length += 1 + len(name)
    os.mkdir("b", dir_fd=folder)
    for name in ("n" * 250 + ".pdf", "b/a.pdf"):
        os.close(os.open(name, os.O_CREAT | os.O_WRONLY, dir_fd=folder))
    os.close(folder)
    seen = LocalSource(str(tmp_path)).scan()
    assert [file.rpartition("/d")[2].partition("/")[2] for file in seen.files] == ["b/a.pdf"]
    assert "cannot be read" in (seen.problem or "")


def test_copying_a_growing_file_is_bounded(tmp_path: Path) -> None:
    """Shows that no more is copied than the size at the scan."""
    path = tmp_path / "a.pdf"
    path.write_bytes(b"x" * 3_000_000)

    def grow() -> None:
        with path.open("ab") as file:
            file.write(b"x" * 2_000_000)
        assert path.stat().st_size < 30_000_000, "it would have gone on for ever"

    with pytest.raises(FileChanged):
        safe_copy.copy(
            tmp_path, LocalSource(str(tmp_path)).scan().files["a.pdf"], tmp_path / "copy", 10_000_000, grow
        )
    assert (tmp_path / "copy").stat().st_size < 3_000_000 + safe_copy.BLOCK_BYTES


def test_a_link_or_pipe_swapped_in_after_a_scan_is_not_opened(tmp_path: Path) -> None:
    """Shows that neither the file nor a parent folder can be swapped, and that a pipe does not block."""
    (tmp_path / "secret.pdf").write_bytes(b"secret")
    root = tmp_path / "root"
    root.mkdir()
    (root / "link.pdf").symlink_to(tmp_path / "secret.pdf")
    (root / "linked").symlink_to(tmp_path)
    os.mkfifo(root / "pipe.pdf")
    for parts in (("link.pdf",), ("linked", "secret.pdf"), ("pipe.pdf",), ("gone.pdf",)):
        with pytest.raises(NotAFile):
            open_beneath(root, parts)


def test_a_folder_replaced_by_a_link_is_not_opened(tmp_path: Path) -> None:
    """Covers a link swapped in between scan and copy."""
    (tmp_path / "hr").mkdir()
    (tmp_path / "hr" / "a.pdf").write_bytes(b"whole %%EOF\n")
    source = LocalSource(str(tmp_path / "hr"), follows_link=False)
    seen = source.scan().files["a.pdf"]
    source.copy(seen, tmp_path / "copy", 10**8)
    (tmp_path / "hr").rename(tmp_path / "real")
    (tmp_path / "hr").symlink_to(tmp_path / "real")
    with pytest.raises(NotAFile):
        source.copy(seen, tmp_path / "copy", 10**8)
    assert source.tail(seen, 10) == b""
    assert LocalSource(str(tmp_path / "hr")).tail(seen, 6) == b"%%EOF\n"
