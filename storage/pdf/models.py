"""Results of a PDF child: pages with words and lines, layout, OCR text, rendered pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from storage.models import Box, Page
from storage.text.word_boxes import WordMap


class Shapes(NamedTuple):
    """Counts of drawing shapes in a figure; all 0 for a photograph."""

    # Filled rectangles of equal width on a common base, of different heights; or the same, horizontal.
    bars: int = 0
    # Polylines that run from one side towards the other in several steps.
    lines: int = 0
    # Filled sectors around a common centre.
    slices: int = 0


NO_SHAPES = Shapes()


@dataclass(frozen=True, slots=True)
class Line:
    """A printed line of text; cells on a common baseline are one line."""

    start: int
    # Page.text[start:end] is the line.
    end: int
    # Most frequent font size in points.
    size: float
    # All words are bold.
    is_bold: bool
    box: Box


@dataclass(frozen=True, slots=True)
class PdfText:
    """The text of a PDF."""

    # /Title of the file, possibly a leftover of any program.
    title: str
    pages: tuple[Page, ...]
    # Lines of each page in reading order; a word's ``line`` is an index into them.
    lines: tuple[tuple[Line, ...], ...]
    # Number of struck-through words, which are left out.
    struck_words: int
    # The file is damaged and was repaired on opening: content may be missing.
    is_repaired: bool
    # Unreadable pages; they are in ``pages``, without text.
    unread_pages: tuple[int, ...] = ()
    # Pages that show more ink than their few words explain, or no word at all.
    ink_pages: tuple[int, ...] = ()
    # Characters per page whose font does not map them to Unicode; () if not counted.
    unmapped: tuple[int, ...] = ()
    # Pages whose text comes from OCR.
    ocr_pages: tuple[int, ...] = ()
    # True if it opens only with a password.
    is_locked: bool = False


@dataclass(frozen=True, slots=True)
class OcrPage:
    """OCR text of a page or of a part of one."""

    # From 1.
    number: int
    text: str
    words: WordMap
    lines: tuple[Line, ...]
    # Average confidence of the letters, 0 to 1; 0 if there are none.
    score: float
    # The part of the page that was read; None: all of it.
    clip: Box | None = None


class BlockKind(StrEnum):
    """Role of a region on a page."""

    HEADING = "heading"
    TEXT = "text"
    # List item or numbered step.
    ITEM = "item"
    TABLE = "table"
    FIGURE = "figure"
    CAPTION = "caption"
    FOOTNOTE = "footnote"
    # Warning, caution or note in a drawn frame.
    CALLOUT = "callout"
    # Page header, footer or page number.
    RUNNING = "running"


@dataclass(frozen=True, slots=True)
class Region:
    """A region of a page found by layout analysis, without its words."""

    kind: BlockKind
    box: Box
    # Rows of cells of a table; None where another cell extends over the position.
    cells: tuple[tuple[Box | None, ...], ...] = ()
    # Shapes of a figure.
    shapes: Shapes = NO_SHAPES


@dataclass(frozen=True, slots=True)
class Layout:
    """Layout of a document's pages."""

    # Page (from 1) -> regions in reading order; pages that were not analysed are missing.
    pages: Mapping[int, tuple[Region, ...]]
    # Page -> clockwise quarter turns that make its text upright; region boxes refer to the turned page.
    turns: Mapping[int, int] = field(default_factory=dict)
    # Page -> frames drawn around text, on the turned page; looked for only near a callout's label.
    frames: Mapping[int, tuple[Box, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RenderedPage:
    """A page as an image."""

    data: bytes
    media_type: str
    width: int
    # Size in pixels.
    height: int
