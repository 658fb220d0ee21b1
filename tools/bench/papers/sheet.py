"""A sheet to draw on: wrapped text, and boxes as fractions of the page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pymupdf

WIDTH, HEIGHT = 595, 842
MARGIN = 60
BODY, BOLD = "helv", "hebo"
# Distance of two baselines in font sizes.
LEADING = 1.3

GREY = (0.45, 0.45, 0.45)
INK = (0, 0, 0)


@dataclass(slots=True)
class Paper:
    """One PDF in the making, and what is true of its pages (counted from 1)."""

    name: str
    document: Any = field(default_factory=pymupdf.open)
    tables: dict[str, list[list[list[str | None]]]] = field(default_factory=dict)
    order: dict[str, list[str]] = field(default_factory=dict)
    figures: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def new_page(self) -> Any:
        """One more empty page."""
        return self.document.new_page(width=WIDTH, height=HEIGHT)

    @property
    def page(self) -> str:
        """The number of the page drawn last, as the labels write it."""
        return str(self.document.page_count)

    def save(self, folder: Path) -> None:
        """Write the PDF; the labels go elsewhere."""
        self.document.save(folder / f"{self.name}.pdf", garbage=3, deflate=True)


def wrapped(text: str, width: float, *, size: float = 10, font: str = BODY) -> list[str]:
    """Return the lines of a text in a column of this width."""
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and pymupdf.get_text_length(longer, font, size) > width:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


def write(
    page: Any, x: float, y: float, lines: Iterable[str], *, size: float = 10, font: str = BODY
) -> float:
    """Write lines below ``y``; returns where the next one would begin."""
    for line in lines:
        page.insert_text((x, y + size), line, fontsize=size, fontname=font)
        y += size * LEADING
    return y


def label(page: Any, x: float, y: float, text: str, *, size: float = 7) -> Any:
    """Write one line on the baseline ``y``; returns its box."""
    page.insert_text((x, y), text, fontsize=size, fontname=BODY)
    return pymupdf.Rect(x, y - 0.8 * size, x + pymupdf.get_text_length(text, BODY, size), y + 0.2 * size)


def around(boxes: Sequence[Any]) -> Any:
    """Return the smallest box that holds them all."""
    whole = pymupdf.Rect(boxes[0])
    for box in boxes[1:]:
        whole |= pymupdf.Rect(box)
    return whole


def fractions(box: Any) -> list[float]:
    """Return a box as the labels write it."""
    sides = (box.x0 / WIDTH, box.y0 / HEIGHT, box.x1 / WIDTH, box.y1 / HEIGHT)
    return [round(side, 4) for side in sides]
