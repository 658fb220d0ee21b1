"""Encrypt the PDF on standard input; arguments: name of a method, and a password."""

from __future__ import annotations

import sys

from storage.pdf.child.mupdf import pymupdf

if __name__ == "__main__":
    method, password = sys.argv[1:]
    document = pymupdf.open(stream=sys.stdin.buffer.read(), filetype="pdf")
    how = {"encryption": getattr(pymupdf, f"PDF_ENCRYPT_{method}"), "user_pw": password}
    sys.stdout.buffer.write(document.tobytes(**how, owner_pw=f"{password}-owner"))
