"""Fixtures of the PDF tests: sample files, and a PDF process with small limits."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import pytest_asyncio
from harness.lasting_pool import LastingPdf

from storage.pdf.pdf_process import PdfProcess
from storage.settings import StorageSettings


@pytest.fixture(scope="session")
def pdfs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every PDF of ``make_pdfs.py``."""
    folder = tmp_path_factory.mktemp("pdfs")
    subprocess.run(
        [sys.executable, str(Path(__file__).parents[2] / "samples" / "make_pdfs.py"), str(folder)], check=True
    )
    return folder


@pytest_asyncio.fixture
async def process() -> PdfProcess:
    """A PDF process with short limits; its program is reused by the next test."""
    process = LastingPdf(StorageSettings(max_pages=50, read_memory_mb=400, read_seconds=5, render_seconds=2))
    await process.start()
    return process
