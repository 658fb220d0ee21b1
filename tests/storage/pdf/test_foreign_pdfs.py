"""PDFs of other programs: right to left, two columns, password, tags."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from storage.errors import PasswordProtected
from storage.pdf.pdf_process import PdfProcess

PDFS = Path(__file__).parents[2] / "pdfs"


async def test_arabic_reads_the_same_on_pages_of_any_rotation(process: PdfProcess) -> None:
    """Letters are no presentation forms, and every box is on its page."""
    read = await process.read(PDFS / "habibi-rotated.pdf")
    assert len({page.text for page in read.pages}) == 1
    assert read.pages[0].text.split() == ["حَبيبي", "habibi", "حَبيبي"]
    assert not any("\ufb50" <= char <= "\ufefc" for char in read.pages[0].text)
    for page in read.pages:
        assert all(0 <= word.box.x0 < word.box.x1 <= 1 for word in page.words)
        assert all(0 <= word.box.y0 < word.box.y1 <= 1 for word in page.words)
    shapes = [(page.width > page.height) for page in read.pages]
    assert shapes[0] != shapes[1]


async def test_two_columns_are_read_in_order(process: PdfProcess) -> None:
    """The left column is read before the right one."""
    page = (await process.read(PDFS / "multicolumn.pdf")).pages[1]
    sides = [word.box.x0 > 0.5 for word in page.words]
    assert any(sides)
    assert sum(one != other for one, other in pairwise(sides)) <= 3


async def test_a_password_of_another_program_is_reported(process: PdfProcess) -> None:
    with pytest.raises(PasswordProtected, match="save a copy without one"):
        await process.read(PDFS / "libreoffice-writer-password.pdf")


async def test_tags_remove_no_text(process: PdfProcess) -> None:
    """Shows that a section which MuPDF drops because of the file's tags is read."""
    (page,) = (await process.read(PDFS / "tagged.pdf")).pages
    assert len(page.words) == 149
    assert "Cost Comparison" in page.text
    assert "The table below shows a\ncost comparison between the different health plans" in page.text
