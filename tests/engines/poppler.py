"""poppler: Debian's pdftotext, a reference for our own text extraction."""

from __future__ import annotations

import shutil

from engines import apt_install

NAME = "poppler"
REMEDY = "sudo apt-get install -y poppler-utils"
BINDS_EVERYWHERE = False


def missing() -> str | None:
    """Return why it cannot run here, or None."""
    return None if shutil.which("pdftotext") else "Debian's poppler-utils is not installed"


def fetch() -> None:
    """Install it, as root."""
    if missing():
        apt_install("poppler-utils")
