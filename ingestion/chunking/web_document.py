"""Web page document: lays the blocks of a web page out as a document of one page, and splits it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from ingestion.chunking.chunker import chunk_document
from ingestion.layout.reading_order import Block
from storage.models import Box, Chunk, Page, WordBox
from storage.pdf.models import BlockKind, Line, PdfText

WIDTH, HEIGHT, SIZE = 612.0, 792.0, 10.0
# Bounding box of all words: a web page has no paper.
NO_BOX = Box(0.1, 0.45, 0.9, 0.55)
_KINDS = {"item": BlockKind.ITEM, "row": BlockKind.TABLE}
_WORD = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class WebBlock:
    """A block of a web page."""

    # "heading", "text", "item", or "row" of a table.
    kind: str
    # 1 to 6 for a heading; 1 for a table's header row.
    level: int
    # URL fragment; '' if there is none.
    anchor: str
    text: str


def blocks_of(values: Sequence[Any]) -> list[WebBlock]:
    """Return the blocks that a sandboxed child wrote.

    Raises:
        TypeError, ValueError: the values have another shape.
    """
    return [WebBlock(str(kind), int(level), str(anchor), str(text)) for kind, level, anchor, text in values]


def chunk_page(
    blocks: Sequence[WebBlock], title: str, *, limit: int, pieces: Callable[[str], int], window: int
) -> tuple[list[Page], list[Chunk], list[str]]:
    """Return (the page, its chunks, the anchor of the nearest heading above each chunk that has one).

    No chunk crosses a heading; ``limit``, ``pieces`` and ``window`` as in ``chunk_document``.
    """
    chunks: list[Chunk] = []
    anchors: list[str] = []
    for path, anchor, parts in _sections(blocks, title):
        pdf, laid_out = _document(parts)
        chunked = chunk_document(pdf, limit=limit, pieces=pieces, window=window, blocks=[laid_out])
        for chunk in chunked.chunks:
            own = replace(chunk, ordinal=len(chunks), heading_path=path, sections=((0, path),))
            chunks.append(own)
            anchors.append(anchor)
    text = "\n\n".join(chunk.text for chunk in chunks)
    return [Page(1, "", WIDTH, HEIGHT, text, placed_words(text))], chunks, anchors


def _sections(
    blocks: Iterable[WebBlock], title: str
) -> Iterator[tuple[tuple[str, ...], str, list[WebBlock]]]:
    """Yield (heading path, anchor, blocks) per section in page order; the title is not part of a path."""
    above: list[WebBlock] = []
    for is_heading, run in groupby(blocks, key=lambda block: block.kind == "heading"):
        if not is_heading:
            shown = [one for one in above if one.text != title]
            anchor = next((one.anchor for one in reversed(above) if one.anchor), "")
            yield tuple(one.text for one in shown), anchor, list(run)
            continue
        for heading in run:
            above = [*(one for one in above if one.level < heading.level), heading]


def placed_words(text: str) -> list[WordBox]:
    """Return the words of a text without a page layout, all on page 1."""
    return [WordBox(found.start(), found.end(), 1, 0, NO_BOX) for found in _WORD.finditer(text)]


def _document(blocks: Sequence[WebBlock]) -> tuple[PdfText, list[Block]]:
    """Return a one-page document with a line per block; consecutive rows become a Markdown table."""
    text = ""
    lines: list[Line] = []
    found: list[Block] = []
    for is_row, run in groupby(blocks, key=lambda block: block.kind == "row"):
        parts = list(run)
        begin = len(lines)
        for part in parts:
            text += ("\n" if is_row and part is not parts[0] else "\n\n") if text else ""
            start = len(text)
            text += part.text
            if part.level and part.kind == "row":
                text += "\n|" + " --- |" * _columns(part)
            lines.append(Line(start, len(text), SIZE, False, NO_BOX))
        if is_row:
            rows = tuple((line.start, line.end) for line in lines[begin:])
            found.append(
                Block(
                    BlockKind.TABLE, begin, len(lines), rows[0][0], rows[-1][1],
                    rows=rows, columns=_columns(parts[0]), has_header=parts[0].level == 1,
                )
            )  # fmt: skip
        else:
            found += _single(parts, lines, begin)
    page = Page(1, "", WIDTH, HEIGHT, text, placed_words(text))
    return PdfText("", (page,), (tuple(lines),), 0, False), found


def _columns(row: WebBlock) -> int:
    return row.text.count(" | ") + 1


def _single(parts: Sequence[WebBlock], lines: Sequence[Line], begin: int) -> Iterator[Block]:
    for number, part in enumerate(parts, start=begin):
        line = lines[number]
        yield Block(_KINDS.get(part.kind, BlockKind.TEXT), number, number + 1, line.start, line.end)
