"""OCR lines are grouped into rows and columns; page resolution for OCR."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import pymupdf
import pytest

from storage.pdf.child.ocr_job import MIN_DPI, draw, printed_part
from storage.pdf.child.ocr_layout import WHOLE, Quad, SeenLine, page_of
from storage.text.word_boxes import SCALE

SIZE = 1000
LETTER = 5  # letter width in pixels
HEIGHT = 14

Printed = tuple[float, float, str]  # left, middle, text


def quad(x: float, y: float, width: float, height: float, degrees: float) -> Quad:
    """Return a box from the middle of its left edge, rotated around it."""
    turn = np.exp(1j * math.radians(degrees))
    corners = np.array([-1j, width / height * 2 - 1j, width / height * 2 + 1j, 1j]) * height / 2 * turn
    return np.stack((corners.real + x, corners.imag + y), axis=1).astype(np.float32)


def seen(printed: Iterable[Printed], degrees: float = 0, height: float = HEIGHT) -> list[SeenLine]:
    """Return the lines of a page that is rotated around its centre."""
    turn, middle = np.exp(1j * math.radians(degrees)), complex(SIZE / 2, SIZE / 2)
    lines = []
    for x, y, text in printed:
        place = (complex(x, y) - middle) * turn + middle
        box = quad(place.real, place.imag, LETTER * len(text) * height / HEIGHT, height, degrees)
        lines.append(SeenLine(((text, box),), box, 0.99))
    return lines


def text_of(*lines: SeenLine) -> str:
    return str(page_of(lines, 150, (SIZE, SIZE), 1, None)["text"])


def column(left: float, top: float, texts: Sequence[str], step: float = 18) -> list[Printed]:
    return [(left, top + step * number, text) for number, text in enumerate(texts)]


WIDE = ["Whatever is printed over the whole width of a page is read before and behind its columns."] * 6
PUMP = [
    "The pump is emptied when the season",
    "ends, and its valve stays open until",
    "spring comes. Rinse",
    "it with",
]
DOGS = [
    "Dogs stay outside of the shed, where",
    "a bowl of water is kept for them all",
    "year. Cats go where",
    "they go",
]
PUMP, DOGS = PUMP[:2] * 2 + PUMP[2:], DOGS[:2] * 2 + DOGS[2:]
FAULTS = [
    "Display shows a row of dashes only",
    "Oil pressure below four bar",
    "Gripper loses its workpiece",
    "Brake squeals",
]
CURES = [
    "Restart the controller in the hall",
    "Change the filter of the pump",
    "Clean the suction cups",
    "Run it empty",
]
FAULTS, CURES = FAULTS[:3] * 2 + FAULTS[3:], CURES[:3] * 2 + CURES[3:]


@pytest.mark.parametrize("degrees", [0, -5, 30, 90, 180])
def test_columns_between_full_width_lines_are_read_in_order(degrees: float) -> None:
    """Shows that columns are searched between full-width lines, at any page rotation."""
    printed = [
        *column(100, 100, WIDE),
        *column(100, 250, PUMP),
        *column(420, 250, DOGS),
        *column(100, 400, WIDE),
    ]
    wanted = ["\n".join(part) for part in (WIDE, PUMP, DOGS, WIDE)]
    assert text_of(*seen(printed, degrees)) == "\n\n".join(wanted)


def test_the_long_cells_of_a_table_stay_in_their_rows() -> None:
    """Shows that adjacent cells that do not continue below are rows, not columns."""
    printed = [*column(100, 250, FAULTS), *column(420, 250, CURES)]
    rows = [f"{fault}  {cure}" for fault, cure in zip(FAULTS, CURES, strict=True)]
    assert text_of(*seen(printed)) == "\n".join(rows)


def test_lines_that_are_not_level_are_columns() -> None:
    """Shows that lists next to each other which form no rows are read one after the other."""
    printed = [*column(100, 250, FAULTS), *column(420, 260, CURES, step=21)]
    assert text_of(*seen(printed)) == "\n".join(FAULTS) + "\n\n" + "\n".join(CURES)


PARTS = [
    ("1", "702-501", "Fork"),
    ("2", "AN380-4", "Cotter pin"),
    ("1", "MS353", "Washer"),
    ("2", "AK-126", "Tube"),
]
TABLE = [
    (x, 100.0 + 15 * n, cell)
    for n, row in enumerate(PARTS)
    for x, cell in zip((90, 200, 400), row, strict=True)
]


@pytest.mark.parametrize(
    ("x", "degrees", "height"), [(950, 90, 40), (30, -90, 40), (500, -40, 60)], ids=["down", "up", "stamp"]
)
def test_text_along_an_edge_or_a_stamp_does_not_affect_rows(x: float, degrees: float, height: float) -> None:
    """Shows that large text at another angle neither tilts the page nor gets into a row."""
    edge = quad(x, 500, 700, height, degrees)
    rows = "\n".join("  ".join(row) for row in PARTS)
    assert text_of(SeenLine((("REGISTER", edge),), edge, 0.99), *seen(TABLE)) == f"{rows}\n\nREGISTER"


def test_a_rotated_table_is_read_in_rows() -> None:
    """Shows that text in another direction is ordered separately."""
    upright = column(100, 600, WIDE)
    rows = "\n".join("  ".join(row) for row in PARTS)
    assert text_of(*seen(TABLE, 90), *seen(upright)) == "\n".join(WIDE) + "\n\n" + rows


def page_with(box: pymupdf.Rect, pixels: int) -> pymupdf.Document:
    """Return a page of 600 points with an image in a part of it."""
    document = pymupdf.open()
    picture = pymupdf.Pixmap(pymupdf.csGRAY, pymupdf.IRect(0, 0, pixels, pixels), False)
    picture.clear_with(90)
    document.new_page(width=600, height=600).insert_image(box, pixmap=picture)
    return document


@pytest.mark.parametrize("turn", [0, 90])
def test_an_image_is_rendered_cropped_at_its_own_resolution(turn: int) -> None:
    """Shows that a receipt on a large sheet is rendered as it was scanned."""
    document = page_with(pymupdf.Rect(400, 100, 500, 200), 1000)
    document[0].set_rotation(turn)
    part = printed_part(document, 1)
    picture, dpi = draw(document, 1, part)
    assert dpi == pytest.approx(720)
    assert picture.shape[:2] == pytest.approx((1200, 1200), abs=20)
    left, top = (390, 90) if turn == 0 else (390, 390)
    assert part[:2] == pytest.approx((left / 600 * SCALE, top / 600 * SCALE), abs=SCALE / 200)


def test_the_resolution_for_ocr_is_bounded() -> None:
    """Low-resolution images are rendered at the minimum, large ones within a limit of pixels."""
    whole = pymupdf.Rect(0, 0, 600, 600)
    assert draw(page_with(whole, 100), 1, WHOLE)[1] == MIN_DPI
    assert max(draw(page_with(whole, 5000), 1, WHOLE)[0].shape) <= 3001
