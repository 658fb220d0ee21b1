"""Page layout of the sample SOPs: headings, paragraphs, steps, tables, boxes, charts.

Used only by ``make_samples.py``, by hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pymupdf

WIDTH, HEIGHT = pymupdf.paper_size("a4")
LEFT, RIGHT = 62.0, WIDTH - 62.0
Colour = tuple[float, float, float]
INK, GREY, RULE, WHITE = (0.13, 0.15, 0.18), (0.42, 0.45, 0.5), (0.82, 0.84, 0.87), (1.0, 1.0, 1.0)
AMBER, AMBER_TINT = (0.79, 0.38, 0.03), (1.0, 0.96, 0.88)


@dataclass(frozen=True)
class Face:
    """Font settings of a line, limited to two of the 14 standard PDF fonts."""

    size: float
    is_bold: bool = False
    colour: Colour = INK

    @property
    def font(self) -> str:
        """PyMuPDF's name of the font."""
        return "hebo" if self.is_bold else "helv"

    def width(self, words: str) -> float:
        """Return the width of a line in points."""
        return pymupdf.get_text_length(words, self.font, self.size)

    def wrap(self, words: str, width: float) -> list[str]:
        """Break text into lines no wider than ``width`` points."""
        lines = [""]
        for word in words.split():
            longer = f"{lines[-1]} {word}".strip()
            if self.width(longer) > width and lines[-1]:
                lines.append(word)
            else:
                lines[-1] = longer
        return lines


BODY, LABEL, CELL, SMALL = Face(9.8), Face(8.8, True, GREY), Face(9), Face(8, colour=GREY)


@dataclass(frozen=True)
class Control:
    """Document control data in the header and footer of every page."""

    company: str
    number: str
    title: str
    version: str
    department: str
    effective: str
    updated: str
    owner: str
    colour: Colour

    @property
    def tint(self) -> Colour:
        """Near-white tint of the document's colour."""
        red, green, blue = (0.93 + 0.07 * part for part in self.colour)
        return red, green, blue


class Sheet:
    """A page that is written from top to bottom; ``y`` is the current position in points."""

    def __init__(self, document: pymupdf.Document, control: Control) -> None:
        self.page = document.new_page(width=WIDTH, height=HEIGHT)
        self.control = control
        self.strong = Face(9.8, True, control.colour)
        self.y = 0.0

    def text(self, x: float, y: float, words: str, face: Face) -> None:
        """Draw a line of text that starts at ``x``, with its baseline at ``y``."""
        self.page.insert_text((x, y), words, fontname=face.font, fontsize=face.size, color=face.colour)

    def text_until(self, x: float, y: float, words: str, face: Face) -> None:
        """Draw a line of text that ends at ``x``."""
        self.text(x - face.width(words), y, words, face)

    def text_around(self, x: float, y: float, words: str, face: Face) -> None:
        """Draw a line of text centred at ``x``."""
        self.text(x - face.width(words) / 2, y, words, face)

    def cover(self) -> None:
        """Draw the header of the first page: company, title and document control table."""
        control, white = self.control, Face(8.5, colour=WHITE)
        self.page.draw_rect((0, 0, WIDTH, 92), fill=control.colour, color=None)
        self.text(LEFT, 36, control.company.upper(), replace(white, is_bold=True))
        self.text_until(RIGHT, 36, "STANDARD OPERATING PROCEDURE", white)
        self.text(LEFT, 70, f"{control.number} {control.title}", Face(21, True, WHITE))
        self.y = 108
        self._fields(SOP_ID=control.number, Version=control.version, Department=control.department)
        self._fields(Effective=control.effective, Last_updated=control.updated, Owner=control.owner)
        self.y += 10

    def _fields(self, **fields: str) -> None:
        self.page.draw_rect((LEFT, self.y, RIGHT, self.y + 22), fill=self.control.tint, color=RULE, width=0.6)
        for place, (name, value) in enumerate(fields.items()):
            x = LEFT + 9 + place * (RIGHT - LEFT) / 3
            self.text(x, self.y + 14.5, name.replace("_", " ") + ":", Face(9, colour=GREY))
            self.text(x + 64, self.y + 14.5, value, Face(9.4, True))
        self.y += 22

    def running_head(self) -> None:
        """Draw the header of a later page."""
        self.page.draw_rect((0, 0, WIDTH, 8), fill=self.control.colour, color=None)
        about = f"{self.control.number} {self.control.title}"
        self.text(LEFT, 36, about, Face(9, True, self.control.colour))
        self.text_until(RIGHT, 36, self.control.company, Face(9, colour=GREY))
        self.page.draw_line((LEFT, 44), (RIGHT, 44), color=RULE, width=0.6)
        self.y = 54

    def foot(self, page: int, pages: int) -> None:
        """Draw the footer with ``Page x of y``."""
        control = self.control
        self.page.draw_line((LEFT, HEIGHT - 48), (RIGHT, HEIGHT - 48), color=RULE, width=0.6)
        about = (control.number, f"Version {control.version}", f"Effective {control.effective}", "Internal")
        self.text(LEFT, HEIGHT - 34, " · ".join(about), SMALL)
        self.text_until(RIGHT, HEIGHT - 34, f"Page {page} of {pages}", SMALL)

    def heading(self, words: str) -> None:
        """Write a numbered heading."""
        self.text(LEFT, self.y + 22, words, Face(13, True, self.control.colour))
        self.y += 30

    def paragraph(self, words: str) -> None:
        """Write a paragraph."""
        self._lines(LEFT, words)
        self.y += 5

    def steps(self, *steps: str) -> None:
        """Write numbered steps with a hanging indent."""
        for number, step in enumerate(steps, 1):
            self.text(LEFT + 6, self.y + 9.8, f"{number}.", self.strong)
            self._lines(LEFT + 24, step)
            self.y += 3
        self.y += 2

    def _lines(self, left: float, words: str, right: float = RIGHT) -> None:
        for line in BODY.wrap(words, right - left):
            self.text(left, self.y + 9.8, line, BODY)
            self.y += 13.9

    def caption(self, words: str) -> None:
        """Write the caption of a table or figure."""
        self.text(LEFT, self.y + 12, words, LABEL)
        self.y += 18

    def table(self, widths: Sequence[float], *rows: Sequence[str]) -> None:
        """Draw a ruled table, header row first; ``widths`` are fractions of the text width."""
        edges = [LEFT + (RIGHT - LEFT) * sum(widths[:place]) for place in range(len(widths) + 1)]
        for number, row in enumerate(rows):
            fill = self.control.colour if number == 0 else WHITE if number % 2 else self.control.tint
            self._row(edges, row, Face(9, True, WHITE) if number == 0 else CELL, fill)
        self.page.draw_line((LEFT, self.y), (RIGHT, self.y), color=self.control.colour, width=0.9)
        self.y += 8

    def _row(self, edges: Sequence[float], row: Sequence[str], face: Face, fill: Colour) -> None:
        cells = [face.wrap(cell, edges[place + 1] - edges[place] - 14) for place, cell in enumerate(row)]
        height = 9.5 + 12.4 * max(len(cell) for cell in cells)
        self.page.draw_rect((LEFT, self.y, RIGHT, self.y + height), fill=fill, color=RULE, width=0.5)
        for left, cell in zip(edges, cells, strict=False):
            for place, line in enumerate(cell):
                self.text(left + 7, self.y + 14 + 12.4 * place, line, face)
        self.y += height

    def warning(self, words: str) -> None:
        """Draw a highlighted warning box."""
        top, left, right = self.y + 4, LEFT + 18, RIGHT - 12
        foot = top + 36 + 13.9 * len(BODY.wrap(words, right - left))
        self.page.draw_rect((LEFT, top, RIGHT, foot), fill=AMBER_TINT, color=None)
        self.page.draw_rect((LEFT, top, LEFT + 5, foot), fill=AMBER, color=None)
        self.text(left, top + 20, "WARNING", Face(10.5, True, AMBER))
        self.y = top + 26
        self._lines(left, words, right)
        self.y = foot + 8

    def bars(self, unit: str, **values: float) -> None:
        """Draw a bar chart as vectors, with its scale."""
        left, top, foot = LEFT + 40, self.y + 16, self.y + 122
        most = 100 * (1 + max(values.values()) // 100)
        self._scale(left, top, foot, range(0, int(most) + 1, 100))
        self.text_until(left - 6, top - 9, unit, SMALL)
        place = (RIGHT - left) / len(values)
        for number, (name, value) in enumerate(values.items()):
            x, y = left + place * (number + 0.5), foot - (foot - top) * value / most
            self.page.draw_rect((x - place / 4, y, x + place / 4, foot), fill=self.control.colour, color=None)
            self.text_around(x, y - 4, f"{value:.0f}", Face(8, True))
            self.text_around(x, foot + 12, name.replace("_", " "), SMALL)
        self.y = foot + 24

    def _scale(self, left: float, top: float, foot: float, ticks: range) -> None:
        for tick in ticks:
            y = foot - (foot - top) * tick / ticks[-1]
            self.page.draw_line((left, y), (RIGHT, y), color=RULE, width=0.5)
            self.text_until(left - 6, y + 3, str(tick), SMALL)

    def chain(self, **boxes: str) -> None:
        """Draw boxes joined by arrows, from left to right."""
        gap, colour = 24.0, self.control.colour
        wide = (RIGHT - LEFT - gap * (len(boxes) - 1)) / len(boxes)
        for number, (who, what) in enumerate(boxes.items()):
            x = LEFT + number * (wide + gap)
            frame = (x, self.y, x + wide, self.y + 44)
            self.page.draw_rect(frame, fill=self.control.tint, color=colour, width=0.9, radius=0.12)
            self.text_around(x + wide / 2, self.y + 19, who.replace("_", " "), self.strong)
            self.text_around(x + wide / 2, self.y + 33, what, Face(8.4))
            if number:
                self._arrow(x - gap + 3, x - 3, self.y + 22)
        self.y += 58

    def _arrow(self, start: float, end: float, y: float) -> None:
        colour = self.control.colour
        self.page.draw_line((start, y), (end - 4, y), color=colour, width=1.1)
        self.page.draw_polyline([(end - 6, y - 3.5), (end, y), (end - 6, y + 3.5)], fill=colour, color=colour)
