"""Makes scanned PDFs, pictures and nothing else, of pages whose words are known: ``make_scans.py FOLDER``.

``truth.json`` says for each file the words in reading order, each with its box as fractions of the page.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pymupdf

SAMPLES = Path(__file__).parents[3] / "deploy" / "samples"
SOURCE = SAMPLES / "SOP-IT-04-Backup-and-Restore.pdf"
DPI = 200
COLUMNS = (
    "The backup operator opens the console every morning and confirms that each job of the night has "
    "completed. A job that failed is started again once; when it fails a second time a ticket of priority "
    "two is opened and the owner of the system is told by telephone. Nobody restores a database alone. "
    "Before a restore the present state is copied, because a restore cannot be undone. "
)
"""A column's text, said often enough to fill it."""

Words = list[tuple[str, pymupdf.Rect]]


def words_of(page: pymupdf.Page) -> Words:
    return [(word[4], pymupdf.Rect(word[:4])) for word in page.get_text("words")]


def fractions(words: Words, turn: pymupdf.Matrix, page: pymupdf.Rect) -> list[list[object]]:
    """Words of a page that was drawn through ``turn`` onto ``page``."""
    placed = [(word, box * turn) for word, box in words]
    width, height = page.width, page.height
    return [
        [word, box.x0 / width, box.y0 / height, box.x1 / width, box.y1 / height] for word, box in placed
    ]


def scan(folder: Path, name: str, source: pymupdf.Page, angle: float) -> list[list[object]]:
    """A page as a scanner sees it that lies turned by ``angle`` degrees; its words and where they are."""
    turn = pymupdf.Matrix(1, 1).prerotate(angle)
    paper = source.rect * turn
    turn *= pymupdf.Matrix(1, 0, 0, 1, -paper.x0, -paper.y0)
    zoom = pymupdf.Matrix(DPI / 72, DPI / 72)
    drawn = source.get_pixmap(matrix=turn * zoom, colorspace=pymupdf.csGRAY, alpha=False)
    target = pymupdf.open()
    page = target.new_page(width=paper.width, height=paper.height)
    page.insert_image(page.rect, stream=drawn.tobytes("jpg", jpg_quality=80))
    target.save(folder / f"{name}.pdf")
    return fractions(words_of(source), turn, page.rect)


def two_columns() -> pymupdf.Page:
    """A title over two columns of the same length."""
    document = pymupdf.open()
    page = document.new_page(width=595, height=842)
    page.insert_text((60, 70), "Rules for restores and for those who make them", fontsize=18)
    for left in (60, 310):
        page.insert_textbox((left, 100, left + 225, 800), COLUMNS * 5, fontsize=10)
    return page


def garbled(folder: Path) -> None:
    """A page whose font names its glyphs with private letters: it looks right and reads as nothing."""
    document = pymupdf.open(SOURCE)
    page = document[0]
    drawn = page.get_pixmap(dpi=DPI, colorspace=pymupdf.csGRAY)
    target = pymupdf.open()
    copy = target.new_page(width=page.rect.width, height=page.rect.height)
    copy.insert_image(copy.rect, stream=drawn.tobytes("jpg", jpg_quality=80))
    ciphered = "".join(chr(ord(letter) - 29) if letter.isalpha() else letter for letter in COLUMNS * 3)
    copy.insert_textbox((60, 60, 500, 800), ciphered, fontsize=9, render_mode=3)
    target.save(folder / "garbled.pdf")


def huge(folder: Path) -> None:
    """One page of five metres, all noise, which is thousands of lines to whoever looks for lines."""
    side = 3000
    seed, noise = 1, bytearray()
    for _ in range(side * side // 8):
        seed = (seed * 1103515245 + 12345) & 0x7FFFFFFF
        noise.append(seed >> 16 & 0xFF)
    grey = b"".join(bytes(255 * (byte >> bit & 1) for bit in range(8)) for byte in noise)
    picture = pymupdf.Pixmap(pymupdf.csGRAY, side, side, grey, False)
    document = pymupdf.open()
    page = document.new_page(width=14400, height=14400)
    page.insert_image(page.rect, pixmap=picture)
    document.save(folder / "huge.pdf", deflate=True)


def blank(folder: Path) -> None:
    """A page of white paper, as a picture, and one without anything."""
    white = pymupdf.Pixmap(pymupdf.csGRAY, pymupdf.IRect(0, 0, 600, 800), False)
    white.clear_with(255)
    document = pymupdf.open()
    page = document.new_page()
    page.insert_image(page.rect, pixmap=white)
    document.new_page()
    document.save(folder / "blank.pdf")


def main() -> None:
    folder = Path(sys.argv[1])
    source = pymupdf.open(SOURCE)[0]
    columns = two_columns()
    angles = {"straight": 0, "skewed": 1.2, "side": 90, "head": 180, "other-side": 270}
    truth = {name: scan(folder, name, source, angle) for name, angle in angles.items()}
    truth["columns"] = scan(folder, "columns", columns, 0)
    truth["columns-side"] = scan(folder, "columns-side", columns, 90)
    (folder / "truth.json").write_text(json.dumps(truth))
    garbled(folder)
    huge(folder)
    blank(folder)


if __name__ == "__main__":
    main()
