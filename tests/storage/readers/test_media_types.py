"""Media types of readers: recognized by name, declaration and content."""

from __future__ import annotations

from pathlib import Path

from harness.tables import for_each

from storage.readers.base import Readers
from storage.readers.html import HTML_READER, page_bytes
from storage.readers.pdf import PDF, PDF_READER
from storage.readers.registry import READERS


@for_each(
    ("name", "declared", "is_pdf"),
    [
        ("a.PDF", "", True),
        ("a", "application/pdf", True),
        ("a", "application/pdf; charset=binary", True),
        ("a.pdf.exe", "application/octet-stream", False),
        ("a.png", "image/png", False),
    ],
)
def test_a_type_is_recognized_by_name_or_declaration(name: str, declared: str, is_pdf: bool) -> None:
    """Shows both for PDFs; the content of an upload is checked after the download."""
    assert READERS.type_of(name, declared) == (PDF if is_pdf else None)


@for_each(
    ("head", "is_pdf"),
    [
        (b"%PDF-1.4", True),
        (b"\n" * 1000 + b"%PDF-2.0", True),
        (b"\n" * 1030 + b"%PDF-", False),
        (b"PK", False),
    ],
)
def test_a_pdf_is_recognized_by_its_signature(head: bytes, is_pdf: bool) -> None:
    """Shows that the signature is searched in the first kilobyte."""
    assert PDF.begins(head) is is_pdf


def test_a_file_is_complete_at_its_type_s_trailer() -> None:
    """Shows it for PDFs, whose writers may append a little more."""
    assert PDF.ends(b"startxref\n9\n%%EOF\n\0\0")
    assert not PDF.ends(b"startxref\n9\n")


def test_a_browser_offers_the_readable_types() -> None:
    """Shows suffixes and media types, as an input's ``accept`` takes them."""
    assert READERS.accepted == ".pdf,application/pdf"


def test_a_name_in_a_text_ends_like_a_readable_file() -> None:
    """Shows that a sentence's full stop is no part of the name, and other files are no documents."""
    assert READERS.names_in("Is Memo-3.PDF newer than draft.docx, old.pdf.?") == ["Memo-3.PDF", "old.pdf"]
    assert READERS.split_suffix("Memo-3.PDF") == ("Memo-3", ".pdf")
    assert READERS.split_suffix("draft.docx") == ("draft.docx", "")


def test_a_content_without_a_known_name_gets_the_first_reader(tmp_path: Path) -> None:
    """Shows it for a file that was deleted before its reading, and for a foreign name."""
    empty = tmp_path / "empty"
    empty.touch()
    assert Readers(PDF_READER).reader_of([], empty) is PDF_READER
    assert Readers(PDF_READER).reader_of(["a.docx"], empty) is PDF_READER


def test_a_web_page_is_told_by_its_first_bytes(tmp_path: Path) -> None:
    """Shows that neither an address nor words of the page decide, and that no file can claim to be one."""
    page = tmp_path / "page"
    page.write_bytes(page_bytes("text/html", None, b"%PDF-"))
    assert READERS.reader_of(["https://example.org/a.pdf"], page) is HTML_READER
    assert READERS.reader_of(["a.pdf"], page) is PDF_READER
    assert READERS.type_of("a.html", "text/html") is None
    page.write_bytes(b"%PDF-1.7")
    assert READERS.reader_of(["https://example.org/a.html"], page) is PDF_READER
