"""Text job: extracts the text of a PDF, or renders one page."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

from storage.pdf.child.document import (
    PAGE_FAULTS,
    Fault,
    is_out_of_memory,
    page_count,
    record_baseline,
    run_job,
    to_line,
)
from storage.pdf.child.glyphs.page_ink import PageInk
from storage.pdf.child.glyphs.rows import read_page
from storage.pdf.child.mupdf import pymupdf
from storage.pdf.child.page_text import PageText, PageTransform, printable_title
from storage.text.word_boxes import SCALE

# Longest side of a rendered page or part, in pixels.
MAX_SIDE = 3000

# Size in bytes from which JPEG is tried: the page is probably a scan or a photograph.
LARGE_PNG = 400_000

# Maximum words of a stamp or running title: a scan may have that much real text.
FEW_WORDS = 12

# Fewer lines and fills are a frame; a smaller image (in square points) is a logo or a bullet.
MIN_OUTLINES, MIN_PICTURE_AREA = 40, 2000.0

# Maximum words of a page that only asks for another program: Adobe's notice has up to a hundred.
MAX_NOTICE_WORDS = 150

# Reading is in the background; rendering serves a waiting person.
READING_NICENESS = 10

_NOTICE = re.compile(r"please wait|adobe|acrobat", re.IGNORECASE)
_FLAGS = pymupdf.TEXT_PRESERVE_WHITESPACE | pymupdf.TEXT_CLIP


def perform(job: dict[str, Any], source: int, out: int) -> None:
    """Do a job on the PDF open at ``source`` and write the output to ``out``.

    For reading: one line of JSON for the document, one per page and an end marker. For rendering: one line of
    JSON and the image bytes. For opening only: one line of JSON.
    """
    if job["do"] == "read":
        os.nice(READING_NICENESS)
    run_job({"read": _read, "render": _draw, "open": _open}[job["do"]], job, source, out)


def _read(job: dict[str, Any], document: pymupdf.Document) -> Iterator[bytes]:
    count = page_count(document)
    if count > job["max_pages"]:
        raise Fault("TooLarge", f"the PDF has {count} pages, the limit is {job['max_pages']}; split it")
    title = printable_title((document.metadata or {}).get("title"))
    yield to_line(
        {
            "title": title,
            "pages": count,
            "repaired": bool(document.is_repaired),
            # Asking MuPDF whether it needs a password would try the empty one, and lock it again.
            "locked": job.get("passwords") is not None,
        }
    )
    compounds: set[str] = set()
    has_labels = bool(document.get_page_labels())
    faults = content = 0
    page: dict[str, Any] = {}
    for index in range(count):
        page = _page(document, index, has_labels, compounds)
        faults += "unread" in page
        content += bool(page["text"]) or (document.is_repaired and _has_pictures(document, index))
        yield to_line(page)
    if faults == count or (document.is_repaired and not content):
        raise Fault(
            "NoPages", "the file is cut off or damaged and none of its pages can be read; export it again"
        )
    if count == 1 and (missing := _missing_content(document, page["text"])):
        raise Fault("NoPages", missing)
    yield to_line({"end": count})


def _missing_content(document: pymupdf.Document, text: str) -> str:
    """Return the error if the only page just says that another program is needed; else ''."""
    catalog = document.pdf_catalog()
    is_form, is_portfolio, is_dynamic = (
        document.xref_get_key(catalog, key)[0] != "null"
        for key in ("AcroForm/XFA", "Collection", "NeedsRendering")
    )
    if len(text.split()) > MAX_NOTICE_WORDS or not (is_dynamic or _NOTICE.search(text)):
        return ""
    if is_form:
        return "the PDF is an XFA form; print it to PDF in Adobe Acrobat and add that file instead"
    if is_portfolio:
        return "the PDF is a portfolio; extract the attached files and add them individually"
    return ""


def _open(job: dict[str, Any], document: pymupdf.Document) -> Iterator[bytes]:
    yield to_line({"pages": page_count(document)})


def _has_pictures(document: pymupdf.Document, index: int) -> bool:
    try:
        return bool(document.get_page_images(index))
    except PAGE_FAULTS:
        return False


def _page(document: pymupdf.Document, index: int, has_labels: bool, compounds: set[str]) -> dict[str, Any]:
    """Return a page as JSON values; an unreadable page is empty and marked."""
    try:
        page = document[index]
        label = page.get_label() if has_labels else ""
        text, (width, height) = _text(page, compounds), page.rect[2:]
    except PAGE_FAULTS as error:
        if is_out_of_memory(error):
            raise
        return {"number": index + 1, "label": "", "size": [0, 0], "text": "", "words": "", "lines": [],
                "struck": 0, "unread": True}  # fmt: skip
    values = {
        "number": index + 1,
        "label": sane_label(label),
        "size": [round(width, 2), round(height, 2)],
        "text": text.text,
        "words": text.words.to_base64(),
        "lines": text.lines,
        "struck": text.struck,
    }
    if text.unmapped:
        values["unmapped"] = text.unmapped
    if len(text.words) < FEW_WORDS and _has_ink(page, text):
        values["ink"] = True
    return values


def _has_ink(page: pymupdf.Page, text: PageText) -> bool:
    """True if more is printed than its few words explain.

    That is a full-page image; or without any word an image, unmapped letters, or letters as outlines.
    """
    try:
        drawn = page.get_bboxlog()
    except PAGE_FAULTS as error:
        if is_out_of_memory(error):
            raise
        return False
    pictures = [abs(pymupdf.Rect(box) & page.rect) for kind, box in drawn if "image" in kind]
    largest = max(pictures, default=0)
    half = abs(page.rect) / 2
    if text.text:
        return bool(largest >= half)
    outlines = sum(kind in ("fill-path", "stroke-path") for kind, _ in drawn)
    return bool(text.unmapped) or largest >= min(MIN_PICTURE_AREA, half) or outlines >= MIN_OUTLINES


def sane_label(label: str) -> str:
    """Return a printed page number of at most 20 printable characters."""
    return "".join(filter(str.isprintable, label))[:20].strip()


def _text(page: pymupdf.Page, compounds: set[str]) -> PageText:
    printed = page.get_textpage(flags=_FLAGS)
    return read_page(printed, page.number + 1, _displayed(page), PageInk(page), compounds)


def _displayed(page: pymupdf.Page) -> PageTransform:
    """Return the map from unrotated page space to SCALE-ths of the displayed page."""
    rect, turn = page.rect, page.rotation_matrix
    across, down = SCALE / (rect.width or 1), SCALE / (rect.height or 1)
    return PageTransform(
        turn.a * across, turn.b * down, turn.c * across, turn.d * down,
        (turn.e - rect.x0) * across, (turn.f - rect.y0) * down,
    )  # fmt: skip


def _draw(job: dict[str, Any], document: pymupdf.Document) -> Iterator[bytes]:
    count, number = page_count(document), job["page"]
    if not 1 <= number <= count:
        raise Fault("NoPages", f"the PDF has {count} pages and no page {number}")
    try:
        page = document[number - 1]
        x0, y0, x1, y1 = job.get("clip") or (0, 0, 1, 1)
        width, height = page.rect.width, page.rect.height
        part = pymupdf.Rect(x0 * width, y0 * height, x1 * width, y1 * height)
        zoom = min(job["dpi"] / 72, MAX_SIDE / max(part.width, part.height, 1))
        if side := job.get("side"):
            zoom = min(zoom, (side - 1) / max(part.width, part.height, 1))  # edges are rounded outwards
        picture = page.get_pixmap(matrix=pymupdf.Matrix(zoom, zoom), clip=part, alpha=False)
        data, kind = picture.tobytes("png"), "image/png"
        if len(data) > LARGE_PNG:
            photograph = picture.tobytes("jpg", jpg_quality=85)
            if len(photograph) < len(data) / 2:
                data, kind = photograph, "image/jpeg"
    except PAGE_FAULTS as error:
        if is_out_of_memory(error):
            raise
        raise Fault("NoPages", f"page {number} is damaged and cannot be drawn") from error
    yield to_line({"media_type": kind, "width": picture.width, "height": picture.height, "bytes": len(data)})
    yield data


def warm_up() -> None:
    """Run everything once that jobs will use, so that no child needs a module or font file."""
    document = pymupdf.open()
    page = document.new_page()
    page.insert_text((72, 72), "Footnote")
    page.insert_text((72, 90), "unseen", color=(1, 1, 1))
    page.insert_text((72, 90), "unseen", fill_opacity=0)
    with pymupdf.open(stream=document.tobytes(), filetype="pdf") as copy:
        for piece in (*_read({"max_pages": 9}, copy), *_draw({"page": 1, "dpi": 72}, copy)):
            len(piece)
    record_baseline()
