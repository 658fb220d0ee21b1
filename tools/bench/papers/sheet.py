"""Drawing helpers: wrapped text, and boxes as fractions of the page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pymupdf

WIDTH, HEIGHT = 595, 842
MARGIN = 60
BODY, BOLD = "helv", "hebo"
# Distance of two baselines, as a multiple of the font size.
LEADING = 1.3

GREY = (0.45, 0.45, 0.45)
INK = (0, 0, 0)


@dataclass(slots=True)
class Paper:
    """A PDF in the making, and the ground truth of its pages (1-based)."""

    name: str
    document: Any = field(default_factory=pymupdf.open)
    tables: dict[str, list[list[list[str | None]]]] = field(default_factory=dict)
    order: dict[str, list[str]] = field(default_factory=dict)
    figures: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def new_page(self) -> Any:
        """Add an empty page."""
        return self.document.new_page(width=WIDTH, height=HEIGHT)

    @property
    def page(self) -> str:
        """Number of the last page, as in the labels."""
        return str(self.document.page_count)

    def save(self, folder: Path) -> None:
        """Save the PDF, without the labels."""
        self.document.save(folder / f"{self.name}.pdf", garbage=3, deflate=True)


def wrapped(text: str, width: float, *, size: float = 10, font: str = BODY) -> list[str]:
    """Return a text wrapped to a width in points."""
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
    """Write lines below ``y``; return the position of the next one."""
    for line in lines:
        page.insert_text((x, y + size), line, fontsize=size, fontname=font)
        y += size * LEADING
    return y


def label(page: Any, x: float, y: float, text: str, *, size: float = 7) -> Any:
    """Write one line on the baseline ``y``; return its box."""
    page.insert_text((x, y), text, fontsize=size, fontname=BODY)
    return pymupdf.Rect(x, y - 0.8 * size, x + pymupdf.get_text_length(text, BODY, size), y + 0.2 * size)


def around(boxes: Sequence[Any]) -> Any:
    """Return the smallest box that contains all boxes."""
    whole = pymupdf.Rect(boxes[0])
    for box in boxes[1:]:
        whole |= pymupdf.Rect(box)
    return whole


def fractions(box: Any) -> list[float]:
    """Return a box as fractions of the page, as in the labels."""
    sides = (box.x0 / WIDTH, box.y0 / HEIGHT, box.x1 / WIDTH, box.y1 / HEIGHT)
    return [round(side, 4) for side in sides]
