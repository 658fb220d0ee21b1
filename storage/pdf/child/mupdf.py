"""PyMuPDF as every limited child uses it: ``from storage.pdf.child.mupdf import pymupdf``.

PyMuPDF imports its layout helpers by itself: 0.2 s and 35 MB, with their models 1 s and 90 MB more. A child
that has not loaded them by now does without. Those helpers also switch quad corrections off, and boxes of
words are measured with that setting: every child sets it, or the boxes would depend on what it loaded. Its
messages are switched off, for nobody reads what a child says.
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
