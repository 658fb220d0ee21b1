"""Malicious files and files that are no PDFs: each ends with a message, and the next file is read."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness.lasting_pool import LastingPdf

from storage.errors import DocumentError, NoPages, NotAPdf, PasswordProtected, ReaderKilled, TooLarge
from storage.pdf.pdf_process import PdfProcess
from storage.settings import StorageSettings


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("html.pdf", NotAPdf),
        ("claims.pdf", NotAPdf),
        ("svg.pdf", NotAPdf),
        ("png.pdf", NotAPdf),
        ("zip.pdf", NotAPdf),
        ("empty.pdf", NotAPdf),
        ("cut.pdf", NotAPdf),
        ("locked.pdf", PasswordProtected),
    ],
)
async def test_a_bad_file_ends_with_a_message_and_the_next_is_read(
    process: PdfProcess, pdfs: Path, name: str, kind: type[DocumentError]
) -> None:
    """The right error, a message for an admin without a path, and a process that survives."""
    parent = process.pid
    with pytest.raises(kind, match=r"[a-z]{3,} [a-z]+") as caught:
        await process.read(pdfs / name)
    assert str(pdfs) not in str(caught.value)
    assert (await process.read(pdfs / "plain.pdf")).pages[0].text.startswith("Backups")
    assert process.pid == parent


@pytest.mark.parametrize(("name", "words"), [("forms.pdf", r"than \d+ s"), ("glyphs.pdf", "memory")])
async def test_a_bomb_is_stopped_by_the_limit_that_it_hits(
    process: PdfProcess, pdfs: Path, name: str, words: str
) -> None:
    """The message names time or memory, because an admin can do different things about them."""
    parent = process.pid
    with pytest.raises(ReaderKilled, match=words) as caught:
        await process.read(pdfs / name)
    assert str(pdfs) not in str(caught.value)
    assert (await process.read(pdfs / "plain.pdf")).pages[0].text.startswith("Backups")
    assert process.pid == parent


async def test_rendering_a_bomb_is_stopped_too(process: PdfProcess, pdfs: Path) -> None:
    """The viewer's pages have limits of their own."""
    with pytest.raises(ReaderKilled, match=r"than \d+ s|memory"):
        await process.render(pdfs / "forms.pdf", 1, 72)


async def test_a_truncated_file_is_repaired_or_refused(
    process: PdfProcess, pdfs: Path, tmp_path: Path
) -> None:
    """A repaired file is marked as such."""
    whole = (pdfs / "plain.pdf").read_bytes()
    for share in range(1, 20):
        part = tmp_path / f"{share}.pdf"
        part.write_bytes(whole[: len(whole) * share // 20])
        try:
            read = await process.read(part)
        except (NotAPdf, NoPages):
            continue
        assert read.is_repaired
        assert any(page.text for page in read.pages)


async def test_a_file_with_an_owner_password_is_read(process: PdfProcess, pdfs: Path) -> None:
    assert (await process.read(pdfs / "owned.pdf")).pages[0].text == "locked"


async def test_rendering_a_missing_page_is_a_document_error(process: PdfProcess, pdfs: Path) -> None:
    with pytest.raises(NoPages, match="no page 4"):
        await process.render(pdfs / "plain.pdf", 4, 72)


async def test_too_many_pages_or_bytes_are_refused(pdfs: Path, tmp_path: Path) -> None:
    """Both messages name the actual value and the limit; a sparse giant file is never read."""
    process = LastingPdf(StorageSettings(max_pages=2, max_file_mb=1))
    giant = tmp_path / "giant.pdf"
    with giant.open("wb") as file:
        file.truncate(50 * 1024**3)
    with pytest.raises(TooLarge, match="3 pages, the limit is 2"):
        await process.read(pdfs / "plain.pdf")
    with pytest.raises(TooLarge, match="51200 MB, the limit is 1 MB"):
        await process.read(giant)
