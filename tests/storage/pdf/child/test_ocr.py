"""OCR of scanned pages in any orientation, and its cost."""

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
from typing import Any, NamedTuple

import numpy as np
import pytest
from harness.lasting_pool import LastingPdf
from harness.processes import children, status

from ingestion.layout.ocr_selection import pages_for_ocr
from storage.errors import DocumentError, NoPages, ReaderKilled
from storage.models import Box
from storage.pdf import protocol
from storage.pdf.child.ocr_layout import Quad, SeenLine, page_of
from storage.pdf.models import OcrPage, PdfText
from storage.settings import StorageSettings

pytestmark = pytest.mark.timeout(900)

SAMPLES = Path(__file__).parents[3] / "samples"
SCANS = ("side", "straight", "columns", "skewed", "head")
RECORDED = json.loads((SAMPLES / "scans.json").read_text())


class Word(NamedTuple):
    text: str
    box: Box


@dataclass
class Seen:
    """Results of all scans, read once for all tests of this module."""

    pages: dict[str, OcrPage] = field(default_factory=dict)
    faults: dict[str, DocumentError] = field(default_factory=dict)
    # /proc/PID/status of the program that forks the children.
    status: dict[str, str] = field(default_factory=dict)
    has_network: bool = True
    niceness: int = 0
    # Peak memory of a child.
    peak_mb: int = 0


@pytest.fixture(scope="module")
def scans(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every PDF of ``make_scans.py``."""
    folder = tmp_path_factory.mktemp("scans")
    subprocess.run([sys.executable, str(SAMPLES / "make_scans.py"), str(folder)], check=True)
    return folder


@pytest.fixture(scope="module")
def truth(scans: Path) -> dict[str, list[Word]]:
    """The words of each scan in reading order."""
    told = json.loads((scans / "truth.json").read_text())
    return {name: [Word(text, Box(*box)) for text, *box in words] for name, words in told.items()}


@pytest.fixture(scope="module")
def seen(scans: Path, pdfs: Path, pytestconfig: pytest.Config) -> Seen:
    """A scan, or all with --all, read one after the other by one program."""
    names = (*SCANS, "blank") if pytestconfig.option.all else (SCANS[0], "blank")
    return asyncio.run(read_all([*(scans / f"{name}.pdf" for name in names), pdfs / "forms.pdf"]))


async def read_all(paths: list[Path]) -> Seen:
    """Read the first page of each with little memory: a bomb that runs out sooner computes less."""
    process, seen = LastingPdf(StorageSettings(ocr_seconds=60, ocr_memory_mb=1024)), Seen()
    watching = asyncio.create_task(watch_memory(seen))
    for path in paths:
        try:
            clip = Box(0, 0, 1, 0.25) if path.stem == "blank" else None  # a part is enough: the page is white
            seen.pages[path.stem] = protocol.parse_ocr_page(await process.fetch_ocr(path, 1, clip))
        except DocumentError as error:
            seen.faults[path.stem] = error
    (program,) = programs()
    seen.status = status(program)
    seen.has_network = not is_shut_off(program)
    seen.niceness = os.getpriority(os.PRIO_PROCESS, program)
    watching.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await watching
    return seen


def programs() -> list[int]:
    """Return the child processes that fork OCR workers."""
    return children(os.getpid(), "storage.pdf.fork_server", "ocr")


def is_shut_off(pid: int) -> bool:
    """True if a process has a network namespace of its own, or more seccomp filters than this one."""
    if (Path(f"/proc/{pid}/ns/net")).stat().st_ino != Path("/proc/self/ns/net").stat().st_ino:
        return True
    return int(status(pid)["Seccomp_filters"]) > int(status("self")["Seccomp_filters"])


async def watch_memory(seen: Seen) -> None:
    while True:
        for child in [child for program in programs() for child in children(program)]:
            with contextlib.suppress(OSError, KeyError):
                seen.peak_mb = max(seen.peak_mb, int(status(child)["VmHWM"].split()[0]) // 1024)
        await asyncio.sleep(0.02)


def recorded(name: str) -> OcrPage:
    """Return a page made from recorded OCR lines."""
    scan = RECORDED[name]
    lines = [
        SeenLine(tuple((text, corners(quad)) for text, quad in words), corners(quad), score)
        for words, quad, score in scan["lines"]
    ]
    return protocol.parse_ocr_page(json.dumps(page_of(lines, scan["dpi"], scan["size"], 1, None)).encode())


def corners(numbers: list[int]) -> Quad:
    return np.array(numbers, np.float32).reshape(4, 2)


@pytest.mark.parametrize(
    "name", [SCANS[0], *(pytest.param(one, marks=pytest.mark.long) for one in SCANS[1:])]
)
def test_a_scan_is_read_in_any_orientation(seen: Seen, truth: dict[str, list[Word]], name: str) -> None:
    """Straight, skewed, rotated, upside down and in columns: every word is in its place."""
    assert faults(seen.pages[name], truth[name]) == []


def test_recorded_lines_are_put_in_reading_order(truth: dict[str, list[Word]]) -> None:
    assert {name: found for name in SCANS if (found := faults(recorded(name), truth[name]))} == {}


def faults(page: OcrPage, truth: list[Word]) -> list[str]:
    """Return what is wrong with a page.

    At least 97 of 100 words must be there, hardly any invented, in the right order. For each word a box with
    the same text must cover most of its printed area and little around it.
    """
    words, read = [word.text for word in truth], page.text.split()
    hits = sum((Counter(words) & Counter(read)).values())
    boxes: dict[str, list[Box]] = {}
    for word in page.words:
        boxes.setdefault(page.text[word.start : word.end], []).append(word.box)
    found = [word for word in truth if word.text in boxes]
    on = [word for word in found if max(overlap(word.box, box) for box in boxes[word.text]) >= 0.5]
    checks = {
        "words are missing": hits >= 0.97 * len(words),
        "words are made up": hits >= 0.97 * len(read),
        "the order": SequenceMatcher(None, words, read, autojunk=False).ratio() >= 0.97,
        "the score": 0.95 < page.score <= 1,
        "the page's number": {word.page for word in page.words} == {1},
        "words without a box": len(found) >= 0.97 * len(truth),
        "boxes beside their words": len(on) >= 0.97 * len(found),
    }
    return [name for name, is_right in checks.items() if not is_right]


@pytest.mark.long
def test_the_recorded_lines_are_up_to_date(scans: Path, tmp_path: Path) -> None:
    """``record_scans.py`` gives the same lines; one in a hundred may differ between processors."""
    place = tmp_path / "scans.json"
    subprocess.run(
        [sys.executable, SAMPLES / "record_scans.py", scans, place], check=True, env={"PYTHONPATH": "."}
    )
    again = json.loads(place.read_text())

    def texts(scan: dict[str, Any]) -> list[str]:
        return [" ".join(text for text, _ in words) for words, *_ in scan["lines"]]

    assert list(again) == list(SCANS)
    for name in SCANS:
        assert SequenceMatcher(None, texts(again[name]), texts(RECORDED[name])).ratio() >= 0.99


def overlap(one: Box, other: Box) -> float:
    """Return the intersection over union of two boxes."""
    across = min(one.x1, other.x1) - max(one.x0, other.x0)
    down = min(one.y1, other.y1) - max(one.y0, other.y0)
    shared = max(0.0, across) * max(0.0, down)
    return shared / (area(one) + area(other) - shared)


def area(box: Box) -> float:
    return (box.x1 - box.x0) * (box.y1 - box.y0)


def test_ocr_lines_contain_their_words_and_headings_are_larger() -> None:
    """A page read by OCR is built like any other: words in their lines, cells of a row in one line."""
    page = recorded("straight")
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
    assert (seen.pages["blank"].text, seen.pages["blank"].score) == ("", 0)


def test_ocr_children_have_one_thread_no_network_and_no_files(seen: Seen) -> None:
    """The models run at the lowest priority in children that may start nothing."""
    assert seen.status["Threads"] == "1"
    assert not seen.has_network
    assert seen.niceness >= 15


def test_a_page_and_a_bomb_stay_within_a_gigabyte(seen: Seen) -> None:
    """Shows that an image that unpacks to more than the limit ends with a message."""
    assert isinstance(seen.faults["forms"], ReaderKilled)
    assert "more memory than is allowed" in str(seen.faults["forms"])
    assert 200 < seen.peak_mb < 1024


@pytest.mark.long
async def test_huge_pages_and_images_are_rendered_small(scans: Path) -> None:
    """Read as empty, within the default memory limit."""
    process = LastingPdf(StorageSettings(ocr_seconds=600))
    page = protocol.parse_ocr_page(await process.fetch_ocr(scans / "huge.pdf", 1))
    assert page.text == ""


async def test_a_missing_page_and_a_file_that_is_no_pdf_are_refused(scans: Path) -> None:
    process = LastingPdf(StorageSettings())
    with pytest.raises(NoPages, match="2 pages and no page 3"):
        await process.fetch_ocr(scans / "blank.pdf", 3)
    with pytest.raises(DocumentError, match="not a PDF"):
        await process.fetch_ocr(scans / "page.jpg", 1)


async def read(path: Path) -> PdfText:
    return await LastingPdf(StorageSettings()).read(path)


async def test_ocr_is_used_for_scanned_and_garbled_pages_only(scans: Path) -> None:
    """Covers stamped pages; an empty page and intact text need no OCR."""
    needs = {
        name: pages_for_ocr(await read(scans / f"{name}.pdf")) for name in ("straight", "stamped", "garbled")
    }
    assert needs == {"straight": (1,), "stamped": (1,), "garbled": (1, 3)}
    assert pages_for_ocr(await read(scans / "blank.pdf")) == (1,)


@pytest.mark.parametrize("name", ["side", pytest.param("straight", marks=pytest.mark.long)])
async def test_a_part_of_a_page_keeps_its_place(scans: Path, name: str) -> None:
    """Upright or rotated: the words of the upper half, at their position on the page, and no others."""
    process, clip = LastingPdf(StorageSettings(ocr_seconds=60)), Box(0, 0, 1, 0.5)
    part = protocol.parse_ocr_page(await process.fetch_ocr(scans / f"{name}.pdf", 1, clip))
    whole = recorded(name)
    upper = [word for word in whole.words if word.box.y1 < 0.48]
    words = {part.text[word.start : word.end]: word.box for word in part.words}
    wanted = [(whole.text[word.start : word.end], word.box) for word in upper]
    once = [(text, box) for text, box in wanted if sum(text == other for other, _ in wanted) == 1]
    placed = [text for text, box in once if text in words and overlap(words[text], box) >= 0.5]
    assert part.clip == clip
    assert len(placed) >= 0.9 * len(once) > 5
    assert all(box.y1 <= 0.52 for box in words.values())
