"""What every limited child does around its job: open a PDF, answer in JSON lines, and name its faults."""

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

# Address space that a child maps while it works and hardly touches.
ROOM = 96 * 1024 * 1024

# Words of MuPDF without memory; zlib, which begins with constants, fails to begin for nothing else.
WANTS = ("alloc", "inflateInit")

# What PyMuPDF raises for a damaged page.
PAGE_FAULTS = (RuntimeError, ValueError, TypeError, KeyError, IndexError, pymupdf.mupdf.FzErrorBase)

# Bytes of address space that the loaded libraries have mapped and hardly touch.
_untouched = [0]

# Does a job with an open PDF, piece by piece.
Work = Callable[[dict[str, Any], pymupdf.Document], Iterator[bytes]]


class Fault(Exception):
    """Why a file cannot be read: the name of a ``storage.errors`` class, and a sentence."""


def answer(work: Work, job: dict[str, Any], source: int, out: int) -> None:
    """Let ``work`` do ``job`` with the PDF open at ``source``, and write what comes of it to ``out``.

    A fault is one line of JSON, whatever came before it.
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


def note_libraries() -> None:
    """Remember what all that is loaded takes of the address space; the end of a kind's warming up."""
    size, resident = Path("/proc/self/statm").read_text(encoding="ascii").split()[:2]
    _untouched[0] = (int(size) - int(resident)) * resource.getpagesize()


def is_out_of_memory(error: BaseException) -> bool:
    """MuPDF names a want of memory in many ways, so the limit itself is asked, too."""
    if isinstance(error, MemoryError) or any(words in str(error) for words in WANTS):
        return True
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return limit != resource.RLIM_INFINITY and used > limit - _untouched[0] - ROOM


def to_line(value: dict[str, Any]) -> bytes:
    """One line of JSON."""
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def open_pdf(source: int, passwords: int | None = None) -> pymupdf.Document:
    """Open a PDF and nothing else: MuPDF would take HTML, pictures and SVG under any name.

    Args:
        source: the open file.
        passwords: an open file with those that may fit, as a list in JSON.

    Raises:
        Fault: it is no PDF, is damaged, or wants another password.
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
    _forget_structure(document)
    return document


def _unlock(document: pymupdf.Document, passwords: int | None) -> bool:
    if passwords is None:
        return False
    with os.fdopen(passwords, "rb") as file:
        file.seek(0)
        given = json.load(file)
    # As each is given, and as the program that locked the file may have composed its letters (RFC 4013).
    spelled = (form for one in given for form in (one, normalize("NFC", one), normalize("NFKC", one)))
    return any(map(document.authenticate, dict.fromkeys(spelled)))


def _forget_structure(document: pymupdf.Document) -> None:
    """Drop the file's own tree of tags: with it MuPDF 1.28 leaves out text that stands on the page."""
    with suppress(*PAGE_FAULTS):
        trailer = pymupdf.mupdf.pdf_trailer(pymupdf._as_pdf_document(document))
        catalog = trailer.pdf_dict_get(pymupdf.PDF_NAME("Root"))
        catalog.pdf_dict_del(pymupdf.PDF_NAME("StructTreeRoot"))


def page_count(document: pymupdf.Document) -> int:
    """How many pages it has.

    Raises:
        Fault: none, or nobody can tell.
    """
    try:
        count = int(document.page_count)
    except PAGE_FAULTS as error:
        raise Fault("NoPages", "the PDF's list of pages is damaged; export the PDF again") from error
    if count < 1:
        raise Fault("NoPages", "the PDF has no page that can be read; export it again")
    return count
