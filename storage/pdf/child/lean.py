"""PyMuPDF as a program wants it that lays out nothing: without the layout helpers that it imports by itself.

They take 0.2 s and 35 MB, with their models 1 s and 90 MB more. The first module of such a program that
imports PyMuPDF does so from here.
"""

from __future__ import annotations

import sys

for _unwanted in ("pymupdf.layout", "pymupdf4llm"):
    sys.modules[_unwanted] = None  # type: ignore[assignment]

import pymupdf  # noqa: E402

__all__ = ["pymupdf"]
