"""Comparison of three PDF readers: agreement on the committed samples, and a listed difference."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image
from samples.paper import pdf
from sources import ROOT

from tools.differential.compare_readers import page_table, token_lines
from tools.differential.readers import ComparedPage, compare_files, read_pdfium, read_poppler
from tools.differential.sheet import write_sheets
from tools.differential.tokens import Kind, compare_page

FOLDERS = (ROOT / "bot" / "cli" / "setup" / "samples", ROOT / "tests" / "pdfs")
LOCKED = "libreoffice-writer-password.pdf"


@pytest.mark.long
@pytest.mark.engine("poppler")
async def test_all_readers_agree_on_numbers_of_the_samples(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Every number except superscripts matches; a password-protected file is reported."""
    files = {path.name: path for folder in FOLDERS for path in folder.glob("*.pdf")}
    pages = await compare_files(files)
    assert {one.kind for page in pages for one in page.found.numbers} <= {Kind.RAISED}
    assert {page.name for page in pages} == files.keys() - {LOCKED}
    assert sum(page.found.count for page in pages) > 150
    assert f"{LOCKED}: the PDF opens only with a password" in capsys.readouterr().out


@pytest.mark.engine("poppler")
def test_the_other_readers_return_a_text_per_page(tmp_path: Path) -> None:
    """Empty pages count."""
    path = tmp_path / "three.pdf"
    path.write_bytes(pdf("Store at 5-10 degrees", "", "Page 3"))
    for read in (read_pdfium, read_poppler):
        assert [" ".join(text.split()) for text in read(path)] == ["Store at 5-10 degrees", "", "Page 3"]


async def test_a_difference_is_listed_and_drawn_with_its_place(tmp_path: Path) -> None:
    """The token is framed in red on the page; without a difference no sheet is written."""
    path = tmp_path / "dose.pdf"
    path.write_bytes(pdf("Take 510 ml daily"))
    [page] = await compare_files({"dose.pdf": path})
    assert write_sheets([page], tmp_path / "none") == []

    found = compare_page(page.page.text, ["Take 5-10 ml daily"] * 2)
    wrong = ComparedPage(page.name, page.path, page.page, found)
    assert token_lines([wrong]) == ["dose.pdf 1: missing 5-10, ours alone 510"]
    assert page_table([page, wrong]).count("dose.pdf") == 1
    [sheet] = write_sheets([wrong], tmp_path / "sheets")
    with Image.open(sheet) as picture:
        colours = picture.getcolors(1 << 24) or []
    assert (255, 0, 0) in {colour for _, colour in colours}
