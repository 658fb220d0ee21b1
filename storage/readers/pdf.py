"""PDF reader; the work is done by sandboxed children in ``storage/pdf``."""

from __future__ import annotations

from pathlib import Path

from storage.pdf.pdf_process import PdfProcess
from storage.readers.base import MediaType, Reader

PDF = MediaType("application/pdf", "a PDF", "PDFs", suffixes=(".pdf",), signature=b"%PDF-", trailer=b"%%EOF")


async def read_pdf(sandbox: PdfProcess, path: Path) -> bytes:
    """Return the pages with words, lines and boxes."""
    return await sandbox.fetch(path)


PDF_READER = Reader((PDF,), read_pdf, version="mupdf-7", draws_pages=True)
