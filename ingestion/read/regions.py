"""Corrects what the layout program said of a page by what is known of its lines.

It takes a picture under text for a figure, and two tables with a heading between them for one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from ingestion.read.outline import LARGER
from storage.models import Box, Page
from storage.pdf.models import BlockKind, Line, Region

LARGEST_FIGURE_SHARE = 0.4
"""What is called a figure and holds more of the page's words than this is text on a background."""


def corrected(page: Page, lines: Sequence[Line], regions: Sequence[Region]) -> list[Region]:
    """The regions of a page, in reading order."""
    most = LARGEST_FIGURE_SHARE * len(page.words)
    boxes = [word.box for word in page.words]
    found: list[Region] = []
    for region in regions:
        if region.kind is BlockKind.FIGURE and sum(is_middle_in(box, region.box) for box in boxes) > most:
            continue
        found += _parted(region, lines) if region.kind is BlockKind.TABLE else [region]
    return found


def is_middle_in(box: Box, outer: Box) -> bool:
    """Whether the middle of a box lies in another one."""
    x, y = (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2
    return outer.x0 <= x <= outer.x1 and outer.y0 <= y <= outer.y1


def _parted(table: Region, lines: Sequence[Line]) -> Iterator[Region]:
    """A table, or the tables above and below the headings that stand in it."""
    own = [line for line in lines if is_middle_in(line.box, table.box)]
    top = table.box.y0
    for heading in sorted(_headings(own), key=lambda line: line.box.y0):
        yield from _slice(table, top, heading.box.y0)
        yield Region(BlockKind.HEADING, heading.box)
        top = heading.box.y1
    yield from _slice(table, top, table.box.y1)


def _headings(lines: Sequence[Line]) -> list[Line]:
    """Bold lines, larger than the table's others, with nothing beside them."""
    if not lines:
        return []
    size = median(line.size for line in lines) * LARGER
    large = [line for line in lines if line.is_bold and line.size >= size]
    return [line for line in large if not any(_is_beside(line, other) for other in lines)]


def _is_beside(line: Line, other: Line) -> bool:
    return other is not line and other.box.y0 < (line.box.y0 + line.box.y1) / 2 < other.box.y1


def _slice(table: Region, top: float, bottom: float) -> Iterator[Region]:
    """The rows whose middle lies between two heights; a row that a heading crosses belongs below it."""
    if (top, bottom) == (table.box.y0, table.box.y1):
        yield table
        return
    cells = tuple(row for row in table.cells if any(box and top < (box.y0 + box.y1) / 2 for box in row))
    cells = tuple(row for row in cells if all(not box or box.y0 < bottom for box in row))
    if cells:
        yield Region(BlockKind.TABLE, table.box._replace(y0=top, y1=bottom), cells)
