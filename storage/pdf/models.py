"""What comes back from a PDF: its pages with their words and lines, or one page as a picture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from storage.models import Box, Page
from storage.text.word_boxes import WordMap


class Shapes(NamedTuple):
    """What a figure is drawn with; all 0 for a photograph."""

    # Filled rectangles of one width on one base, of different heights; or lying on one side.
    bars: int = 0
    # Lines that run from one side towards the other in several steps.
    lines: int = 0
    # Filled sectors round one centre.
    slices: int = 0


NO_SHAPES = Shapes()


@dataclass(frozen=True, slots=True)
class Line:
    """One row of text as printed; cells that share a baseline are one line."""

    start: int
    # Page.text[start:end] is the line.
    end: int
    # Font size in points of most of its characters.
    size: float
    # Every word of it is bold.
    is_bold: bool
    box: Box


@dataclass(frozen=True, slots=True)
class ReadPdf:
    """A PDF as read once."""

    # The file's own /Title, which may be any program's leftover.
    title: str
    pages: tuple[Page, ...]
    # The lines of each page, in reading order; a word's ``line`` counts them from 0.
    lines: tuple[tuple[Line, ...], ...]
    # Words with a line through them, left out.
    struck_words: int
    # The file is damaged and was mended on opening: some of it may be missing.
    is_repaired: bool
    # Pages that could not be read; they are among ``pages`` without text.
    unread_pages: tuple[int, ...] = ()
    # Pages on which more is printed than their few words say, or than no word at all.
    ink_pages: tuple[int, ...] = ()
    # For each page, the characters whose font does not say what they are; () when nobody counted.
    unmapped: tuple[int, ...] = ()
    # Pages whose text was read from their picture.
    ocr_pages: tuple[int, ...] = ()
    # It opens only with a password.
    is_locked: bool = False


@dataclass(frozen=True, slots=True)
class OcrPage:
    """What OCR read in the picture of a page, or of a part of one."""

    # Counted from 1.
    number: int
    text: str
    words: WordMap
    lines: tuple[Line, ...]
    # How sure it is of its letters on average, 0 to 1; 0 when it found none.
    score: float
    # The part of the page that it read; None: all of it.
    clip: Box | None = None


class BlockKind(StrEnum):
    """What a part of a page is to a person who reads it."""

    HEADING = "heading"
    TEXT = "text"
    # Of a list, or a numbered step.
    ITEM = "item"
    TABLE = "table"
    FIGURE = "figure"
    CAPTION = "caption"
    FOOTNOTE = "footnote"
    # A header or footer, or a page's number.
    RUNNING = "running"


@dataclass(frozen=True, slots=True)
class Region:
    """Where a part of a page is, before anybody knows its words."""

    kind: BlockKind
    box: Box
    # Of a table: its rows of cells; None is a place that another cell covers.
    cells: tuple[tuple[Box | None, ...], ...] = ()
    # Of a figure: what it is drawn with.
    shapes: Shapes = NO_SHAPES


@dataclass(frozen=True, slots=True)
class Layout:
    """What a document's pages look like."""

    # Page (from 1) -> its parts in reading order; a page that was not analysed is missing.
    pages: Mapping[int, tuple[Region, ...]]
    # Page -> quarter turns to the right that make its text upright; its parts are placed as after them.
    turns: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RenderedPage:
    """One page as a picture."""

    data: bytes
    media_type: str
    width: int
    # Size in pixels.
    height: int
