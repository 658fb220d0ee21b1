"""The PDFs of these tests, and a PDF process with small limits."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from storage.pdf.pdf_process import PdfProcess
from storage.settings import StorageSettings


@pytest.fixture(scope="session")
def pdfs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every PDF that ``make_pdfs.py`` makes."""
    folder = tmp_path_factory.mktemp("pdfs")
    subprocess.run(
        [sys.executable, str(Path(__file__).parents[2] / "samples" / "make_pdfs.py"), str(folder)], check=True
    )
    return folder


@pytest_asyncio.fixture
async def process() -> AsyncIterator[PdfProcess]:
    """A PDF process with limits that a test can wait for."""
    settings = StorageSettings(max_pages=50, read_memory_mb=400, read_seconds=5, render_seconds=3)
    process = PdfProcess(settings)
    await process.start()
    yield process
    await process.aclose()
