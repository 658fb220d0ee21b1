"""The confined child: text, boxes, titles, and omitted content."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from storage.errors import NoPages
from storage.models import Box
from storage.pdf.child.page_text import printable_title
from storage.pdf.pdf_process import PdfProcess
from storage.text.word_boxes import bounding_boxes


async def test_boxes_contain_the_ink_of_rotated_and_cropped_pages(process: PdfProcess, pdfs: Path) -> None:
    """A word's box contains the ink that a renderer draws there, and little more."""
    read = await process.read(pdfs / "turned.pdf")
    for page, ink in zip(read.pages, json.loads((pdfs / "ink.json").read_text()), strict=True):
        (box,) = bounding_boxes(page.words, 0, len(page.text))[page.number]
        assert page.text == "ABSOLUTELY"
        assert box.x0 - 0.004 <= ink[0] < ink[2] <= box.x1 + 0.004
        assert box.y0 - 0.004 <= ink[1] < ink[3] <= box.y1 + 0.004
        across, down = box.x1 - box.x0, box.y1 - box.y0
        assert min(across, down) < 2.5 * min(ink[2] - ink[0], ink[3] - ink[1])
        assert max(across, down) < 1.1 * max(ink[2] - ink[0], ink[3] - ink[1])


async def test_each_word_is_where_the_word_map_says(process: PdfProcess, pdfs: Path) -> None:
    """Slicing a page's text by its words gives its words, and the lines cover them all."""
    read = await process.read(pdfs / "plain.pdf")
    for page, lines in zip(read.pages, read.lines, strict=True):
        assert [page.text[word.start : word.end] for word in page.words] == page.text.split()
        for word in page.words:
            line = lines[word.line]
            assert line.start <= word.start < word.end <= line.end
            assert word.page == page.number


async def test_text_has_sizes_weights_ligatures_and_rows(process: PdfProcess, pdfs: Path) -> None:
    """Headings keep their size, labels their weight, and the cells of a row stay in one line."""
    read = await process.read(pdfs / "plain.pdf")
    page, lines = read.pages[1], read.lines[1]
    texts = [page.text[line.start : line.end] for line in lines]
    assert texts == [
        "Backups on page 2",
        "Backups run daily at 2:00 AM. The office staff files the affidavit.",
        "Employee only  $45.00",
    ]
    assert [line.size for line in lines] == [20, 11, 11]
    assert (page.number, page.width, page.height, page.label) == (2, 595, 842, "")
    assert read.title == "Backup plan  2024"
    assert not read.is_repaired


async def test_invisible_text_is_omitted(process: PdfProcess, pdfs: Path) -> None:
    """Invisible, transparent, white, tiny and off-page words are hidden; white ones on dark are not."""
    read = await process.read(pdfs / "hidden.pdf")
    assert read.pages[0].text.split() == ["visible", "words", "white", "heading"]


async def test_words_outside_the_crop_box_or_clip_are_omitted(process: PdfProcess, pdfs: Path) -> None:
    """Covers all page rotations."""
    read = await process.read(pdfs / "outside.pdf")
    assert [page.text for page in read.pages] == ["visible words"] * 4


async def test_active_content_and_attachments_are_ignored(process: PdfProcess, pdfs: Path) -> None:
    """A file with active content is read and rendered like any other, without its attachments."""
    started = time.monotonic()
    read = await process.read(pdfs / "active.pdf")
    assert read.pages[0].text == "visible words"
    assert len(read.pages) == 1
    assert (await process.render(pdfs / "active.pdf", 1, 72)).media_type == "image/png"
    assert time.monotonic() - started < 30


async def test_the_ocr_layer_of_a_scan_is_kept(process: PdfProcess, pdfs: Path) -> None:
    """Invisible text over an image of the whole page is that page's text."""
    read = await process.read(pdfs / "scan.pdf")
    assert read.pages[0].text == "scanned words"


async def test_hyphenated_words_are_joined_and_codes_are_not(process: PdfProcess, pdfs: Path) -> None:
    """Hyphens of codes, single letters and known compounds stay."""
    page = (await process.read(pdfs / "hyphens.pdf")).pages[0]
    text = "A follow-up visit needs documentation. See SOP-IT-04 and each follow-up in 2019-2020."
    text += " Important: X-rays."
    assert page.text == text
    start = text.index("documentation")
    parts = [page.text[word.start : word.end] for word in page.words if start <= word.start < start + 13]
    assert parts == ["docu", "mentation."]


@pytest.mark.parametrize(("file", "reason"), [("xfa.pdf", "XFA form"), ("portfolio.pdf", "portfolio")])
async def test_a_placeholder_page_for_another_viewer_is_no_content(
    process: PdfProcess, pdfs: Path, file: str, reason: str
) -> None:
    """An XFA form and a portfolio are unreadable, and the reason says what to do."""
    with pytest.raises(NoPages, match=reason):
        await process.read(pdfs / file)


async def test_page_labels_are_read(process: PdfProcess, pdfs: Path) -> None:
    """A file without labels has none."""
    read = await process.read(pdfs / "labels.pdf")
    assert [page.label for page in read.pages] == ["iv", "A-3", "A-4"]


async def test_a_bad_page_does_not_affect_the_others(process: PdfProcess, pdfs: Path) -> None:
    """The page is listed as unread and empty."""
    read = await process.read(pdfs / "bad_page.pdf")
    assert read.unread_pages == (2,)
    assert [page.text for page in read.pages] == ["good", ""]
    assert read.is_repaired


async def test_a_page_is_rendered_as_displayed(process: PdfProcess, pdfs: Path) -> None:
    """The image has the size of the rotated and cropped page at the requested resolution."""
    drawn = await process.render(pdfs / "turned.pdf", 4, 144)
    assert (drawn.width, drawn.height) == (1100, 800)
    assert drawn.media_type == "image/png"
    assert drawn.data.startswith(b"\x89PNG")


async def test_a_page_image_never_exceeds_the_maximum_side(process: PdfProcess, pdfs: Path) -> None:
    drawn = await process.render(pdfs / "plain.pdf", 1, 100_000)
    assert max(drawn.width, drawn.height) <= 3000


async def test_a_part_of_a_page_is_rendered_within_the_given_side(process: PdfProcess, pdfs: Path) -> None:
    """The part keeps its aspect ratio and is never enlarged."""
    page = await process.render(pdfs / "plain.pdf", 1, 144)
    half = await process.render(pdfs / "plain.pdf", 1, 144, Box(0, 0, 1, 0.5))
    small = await process.render(pdfs / "plain.pdf", 1, 144, Box(0, 0, 1, 0.5), 500)
    assert (half.width, half.height) == pytest.approx((page.width, page.height / 2), abs=1)
    assert 499 <= small.width <= 500
    assert small.width / small.height == pytest.approx(half.width / half.height, rel=0.01)
    large = await process.render(pdfs / "plain.pdf", 1, 144, Box(0, 0, 1, 0.5), 5000)
    assert (large.width, large.height) == (half.width, half.height)


def test_a_title_loses_its_control_characters() -> None:
    """NULs, line ends and overlong titles never reach the database."""
    assert printable_title("Backup\x00 and\r\nrecovery\x00\x00") == "Backup and  recovery"
    assert len(printable_title("long " * 100)) <= 200
