"""What OCR reads in scanned pages, however they lie, and what it costs."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import Path
from typing import NamedTuple

import pytest
from harness.lasting_pool import LastingPdf
from harness.processes import children, status

from ingestion.layout.ocr_selection import pages_for_ocr
from storage.errors import DocumentError, NoPages, ReaderKilled
from storage.models import Box
from storage.pdf import protocol
from storage.pdf.models import OcrPage, ReadPdf
from storage.pdf.pdf_process import PdfProcess
from storage.settings import StorageSettings

pytestmark = pytest.mark.timeout(900)

SCANS = ("straight", "side", "columns")
MORE_SCANS = ("skewed", "head")
"""Read under --all only: each takes seconds of computing."""


class Word(NamedTuple):
    text: str
    box: Box


@dataclass
class Seen:
    """What came of all scans, read once for all tests of this module."""

    pages: dict[str, OcrPage] = field(default_factory=dict)
    faults: dict[str, DocumentError] = field(default_factory=dict)
    status: dict[str, str] = field(default_factory=dict)
    """What the kernel says of the program that forks the children."""
    has_network: bool = True
    niceness: int = 0
    peak_mb: int = 0
    """Most memory that a child held."""


@pytest.fixture(scope="module")
def scans(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every PDF that ``make_scans.py`` makes."""
    folder = tmp_path_factory.mktemp("scans")
    subprocess.run(
        [sys.executable, str(Path(__file__).parents[3] / "samples" / "make_scans.py"), str(folder)],
        check=True,
    )
    return folder


@pytest.fixture(scope="module")
def truth(scans: Path) -> dict[str, list[Word]]:
    """The words of each scan in reading order."""
    told = json.loads((scans / "truth.json").read_text())
    return {name: [Word(text, Box(*box)) for text, *box in words] for name, words in told.items()}


@pytest.fixture(scope="module")
def seen(scans: Path, pdfs: Path, pytestconfig: pytest.Config) -> Seen:
    """Every scan, read one after the other by one program."""
    names = (*SCANS, *(MORE_SCANS if pytestconfig.option.all else ()), "blank", "huge")
    return asyncio.run(read_all([*(scans / f"{name}.pdf" for name in names), pdfs / "forms.pdf"]))


async def read_all(paths: list[Path]) -> Seen:
    process, seen = PdfProcess(StorageSettings(ocr_seconds=60)), Seen()
    watching = asyncio.create_task(watch_memory(seen))
    for path in paths:
        try:
            seen.pages[path.stem] = protocol.ocr_page(await process.fetch_ocr(path, 1))
        except DocumentError as error:
            seen.faults[path.stem] = error
    (program,) = programs()
    seen.status = status(program)
    seen.has_network = not is_shut_off(program)
    seen.niceness = os.getpriority(os.PRIO_PROCESS, program)
    watching.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await watching
    await process.aclose()
    return seen


def programs() -> list[int]:
    """The programs of this process that fork children for OCR."""
    return children(os.getpid(), "storage.pdf.fork_server", "ocr")


def is_shut_off(pid: int) -> bool:
    """Whether a process has a network of its own, or one more filter of system calls than we have."""
    if (Path(f"/proc/{pid}/ns/net")).stat().st_ino != Path("/proc/self/ns/net").stat().st_ino:
        return True
    return int(status(pid)["Seccomp_filters"]) > int(status("self")["Seccomp_filters"])


async def watch_memory(seen: Seen) -> None:
    while True:
        for child in [child for program in programs() for child in children(program)]:
            with contextlib.suppress(OSError, KeyError):
                seen.peak_mb = max(seen.peak_mb, int(status(child)["VmHWM"].split()[0]) // 1024)
        await asyncio.sleep(0.02)


@pytest.mark.parametrize(
    "name", [*SCANS, *(pytest.param(name, marks=pytest.mark.long) for name in MORE_SCANS)]
)
def test_a_scan_is_read_in_order_however_it_lies(seen: Seen, truth: dict[str, list[Word]], name: str) -> None:
    """Straight, skewed, on its side, on its head, and in columns: 97 of 100 words, and hardly one made up."""
    page, words = seen.pages[name], [word.text for word in truth[name]]
    read = page.text.split()
    hits = sum((Counter(words) & Counter(read)).values())
    assert hits >= 0.97 * len(words)
    assert hits >= 0.97 * len(read)
    assert SequenceMatcher(None, words, read, autojunk=False).ratio() >= 0.97
    assert 0.95 < page.score <= 1


@pytest.mark.parametrize("name", SCANS)
def test_the_box_of_a_word_lies_on_the_word(seen: Seen, truth: dict[str, list[Word]], name: str) -> None:
    """For each word a box with the same text covers most of where it is printed, and little around it."""
    page = seen.pages[name]
    boxes: dict[str, list[Box]] = {}
    for word in page.words:
        assert word.page == 1
        boxes.setdefault(page.text[word.start : word.end], []).append(word.box)
    found = [word for word in truth[name] if word.text in boxes]
    on = [word for word in found if max(overlap(word.box, box) for box in boxes[word.text]) >= 0.5]
    assert len(on) >= 0.97 * len(found)
    assert len(found) >= 0.97 * len(truth[name])


def overlap(one: Box, other: Box) -> float:
    """Shared area, as a share of what both cover together."""
    across = min(one.x1, other.x1) - max(one.x0, other.x0)
    down = min(one.y1, other.y1) - max(one.y0, other.y0)
    shared = max(0.0, across) * max(0.0, down)
    return shared / (area(one) + area(other) - shared)


def area(box: Box) -> float:
    return (box.x1 - box.x0) * (box.y1 - box.y0)


def test_lines_hold_their_words_and_headings_are_larger(seen: Seen) -> None:
    """A page that OCR read is made like any other: each word in its line, cells side by side in one."""
    page = seen.pages["straight"]
    for word in page.words:
        line = page.lines[word.line]
        assert line.start <= word.start < word.end <= line.end
    texts = {page.text[line.start : line.end]: line for line in page.lines}
    assert "Mailboxes  New and changed messages  Daily at 2:00 AM  90 days" in texts
    title, usual = (
        texts["SOP-IT-04 Backup and Restore"],
        texts["backup is encrypted with AES-256 before it leaves the server."],
    )
    assert title.size > 1.4 * usual.size
    assert "\n\n3. Backup schedule\n" in page.text


def test_a_blank_page_has_no_words(seen: Seen) -> None:
    """White paper is read as nothing."""
    assert (seen.pages["blank"].text, seen.pages["blank"].score) == ("", 0)


def test_the_program_has_one_thread_no_network_and_no_files(seen: Seen) -> None:
    """The models run in children that may start nothing, at the lowest priority."""
    assert seen.status["Threads"] == "1"
    assert not seen.has_network
    assert seen.niceness >= 15


def test_a_page_stays_within_a_gigabyte_and_a_bomb_within_its_limit(seen: Seen) -> None:
    """Neither a page of five metres nor a picture of 1.5 GB counts; a bomb ends with a sentence."""
    assert seen.pages["huge"].text == ""
    assert isinstance(seen.faults["forms"], ReaderKilled)
    assert "more memory than is allowed" in str(seen.faults["forms"])
    assert 200 < seen.peak_mb < 1536


async def test_a_page_that_does_not_exist_and_a_file_that_is_none(scans: Path) -> None:
    """Both are refused with a sentence."""
    process = LastingPdf(StorageSettings())
    with pytest.raises(NoPages, match="2 pages and no page 3"):
        await process.fetch_ocr(scans / "blank.pdf", 3)
    with pytest.raises(DocumentError, match="not a PDF"):
        await process.fetch_ocr(scans / "page.jpg", 1)


async def read(path: Path) -> ReadPdf:
    return await LastingPdf(StorageSettings()).read(path)


async def test_scanned_stamped_and_garbled_pages_are_read_by_ocr_and_others_are_not(scans: Path) -> None:
    """A white page, an empty one and sound text need none."""
    needs = {
        name: pages_for_ocr(await read(scans / f"{name}.pdf")) for name in ("straight", "stamped", "garbled")
    }
    assert needs == {"straight": (1,), "stamped": (1,), "garbled": (1, 3)}
    assert pages_for_ocr(await read(scans / "blank.pdf")) == (1,)


@pytest.mark.parametrize("name", ["straight", "side"])
async def test_a_part_of_a_page_is_read_alone_and_keeps_its_place(scans: Path, seen: Seen, name: str) -> None:
    """Upright or turned: the words of the upper half, where the whole page has them, and no other."""
    process, clip = LastingPdf(StorageSettings(ocr_seconds=60)), Box(0, 0, 1, 0.5)
    part = protocol.ocr_page(await process.fetch_ocr(scans / f"{name}.pdf", 1, clip))
    whole = seen.pages[name]
    upper = [word for word in whole.words if word.box.y1 < 0.48]
    words = {part.text[word.start : word.end]: word.box for word in part.words}
    wanted = [(whole.text[word.start : word.end], word.box) for word in upper]
    once = [(text, box) for text, box in wanted if sum(text == other for other, _ in wanted) == 1]
    placed = [text for text, box in once if text in words and overlap(words[text], box) >= 0.5]
    assert part.clip == clip
    assert len(placed) >= 0.9 * len(once) > 5
    assert all(box.y1 <= 0.52 for box in words.values())
