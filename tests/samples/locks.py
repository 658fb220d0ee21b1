"""Encrypts PDFs in a separate process, because tests do not import PyMuPDF."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path


@cache
def lock(data: bytes, password: str, method: str = "AES_256") -> bytes:
    """Return the PDF encrypted with ``password``; ``method`` is the suffix of a ``PDF_ENCRYPT_...``."""
    order = (sys.executable, str(Path(__file__).with_name("lock_pdf.py")), method, password)
    return subprocess.run(order, input=data, capture_output=True, check=True).stdout
