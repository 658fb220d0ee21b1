"""Corrections of the layout model's output, based on the page's lines.

The model calls a picture behind text a figure, and merges two tables with a heading between them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Sequence
from statistics import median

from ingestion.layout.headings import MIN_SIZE_RATIO
from storage.models import Box, Page
from storage.pdf.models import BlockKind, Layout, Line, Region

# A figure with more than this fraction of the page's words is text on a background.
MAX_FIGURE_SHARE = 0.4

# Fractions of the page's area and sides: smallest figure that is content, and logos at the edges of page 1.
MIN_FIGURE, MIN_SIDE, MAX_LOGO, LOGO_EDGE = 0.015, 0.05, 0.06, 0.1
# A picture at the same position on this many pages is a logo.
MIN_REPEATED, REPEATED_SHARE = 3, 0.2


def repeated_figures(layout: Layout) -> frozenset[Box]:
    """Return the boxes of pictures that recur at the same position: logos and ornaments."""
    places = Counter(
        _roughly(region.box)
        for regions in layout.pages.values()
        for region in regions
        if region.kind is BlockKind.FIGURE
    )
    least = max(MIN_REPEATED, REPEATED_SHARE * len(layout.pages))
    return frozenset(place for place, count in places.items() if count >= least)


def _roughly(box: Box) -> Box:
    return Box(*(round(side, 2) for side in box))


def correct_regions(
    page: Page, lines: Sequence[Line], regions: Sequence[Region], repeated: Container[Box] = ()
) -> list[Region]:
    """Return the corrected regions of a page in reading order; ``repeated``: logos of the document."""
    most = MAX_FIGURE_SHARE * len(page.words)
    boxes = [word.box for word in page.words]
    found: list[Region] = []
    for region in regions:
        if region.kind is BlockKind.TABLE:
            found += _split_at_headings(region, lines)
        elif region.kind is not BlockKind.FIGURE or not (
            _is_decoration(page, region.box, repeated)
            or sum(is_middle_in(box, region.box) for box in boxes) > most
        ):
            found.append(region)
    return found


def _is_decoration(page: Page, figure: Box, repeated: Container[Box]) -> bool:
    """True for a logo or ornament: tiny, repeated on other pages, or small at the edge of page 1."""
    width, height = figure.x1 - figure.x0, figure.y1 - figure.y0
    is_small = width * height < MIN_FIGURE or min(width, height) < MIN_SIDE
    is_at_edge = figure.y0 < LOGO_EDGE or figure.y1 > 1 - LOGO_EDGE
    is_logo = page.number == 1 and is_at_edge and width * height < MAX_LOGO
    return is_small or is_logo or _roughly(figure) in repeated


def is_middle_in(box: Box, outer: Box) -> bool:
    """True if the centre of a box lies in the outer one."""
    x, y = (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2
    return outer.x0 <= x <= outer.x1 and outer.y0 <= y <= outer.y1


def _split_at_headings(table: Region, lines: Sequence[Line]) -> Iterator[Region]:
    """Yield a table, split at the headings inside it."""
    own = [line for line in lines if is_middle_in(line.box, table.box)]
    top = table.box.y0
    for heading in sorted(_headings(own), key=lambda line: line.box.y0):
        yield from _slice(table, top, heading.box.y0)
        yield Region(BlockKind.HEADING, heading.box)
        top = heading.box.y1
    yield from _slice(table, top, table.box.y1)


def _headings(lines: Sequence[Line]) -> list[Line]:
    """Return bold lines that are larger than the table's text and stand alone in their row."""
    if not lines:
        return []
    size = median(line.size for line in lines) * MIN_SIZE_RATIO
    found = []
    for line in lines:
        middle = (line.box.y0 + line.box.y1) / 2
        beside = [one for one in lines if one is not line and one.box.y0 < middle < one.box.y1]
        if line.is_bold and line.size >= size and not beside:
            found.append(line)
    return found


def _slice(table: Region, top: float, bottom: float) -> Iterator[Region]:
    """Yield the rows with their centre between two heights; a row that crosses a heading belongs below it."""
    if (top, bottom) == (table.box.y0, table.box.y1):
        yield table
        return
    cells = tuple(row for row in table.cells if any(box and top < (box.y0 + box.y1) / 2 for box in row))
    cells = tuple(row for row in cells if all(not box or box.y0 < bottom for box in row))
    if cells:
        yield Region(BlockKind.TABLE, table.box._replace(y0=top, y1=bottom), cells)
