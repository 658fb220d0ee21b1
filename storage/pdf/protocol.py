"""Parser of the children's JSON lines; a child may be compromised, so its output is untrusted."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from storage.errors import (
    DocumentError,
    NoPages,
    NotAPdf,
    PasswordProtected,
    ReaderKilled,
    TooLarge,
)
from storage.models import Box, Page
from storage.pdf.models import BlockKind, Layout, Line, OcrPage, PdfText, Region, RenderedPage, Shapes
from storage.text.word_boxes import SCALE, WordMap

# Start-up message of a child process: one that ends before it failed to start, and no file is to blame.
READY = b"ready\n"

_FAULTS: dict[str, type[DocumentError]] = {
    kind.__name__: kind for kind in (NotAPdf, PasswordProtected, NoPages, TooLarge)
}


# Beginning of a child's output if the PDF could not be opened.
_LOCKED = b'{"fault":"PasswordProtected",'


def is_locked(data: bytes) -> bool:
    """True if a child reports that the file needs another password."""
    return data.startswith(_LOCKED)


def parse_reading(data: bytes) -> PdfText:
    """Parse the output of a text job.

    Raises:
        DocumentError: the child reported an error, or its output is truncated.
    """
    head, *bodies = [_raise_fault(json.loads(line)) for line in data.splitlines()] or [{}]
    if not bodies or "end" not in bodies[-1] or bodies[-1]["end"] != len(bodies) - 1:
        raise ReaderKilled("reading was interrupted; add the file again, or re-export the PDF")
    bodies.pop()
    return PdfText(
        title=head["title"],
        pages=tuple(_page(body) for body in bodies),
        lines=tuple(_lines(body["lines"]) for body in bodies),
        struck_words=sum(body["struck"] for body in bodies),
        is_repaired=head["repaired"],
        is_locked=head["locked"],
        unread_pages=tuple(body["number"] for body in bodies if "unread" in body),
        ink_pages=tuple(body["number"] for body in bodies if "ink" in body),
        unmapped=tuple(body.get("unmapped", 0) for body in bodies),
    )


def require_complete_line(data: bytes) -> bytes:
    """Return a child's output for one page after checking that it is complete; ``parse_ocr_page`` parses it.

    Raises:
        DocumentError: the child reported an error, or its output is truncated.
    """
    if not data.endswith(b"\n"):
        raise ReaderKilled("reading the page's picture broke off")
    _raise_fault(json.loads(data))
    return data


def parse_ocr_page(line: bytes) -> OcrPage:
    """Parse the OCR result of a page, or of a part of one."""
    body = json.loads(line)
    words, lines = WordMap.from_base64(body["words"]), _lines(body["lines"])
    clip = _box(*body["clip"]) if body["clip"] else None
    return OcrPage(body["number"], body["text"], words, lines, body["score"], clip)


def require_complete_batch(data: bytes) -> bytes:
    """Return a child's output for a batch of pages, checked to be complete; ``parse_layout`` parses it.

    Raises:
        DocumentError: the child reported an error, or its output is truncated.
    """
    *_, last = data.splitlines() or [b"{}"]
    if "end" not in _raise_fault(json.loads(last)):
        raise ReaderKilled("layout analysis was interrupted")
    return data


def parse_layout(batches: bytes) -> Layout:
    """Parse any number of concatenated layout batches."""
    bodies = [json.loads(line) for line in batches.splitlines()]
    analysed = [body for body in bodies if body.get("parts") is not None]
    return Layout(
        {body["number"]: tuple(_region(*part) for part in body["parts"]) for body in analysed},
        {body["number"]: int(body["turn"]) % 4 for body in analysed if body["turn"]},
        {body["number"]: tuple(_box(*frame) for frame in body["frames"]) for body in analysed},
    )


def _region(kind: str, box: list[int], cells: list[list[list[int] | None]], shapes: Sequence[int]) -> Region:
    rows = tuple(tuple(_box(*cell) if cell else None for cell in row) for row in cells)
    return Region(BlockKind(kind), _box(*box), rows, Shapes(*shapes))


def parse_image(data: bytes) -> RenderedPage:
    """Parse a rendered page.

    Raises:
        DocumentError: the child reported an error, or its output is truncated.
    """
    head, _, body = data.partition(b"\n")
    about = _raise_fault(json.loads(head)) if head else {}
    if len(body) != about.get("bytes"):
        raise ReaderKilled("drawing the page broke off")
    return RenderedPage(body, about["media_type"], about["width"], about["height"])


def _raise_fault(value: dict[str, Any]) -> dict[str, Any]:
    if "fault" not in value:
        return value
    if value["fault"] == "memory":
        raise ReaderKilled("reading the file takes more memory than is allowed; split it or export it again")
    raise _FAULTS[value["fault"]](value["message"])


def _page(body: dict[str, Any]) -> Page:
    width, height = body["size"]
    words = WordMap.from_base64(body["words"])
    return Page(body["number"], body["label"], width, height, body["text"], words)


def _lines(flat: list[int]) -> tuple[Line, ...]:
    return tuple(
        Line(start, end, size / 10, bool(bold), _box(x0, y0, x1, y1))
        for start, end, size, bold, x0, y0, x1, y1 in zip(*[iter(flat)] * 8, strict=True)
    )


def _box(x0: int, y0: int, x1: int, y1: int) -> Box:
    return Box(x0 / SCALE, y0 / SCALE, x1 / SCALE, y1 / SCALE)
