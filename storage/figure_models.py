"""A figure of a document: a picture or a chart, with what is said about it and what can be read in it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from storage.models import Box


class FigureKind(StrEnum):
    """What a figure is; ``unknown`` rather than a guess."""

    BAR = "bar"
    LINE = "line"
    PIE = "pie"
    OTHER = "other"
    """A flow chart, map, photograph or diagram: surely none of the three."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture or chart of one page; decoration is none."""

    page: int
    box: Box
    kind: FigureKind
    holds_data: bool
    """It shows numbers, not only things."""
    chunk: int | None
    """Ordinal of the chunk it stands in; None on a page without text."""
    heading_path: tuple[str, ...]
    caption: str
    """The document's own words for it, '' when it gives none."""
    context: str
    """Sentences of its chunk that name it, or that stand around it."""
    text: str
    """What is printed in it, or what OCR reads there; never to be quoted."""
    description: str = ""
    """What a vision model says of it, '' where none was asked; never to be quoted."""

    @property
    def said(self) -> str:
        """All that is known of it in words, what is missing left out: this is embedded."""
        return "\n".join(filter(None, (self.caption, self.description, self.context, self.text)))
