"""Common parts of all PDF jobs: opening the PDF, writing JSON lines, reporting faults."""

from __future__ import annotations

import json
import os
import resource
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from unicodedata import normalize

from storage.pdf.child.mupdf import pymupdf

# Address space that a child maps while working and hardly touches.
WORKING_SPACE = 96 * 1024 * 1024

# MuPDF's out-of-memory messages, and zlib's: its initialisation fails for no other reason.
OUT_OF_MEMORY_MESSAGES = ("alloc", "inflateInit")

# Exceptions that PyMuPDF raises for a damaged page.
PAGE_FAULTS = (RuntimeError, ValueError, TypeError, KeyError, IndexError, pymupdf.mupdf.FzErrorBase)

# Address space in bytes that the loaded libraries have mapped and hardly touch.
_untouched = [0]

# Does a job on an open PDF and yields its output in pieces.
Work = Callable[[dict[str, Any], pymupdf.Document], Iterator[bytes]]


class Fault(Exception):
    """Raised if a file cannot be read: the name of a ``storage.errors`` class, and a message."""


def run_job(work: Work, job: dict[str, Any], source: int, out: int) -> None:
    """Run ``work`` on the PDF open at ``source`` and write its output to ``out``.

    A fault is written as a line of JSON, whatever came before it.
    """
    with os.fdopen(out, "wb") as sink:
        try:
            for piece in work(job, open_pdf(source, job.get("passwords"))):
                sink.write(piece)
        except Fault as fault:
            sink.write(to_line({"fault": fault.args[0], "message": fault.args[1]}))
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            sink.write(b'{"fault": "memory"}\n')


def record_baseline() -> None:
    """Record the address space of the loaded libraries; the last step of a warm-up."""
    size, resident = Path("/proc/self/statm").read_text(encoding="ascii").split()[:2]
    _untouched[0] = (int(size) - int(resident)) * resource.getpagesize()


def is_out_of_memory(error: BaseException) -> bool:
    """True if the error is, or was caused by, a lack of memory."""
    # MuPDF reports out-of-memory inconsistently; check RLIMIT_AS, too.
    if isinstance(error, MemoryError) or any(words in str(error) for words in OUT_OF_MEMORY_MESSAGES):
        return True
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return limit != resource.RLIM_INFINITY and used > limit - _untouched[0] - WORKING_SPACE


def to_line(value: dict[str, Any]) -> bytes:
    """Return the value as a line of JSON."""
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def open_pdf(source: int, passwords: int | None = None) -> pymupdf.Document:
    """Open a PDF and nothing else: MuPDF would open HTML, images and SVG under any name.

    Args:
        source: handle of the file.
        passwords: handle of a file with candidate passwords, a JSON list.

    Raises:
        Fault: it is not a PDF, is damaged, or needs another password.
    """
    with os.fdopen(source, "rb") as file:
        data = file.read()
    if not data:
        raise Fault("NotAPdf", "the file is empty")
    if b"%PDF-" not in data[:1024]:
        raise Fault("NotAPdf", "this is not a PDF, whatever its name says; save it as PDF and drop it again")
    try:
        document = pymupdf.open(stream=data, filetype="pdf")
    except PAGE_FAULTS as error:
        if is_out_of_memory(error):
            raise
        raise Fault("NotAPdf", "the file is damaged and does not open; export the PDF again") from error
    if not document.is_pdf:
        raise Fault("NotAPdf", "this is not a PDF, whatever its name says; save it as PDF and drop it again")
    if document.needs_pass and not _unlock(document, passwords):
        raise Fault("PasswordProtected", "the PDF opens only with a password; save a copy without one")
    _drop_structure_tree(document)
    return document


def _unlock(document: pymupdf.Document, passwords: int | None) -> bool:
    if passwords is None:
        return False
    with os.fdopen(passwords, "rb") as file:
        file.seek(0)
        given = json.load(file)
    # Try each password as given, and with its letters composed as other programs may have done (RFC 4013).
    spelled = (form for one in given for form in (one, normalize("NFC", one), normalize("NFKC", one)))
    return any(map(document.authenticate, dict.fromkeys(spelled)))


def _drop_structure_tree(document: pymupdf.Document) -> None:
    """Delete the structure tree: with it MuPDF 1.28 omits text that is on the page."""
    with suppress(*PAGE_FAULTS):
        trailer = pymupdf.mupdf.pdf_trailer(pymupdf._as_pdf_document(document))
        catalog = trailer.pdf_dict_get(pymupdf.PDF_NAME("Root"))
        catalog.pdf_dict_del(pymupdf.PDF_NAME("StructTreeRoot"))


def page_count(document: pymupdf.Document) -> int:
    """Return the number of pages.

    Raises:
        Fault: it is zero, or unknown.
    """
    try:
        count = int(document.page_count)
    except PAGE_FAULTS as error:
        raise Fault("NoPages", "the PDF's list of pages is damaged; export the PDF again") from error
    if count < 1:
        raise Fault("NoPages", "the PDF has no page that can be read; export it again")
    return count
