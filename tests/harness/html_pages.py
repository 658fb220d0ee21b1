"""Web pages read by the sandboxed child, as stored pages are."""

from __future__ import annotations

import tempfile
from pathlib import Path

from harness.lasting_pool import LastingPdf
from storage.readers.html import page_bytes
from storage.settings import StorageSettings


async def read_page(data: bytes, media_type: str = "text/html", charset: str | None = None) -> bytes:
    """Return the child's output for a page."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "page"
        path.write_bytes(page_bytes(media_type, charset, data))
        return await LastingPdf(StorageSettings()).fetch_html(path)
