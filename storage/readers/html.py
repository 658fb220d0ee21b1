"""HTML reader: pages of approved web sites; the work is done by a sandboxed child in ``storage/pdf``."""

from __future__ import annotations

import json
from pathlib import Path

from storage.pdf.pdf_process import PdfProcess
from storage.readers.base import MediaType, Reader

# No dropped file has this type: a page is stored together with what its server declared.
HTML = MediaType("text/html", "a web page", "web pages", suffixes=(), signature=b'{"media_type": ')


def page_bytes(media_type: str, charset: str | None, data: bytes) -> bytes:
    """Return a page as it is stored: its declared type and charset in a line of JSON, then the data."""
    return json.dumps({"media_type": media_type, "charset": charset}).encode() + b"\n" + data


async def read_html(sandbox: PdfProcess, path: Path) -> bytes:
    """Return the title, date and blocks, as the job "chunk page" parses them."""
    return await sandbox.fetch_html(path)


HTML_READER = Reader((HTML,), read_html, version="html-1", chunk_job="chunk page")
