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

    bars: int = 0
    """Filled rectangles of one width on one base, of different heights; or lying on one side."""
    lines: int = 0
    """Lines that run from one side towards the other in several steps."""
    slices: int = 0
    """Filled sectors round one centre."""


NO_SHAPES = Shapes()


@dataclass(frozen=True, slots=True)
class Line:
    """One row of text as printed; cells that share a baseline are one line."""

    start: int
    end: int
    """Page.text[start:end] is the line."""
    size: float
    """Font size in points of most of its characters."""
    is_bold: bool
    """Every word of it is bold."""
    box: Box


@dataclass(frozen=True, slots=True)
class ReadPdf:
    """A PDF as read once."""

    title: str
    """The file's own /Title, which may be any program's leftover."""
    pages: tuple[Page, ...]
    lines: tuple[tuple[Line, ...], ...]
    """The lines of each page, in reading order; a word's ``line`` counts them from 0."""
    struck_words: int
    """Words with a line through them, left out."""
    is_repaired: bool
    """The file is damaged and was mended on opening: some of it may be missing."""
    unread_pages: tuple[int, ...] = ()
    """Pages that could not be read; they are among ``pages`` without text."""
    ink_pages: tuple[int, ...] = ()
    """Pages on which more is printed than their few words say, or than no word at all."""
    unmapped: tuple[int, ...] = ()
    """For each page, the characters whose font does not say what they are; () when nobody counted."""
    ocr_pages: tuple[int, ...] = ()
    """Pages whose text was read from their picture."""
    is_locked: bool = False
    """It opens only with a password."""


@dataclass(frozen=True, slots=True)
class OcrPage:
    """What OCR read in the picture of a page, or of a part of one."""

    number: int
    """Counted from 1."""
    text: str
    words: WordMap
    lines: tuple[Line, ...]
    score: float
    """How sure it is of its letters on average, 0 to 1; 0 when it found none."""
    clip: Box | None = None
    """The part of the page that it read; None: all of it."""


class BlockKind(StrEnum):
    """What a part of a page is to a person who reads it."""

    HEADING = "heading"
    TEXT = "text"
    ITEM = "item"
    """Of a list, or a numbered step."""
    TABLE = "table"
    FIGURE = "figure"
    CAPTION = "caption"
    FOOTNOTE = "footnote"
    RUNNING = "running"
    """A header or footer, or a page's number."""


@dataclass(frozen=True, slots=True)
class Region:
    """Where a part of a page is, before anybody knows its words."""

    kind: BlockKind
    box: Box
    cells: tuple[tuple[Box | None, ...], ...] = ()
    """Of a table: its rows of cells; None is a place that another cell covers."""
    shapes: Shapes = NO_SHAPES
    """Of a figure: what it is drawn with."""


@dataclass(frozen=True, slots=True)
class Layout:
    """What a document's pages look like."""

    pages: Mapping[int, tuple[Region, ...]]
    """Page (from 1) -> its parts in reading order; a page that was not analysed is missing."""
    turns: Mapping[int, int] = field(default_factory=dict)
    """Page -> quarter turns to the right that make its text upright; its parts are placed as after them."""


@dataclass(frozen=True, slots=True)
class RenderedPage:
    """One page as a picture."""

    data: bytes
    media_type: str
    width: int
    height: int
    """Size in pixels."""
