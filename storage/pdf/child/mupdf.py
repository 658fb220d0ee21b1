"""PyMuPDF, configured for the children: ``from storage.pdf.child.mupdf import pymupdf``.

PyMuPDF imports its layout helpers automatically: 0.2 s and 35 MB, with their models 1 s and 90 MB more. A
child that has not loaded them yet is kept from it. They also switch quad corrections off, which changes the
boxes of words, so every child sets that option, or boxes would depend on what is loaded. Messages are off
because nobody reads a child's output.
"""

from __future__ import annotations

import sys

if "pymupdf" not in sys.modules:
    for _unwanted in ("pymupdf.layout", "pymupdf4llm"):
        sys.modules[_unwanted] = None  # type: ignore[assignment]

import pymupdf

pymupdf.TOOLS.unset_quad_corrections(True)
pymupdf.TOOLS.mupdf_display_errors(False)
pymupdf.TOOLS.mupdf_display_warnings(False)

__all__ = ["pymupdf"]
