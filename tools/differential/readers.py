"""Page-by-page comparison of our quick reading with pypdfium2 and poppler's pdftotext."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pypdfium2

from storage.errors import StorageError
from storage.models import Page
from storage.pdf.pdf_process import PdfProcess
from storage.settings import StorageSettings
from tools.differential.tokens import PageComparison, compare_page

# pypdfium2 marks a hyphen at the end of a line; it is dropped inside a lower-case word, kept elsewhere.
_CUT_WORD = re.compile(r"(?<=[^\W\d_])\ufffe(?=[^\W\d_A-Z])")


@dataclass(frozen=True, slots=True)
class ComparedPage:
    """A page with the result of its comparison."""

    name: str
    path: Path
    page: Page
    found: PageComparison


async def compare_files(files: Mapping[str, Path]) -> list[ComparedPage]:
    """Compare the pages that we and another reader can read; print the names of files that we cannot."""
    compared = []
    process = PdfProcess(StorageSettings())
    await process.start()
    try:
        for name, path in files.items():
            try:
                read = await process.read(path)
            except StorageError as error:
                print(f"{name}: {error}")
                continue
            readings = _read_others(path)
            for number, page in enumerate(read.pages):
                if others := [pages[number] for pages in readings if number < len(pages)]:
                    compared.append(ComparedPage(name, path, page, compare_page(page.text, others)))
    finally:
        await process.aclose()
    return compared


def _read_others(path: Path) -> list[list[str]]:
    """Return the text of each page from every other reader that can read the file."""
    readings = []
    for read in (read_pdfium, *([read_poppler] if has_poppler() else [])):
        try:
            readings.append(read(path))
        except (pypdfium2.PdfiumError, subprocess.SubprocessError):
            continue
    return readings


def read_pdfium(path: Path) -> list[str]:
    """Return the text of each page."""
    with pypdfium2.PdfDocument(path) as document:
        texts = [page.get_textpage().get_text_range() for page in document]
    return [_CUT_WORD.sub("", text).replace("\ufffe", "-") for text in texts]


def has_poppler() -> bool:
    """True if pdftotext is installed."""
    return shutil.which("pdftotext") is not None


def read_poppler(path: Path) -> list[str]:
    """Return the text of each page; pdftotext ends a page with a form feed."""
    command = ["pdftotext", "-q", str(path), "-"]
    done = subprocess.run(command, capture_output=True, check=True, timeout=120)
    return done.stdout.decode("utf-8", "replace").split("\f")[:-1]
