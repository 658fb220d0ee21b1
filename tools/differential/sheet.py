"""Sheets of crops around differing tokens, so that a person can decide which reader is right."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import pypdfium2
from PIL import Image, ImageDraw, ImageFont

from storage.models import Page
from storage.text.word_boxes import bounding_boxes
from tools.differential.readers import ComparedPage
from tools.differential.tokens import DASH, Difference, Kind, flat

SCALE = 2
ACROSS, DOWN = 260, 26  # pixels around a token in a crop: its line and the neighbouring ones
LABEL_WIDTH, WIDTH = 430, 1400
ROWS = 16  # per sheet: what fits on a screen

PixelBox = tuple[int, int, int, int]


def write_sheets(pages: Sequence[ComparedPage], folder: Path) -> list[Path]:
    """Write one PNG per ROWS differing tokens; return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    rows, sheets = _rows(pages), []
    while some := list(islice(rows, ROWS)):
        sheet = Image.new("RGB", (WIDTH, sum(row.height for row in some)))
        top = 0
        for row in some:
            sheet.paste(row, (0, top))
            top += row.height
        sheets.append(folder / f"sheet-{len(sheets) + 1:03}.png")
        sheet.save(sheets[-1])
    return sheets


def _rows(pages: Sequence[ComparedPage]) -> Iterator[Image.Image]:
    for compared in pages:
        listed = Counter(one for one in compared.found.numbers if one.kind is not Kind.RAISED)
        if listed:
            with pypdfium2.PdfDocument(compared.path) as document:
                picture = PagePicture(document[compared.page.number - 1], compared.page)
                for difference, count in listed.items():
                    place = f"{compared.name}\npage {compared.page.number}"
                    times = f" ({count} times)" if count > 1 else ""
                    label = f"{place}\n{difference.kind}: {difference.token}{times}"
                    yield _row(label, picture.crop(difference))


def _row(label: str, picture: Image.Image | None) -> Image.Image:
    if picture is not None:
        picture.thumbnail((WIDTH - LABEL_WIDTH, 300))
    row = Image.new("RGB", (WIDTH, max(70, picture.height if picture else 0) + 8), "white")
    text = label.encode("latin-1", "backslashreplace").decode("latin-1")  # limited to what the font has
    ImageDraw.Draw(row).text((6, 4), text, fill="black", font=ImageFont.load_default(15))
    if picture is not None:
        row.paste(picture, (LABEL_WIDTH, 4))
    return row


class PagePicture:
    """A page drawn by pypdfium2, in which tokens of either reading are located."""

    def __init__(self, source: pypdfium2.PdfPage, page: Page) -> None:
        bitmap = source.render(scale=SCALE)
        self._image: Image.Image = bitmap.to_pil().convert("RGB")
        self._conversion = bitmap.get_posconv(source)
        self._text = source.get_textpage()
        self._page = page

    def crop(self, difference: Difference) -> Image.Image | None:
        """Return a crop around a token, preferably where only one side has it; None if it is not found."""
        own, theirs = self._own_places(difference.token), self._their_places(difference.token)
        here, there = (own, theirs) if difference.kind is Kind.ALONE else (theirs, own)
        lonely = [box for box in here if not any(_overlap(box, other) for other in there)]
        page = (0, 0, *self._image.size)
        places = [box for box in lonely or here or there if _overlap(box, page)]
        if not places:
            return None
        left, top, right, bottom = places[0]
        picture = self._image.copy()
        ImageDraw.Draw(picture).rectangle((left - 3, top - 3, right + 3, bottom + 3), outline="red", width=2)
        sides = (max(0, left - ACROSS), max(0, top - DOWN), min(picture.width, right + ACROSS))
        return picture.crop((*sides, min(picture.height, bottom + DOWN)))

    def _own_places(self, token: str) -> list[PixelBox]:
        width, height = self._image.size
        edge = r"(?<!\w)" if token[0].isalnum() else ""
        pattern = edge + re.escape(token).replace(r"\-", DASH.pattern) + r"(?!\w)"
        places = []
        for found in re.finditer(pattern, self._page.text):
            x0, y0, x1, y1 = bounding_boxes(self._page.words, *found.span())[self._page.number][0]
            places.append((round(x0 * width), round(y0 * height), round(x1 * width), round(y1 * height)))
        return places

    def _their_places(self, token: str) -> list[PixelBox]:
        search, places = self._text.search(flat(token), match_case=True, match_whole_word=True), []
        while found := search.get_next():
            first, count = found
            boxes = [self._pixels(*self._text.get_charbox(first + step)) for step in range(count)]
            lefts, tops, rights, bottoms = zip(*boxes, strict=True)
            places.append((min(lefts), min(tops), max(rights), max(bottoms)))
        return places

    def _pixels(self, left: float, bottom: float, right: float, top: float) -> PixelBox:
        x0, y0 = self._conversion.to_bitmap(left, top)
        x1, y1 = self._conversion.to_bitmap(right, bottom)
        return min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)


def _overlap(one: PixelBox, other: PixelBox) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
