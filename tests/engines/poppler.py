"""poppler: Debian's pdftotext, one of the readers that ours is compared with."""

from __future__ import annotations

import shutil

from engines import apt_install

NAME = "poppler"
REMEDY = "sudo apt-get install -y poppler-utils"
BINDS_EVERYWHERE = False


def missing() -> str | None:
    """True if it is installed."""
    return None if shutil.which("pdftotext") else "Debian's poppler-utils is not installed"


def fetch() -> None:
    """Install it, which needs root."""
    if missing():
        apt_install("poppler-utils")
