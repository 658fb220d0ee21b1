"""Frames around text are found however they are drawn; tables count once, pages and underlines do not."""

from __future__ import annotations

from typing import Any

import pymupdf
import pytest

from storage.pdf.child.frames import MAX_SHAPES, find_frames

BOX = pymupdf.Rect(72, 200, 522, 300)
RED, PALE = (0.8, 0, 0), (1, 0.95, 0.8)


def stroke(page: pymupdf.Page) -> None:
    page.draw_rect(BOX)


def shade(page: pymupdf.Page) -> None:
    page.draw_rect(BOX, color=None, fill=PALE)


def shade_line_by_line(page: pymupdf.Page) -> None:
    for top in range(200, 300, 20):
        page.draw_rect(pymupdf.Rect(72, top, 522, top + 20), color=None, fill=PALE)


def four_lines(page: pymupdf.Page) -> None:
    for start, end in ((BOX.tl, BOX.tr), (BOX.tr, BOX.br), (BOX.br, BOX.bl), (BOX.bl, BOX.tl)):
        page.draw_line(start, end)


def thin_bars(page: pymupdf.Page) -> None:
    """Draw borders as a word processor does: a filled bar for each side of each line."""
    for top in range(200, 300, 20):
        for left in (72, 521):
            page.draw_rect(pymupdf.Rect(left, top, left + 1, top + 20), color=None, fill=(0, 0, 0))
    for top in (200, 299):
        page.draw_rect(pymupdf.Rect(72, top, 522, top + 1), color=None, fill=(0, 0, 0))


def rounded(page: pymupdf.Page) -> None:
    page.draw_rect(BOX, radius=0.1)


def title_bar(page: pymupdf.Page) -> None:
    page.draw_rect(pymupdf.Rect(72, 200, 522, 220), color=None, fill=RED)
    page.draw_rect(pymupdf.Rect(72, 220, 522, 300), color=None, fill=PALE)


def cells(page: pymupdf.Page) -> None:
    for left, top, right, bottom in ((72, 200, 150, 300), (150, 200, 522, 250), (150, 250, 522, 300)):
        page.draw_rect(pymupdf.Rect(left, top, right, bottom))


def in_shaded_column(page: pymupdf.Page) -> None:
    page.draw_rect(pymupdf.Rect(60, 100, 540, 500), color=None, fill=(0.9, 0.9, 0.9))
    shade(page)


def frames_of(*draw: Any) -> set[tuple[int, ...]]:
    page = pymupdf.open().new_page()
    for one in draw:
        one(page)
    found = find_frames(page.get_cdrawings(), page.rect.height)
    return {tuple(round(side, -1) for side in frame) for frame in found}


@pytest.mark.parametrize(
    "draw",
    [stroke, shade, shade_line_by_line, four_lines, thin_bars, rounded, title_bar, cells, in_shaded_column],
)
def test_a_frame_is_found_however_it_is_drawn(draw: Any) -> None:
    """Shows one outline for many shapes, and one within a shaded area."""
    assert (70, 200, 520, 300) in frames_of(draw)


def test_a_touching_table_is_one_frame() -> None:
    assert frames_of(cells) == {(70, 200, 520, 300)}


def page_border(page: pymupdf.Page) -> None:
    page.draw_rect(pymupdf.Rect(20, 20, 575, 822))


def rules(page: pymupdf.Page) -> None:
    page.draw_line(BOX.tl, BOX.tr)
    page.draw_line(BOX.bl, BOX.br)


def invisible(page: pymupdf.Page) -> None:
    page.draw_rect(BOX, color=None, fill=(1, 1, 1))
    page.draw_rect(BOX, stroke_opacity=0)


def tick(page: pymupdf.Page) -> None:
    page.draw_rect(pymupdf.Rect(72, 200, 84, 212))


def many(page: pymupdf.Page) -> None:
    shape = page.new_shape()
    for number in range(MAX_SHAPES):
        shape.draw_rect(pymupdf.Rect(72, 200 + number / 10, 522, 300 + number / 10))
    shape.finish()
    shape.commit()


@pytest.mark.parametrize("draw", [page_border, rules, invisible, tick, many])
def test_other_drawings_are_no_frames(draw: Any) -> None:
    assert frames_of(draw) == set()
