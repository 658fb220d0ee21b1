"""Make scanned PDFs, images only, of pages with known words: ``make_scans.py FOLDER``.

``truth.json`` has the words of each file in reading order, each with its box as fractions of the page.
"""

from __future__ import annotations

import json
import sys
import zlib
from pathlib import Path

import pymupdf

SAMPLES = Path(__file__).parents[2] / "bot" / "cli" / "setup" / "samples"
SOURCE = SAMPLES / "SOP-IT-04-Backup-and-Restore.pdf"
DPI = 200
# A column's text, repeated until it is full.
COLUMNS = (
    "The backup operator opens the console every morning and confirms that each job of the night has "
    "completed. A job that failed is started again once; when it fails a second time a ticket of priority "
    "two is opened and the owner of the system is told by telephone. Nobody restores a database alone. "
    "Before a restore the present state is copied, because a restore cannot be undone. "
)

Words = list[tuple[str, pymupdf.Rect]]


def words_of(page: pymupdf.Page) -> Words:
    words = [(word[4], pymupdf.Rect(word[:4])) for word in page.get_text("words")]
    return [(word, box) for word, box in words if page.rect.contains(box)]


def fractions(words: Words, turn: pymupdf.Matrix, page: pymupdf.Rect) -> list[list[object]]:
    """Return the words of a page transformed by ``turn`` onto ``page``, as fractions."""
    placed = [(word, box * turn) for word, box in words]
    width, height = page.width, page.height
    return [[word, box.x0 / width, box.y0 / height, box.x1 / width, box.y1 / height] for word, box in placed]


def scan(folder: Path, name: str, source: pymupdf.Page, angle: float) -> list[list[object]]:
    """Save a page scanned at ``angle`` degrees; return its words and their boxes."""
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
    """Return a title over two columns of equal length."""
    document = pymupdf.open()
    page = document.new_page(width=595, height=842)
    page.insert_text((60, 70), "Rules for restores and for those who make them", fontsize=18)
    for left in (60, 310):
        page.insert_textbox((left, 100, left + 225, 800), COLUMNS * 2, fontsize=10)
    return page


def garbled(folder: Path) -> None:
    """Make two pages that look right with shifted letters, and an intact one between them."""
    with pymupdf.open(SOURCE) as source:
        source[0].get_pixmap(dpi=DPI, colorspace=pymupdf.csGRAY).save(folder / "page.jpg")
    document = pymupdf.open()
    for shift in (29, 0, -3):
        page = document.new_page(width=595, height=842)
        page.insert_image(page.rect, filename=folder / "page.jpg")
        letters = "".join(letter if letter == " " else chr(ord(letter) - shift) for letter in COLUMNS * 3)
        page.insert_textbox((60, 60, 500, 800), letters, fontsize=9, render_mode=3)
    document.save(folder / "garbled.pdf")


def stamped(folder: Path) -> None:
    """Make a scan with a page number stamped on it as text."""
    document = pymupdf.open()
    page = document.new_page(width=595, height=842)
    page.insert_image(page.rect, filename=folder / "page.jpg")
    page.insert_text((500, 830), "Exhibit 12", fontsize=9)
    document.save(folder / "stamped.pdf")


def huge(folder: Path) -> None:
    """Make a page of five metres with an image of 1.5 GB unpacked."""
    side, rows = 40_000, 400
    pack = zlib.compressobj(1)
    first, other = (pack.compress(bytes(side * rows)) + pack.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    data = first + other * (side // rows - 1) + pack.flush()  # a wrong checksum, which no reader verifies
    document = pymupdf.open()
    page = document.new_page(width=14400, height=14400)
    page.insert_image((0, 0, 14400, 14400), pixmap=pymupdf.Pixmap(pymupdf.csGRAY, (0, 0, 8, 8)))
    (image, *_), *_ = page.get_images()
    document.update_stream(image, data, compress=False)
    for key, value in (
        ("Width", side),
        ("Height", side),
        ("Filter", "/FlateDecode"),
        ("DecodeParms", "null"),
    ):
        document.xref_set_key(image, key, str(value))
    document.save(folder / "huge.pdf")


def blank(folder: Path) -> None:
    """Make a page with an image of white paper, and an empty one."""
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
    truth = {"straight": scan(folder, "straight", source, 0)}
    source.set_cropbox(pymupdf.Rect(0, 0, 595, 330))  # fewer words are read faster
    for name, angle in {"skewed": 1.2, "side": 90, "head": 180}.items():
        truth[name] = scan(folder, name, source, angle)
    truth["columns"] = scan(folder, "columns", columns, 270)
    (folder / "truth.json").write_text(json.dumps(truth))
    garbled(folder)
    stamped(folder)
    huge(folder)
    blank(folder)


if __name__ == "__main__":
    main()
