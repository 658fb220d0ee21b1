"""Locks PDFs with a password, as people do, in a process of its own: PyMuPDF stays out of the tests."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path


@cache
def lock(data: bytes, password: str, method: str = "AES_256") -> bytes:
    """The same PDF, which opens only with ``password``; ``method`` ends the name of a ``PDF_ENCRYPT_...``."""
    order = (sys.executable, str(Path(__file__).with_name("lock_pdf.py")), method, password)
    return subprocess.run(order, input=data, capture_output=True, check=True).stdout
