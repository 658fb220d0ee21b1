"""What comes back from a PDF: its pages with their words and lines, or one page as a picture."""

from __future__ import annotations

from dataclasses import dataclass

from storage.models import Box, Page


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
    """The file's own /Title when it is sane, else ''."""
    pages: tuple[Page, ...]
    lines: tuple[tuple[Line, ...], ...]
    """The lines of each page, in reading order; a word's ``line`` counts them from 0."""
    hidden_words: int
    """Words nobody can see (white, invisible, transparent, tiny, clipped or beside the page), left out."""
    is_repaired: bool
    """The file is damaged and was mended on opening: some of it may be missing."""
    unread_pages: tuple[int, ...] = ()
    """Pages that could not be read; they are among ``pages`` without text."""


@dataclass(frozen=True, slots=True)
class RenderedPage:
    """One page as a picture."""

    data: bytes
    media_type: str
    width: int
    height: int
    """Size in pixels."""
