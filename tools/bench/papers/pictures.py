"""Synthetic photographs, and decoration that is no figure: logos, backgrounds, bands, rules."""

from __future__ import annotations

from math import sin
from random import Random
from typing import Any

import pymupdf

from tools.bench.papers.sheet import GREY, HEIGHT, MARGIN, WIDTH, label

COLUMNS, ROWS = 180, 120
BRAND = (0.1, 0.4, 0.55)


def photo(page: Any, box: Any, random: Random) -> Any:
    """Insert a landscape as an image: sky, two ranges of hills and some grain; return its box."""
    first, second = random.uniform(0, 6), random.uniform(0, 6)
    pixels = bytearray()
    for row in range(ROWS):
        for column in range(COLUMNS):
            pixels += _colour(row, column, first, second, random.randint(-9, 9))
    picture = pymupdf.Pixmap(pymupdf.csRGB, COLUMNS, ROWS, bytes(pixels), False)
    width = min(box.width, box.height * COLUMNS / ROWS)
    own = pymupdf.Rect(box.x0, box.y0, box.x0 + width, box.y0 + width * ROWS / COLUMNS)
    page.insert_image(own, pixmap=picture)
    return own


def _colour(row: int, column: int, first: float, second: float, grain: int) -> bytes:
    height = row / ROWS
    if height > 0.7 + 0.1 * sin(first + column / 17):
        colour = (60, 110, 50)
    elif height > 0.5 + 0.12 * sin(second + column / 29):
        colour = (110, 130, 120)
    else:
        colour = (int(120 + 100 * height), int(170 + 60 * height), 235)
    return bytes(max(0, min(255, part + grain)) for part in colour)


def logo() -> Any:
    """Return a ring on white, the logo in the corner of each page."""
    picture = pymupdf.Pixmap(pymupdf.csRGB, pymupdf.IRect(0, 0, 60, 60), False)
    picture.clear_with(255)
    for row in range(60):
        for column in range(60):
            if 380 < (row - 30) ** 2 + (column - 30) ** 2 < 800:
                picture.set_pixel(column, row, (25, 102, 140))
    return picture


def decorate(page: Any, *, title: str, number: int, style: int, corner: Any) -> None:
    """Draw header and footer, and a background, band or frame depending on the style."""
    if style % 4 == 1:
        page.draw_rect(page.rect, color=None, fill=(0.97, 0.97, 0.93))
    if style % 4 == 2:
        page.draw_rect((0, 0, 22, HEIGHT), color=None, fill=BRAND)
    if style % 4 == 3:
        page.draw_rect((30, 26, WIDTH - 30, HEIGHT - 24), color=BRAND, width=0.8)
    if style % 3 != 2:
        page.insert_image((WIDTH - 96, 30, WIDTH - 66, 60), pixmap=corner)
    label(page, MARGIN, 48, title, size=8)
    page.draw_line((MARGIN, 66), (WIDTH - MARGIN, 66), color=GREY, width=0.6)
    page.draw_line((MARGIN, HEIGHT - 56), (WIDTH - MARGIN, HEIGHT - 56), color=GREY, width=0.4)
    label(page, WIDTH / 2 - 10, HEIGHT - 42, str(number), size=8)


def note(page: Any, x: float, y: float, width: float, lines: list[str]) -> float:
    """Draw a tinted box with words only, which is no figure; return its lower end."""
    height = 13 * len(lines) + 12
    page.draw_rect((x, y, x + width, y + height), color=BRAND, fill=(0.93, 0.96, 0.97), width=0.7)
    for row, line in enumerate(lines):
        page.insert_text((x + 8, y + 16 + 13 * row), line, fontsize=10)
    return y + height + 12
