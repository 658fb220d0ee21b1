"""Says what a figure is, by the words of its caption and labels and by what it is drawn with."""

from __future__ import annotations

import re

from storage.figure_models import FigureKind
from storage.pdf.shapes import Shapes

MIN_BARS, MIN_SLICES = 3, 3
"""Fewer rectangles or sectors may be anything."""

SEVERAL_NUMBERS = 4
"""Numbers among the labels of what shows data: an axis has as many, a drawing two or three sizes."""

_WORDS = {
    FigureKind.BAR: re.compile(r"\b(?:bar|column) (?:chart|graph|plot)s?\b|\bhistograms?\b", re.IGNORECASE),
    FigureKind.LINE: re.compile(r"\bline (?:chart|graph|plot)s?\b", re.IGNORECASE),
    FigureKind.PIE: re.compile(r"\b(?:pie|dou?g?h?nut) (?:chart|graph)s?\b", re.IGNORECASE),
}
_OTHER = re.compile(
    r"\b(?:flow[ -]?charts?|flow diagrams?|organi[sz]ation(?:al)? charts?|org charts?|gantt|photo(?:graph)?s?"
    r"|maps?|screenshots?|scatter ?plots?|schematics?|block diagrams?|floor ?plans?)\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d.,]*%?(?!\w)")


def kind_of(caption: str, text: str, shapes: Shapes) -> FigureKind:
    """The one kind that words name, else the one that the shapes are enough for; two are none.

    Args:
        caption: the document's words for the figure.
        text: what is printed in it.
        shapes: what it is drawn with.
    """
    named = [kind for kind, words in _WORDS.items() if words.search(f"{caption}\n{text}")]
    named += [FigureKind.OTHER] if _OTHER.search(caption) else []
    if named:
        return named[0] if len(named) == 1 else FigureKind.UNKNOWN
    drawn = {
        FigureKind.BAR: shapes.bars >= MIN_BARS,
        FigureKind.LINE: shapes.lines > 0,
        FigureKind.PIE: shapes.slices >= MIN_SLICES,
    }
    seen = [kind for kind, is_drawn in drawn.items() if is_drawn]
    return seen[0] if len(seen) == 1 else FigureKind.UNKNOWN


def holds_data(kind: FigureKind, text: str) -> bool:
    """Whether a figure of this kind, with these labels, shows numbers."""
    is_chart = kind in {FigureKind.BAR, FigureKind.LINE, FigureKind.PIE}
    return is_chart or len(_NUMBER.findall(text)) >= SEVERAL_NUMBERS
