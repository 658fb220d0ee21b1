"""Report with one figure of each kind: bar chart, line chart, raster chart, boxes without a caption."""

from __future__ import annotations

from random import Random
from typing import Any

import pymupdf

from tools.bench.papers import charts
from tools.bench.papers.pictures import decorate, logo
from tools.bench.papers.sheet import BOLD, MARGIN, WIDTH, Paper, fractions, label, wrapped, write

INNER = WIDTH - 2 * MARGIN
SITES = (("Oslo", 40), ("Bergen", 75), ("Narvik", 25), ("Bodo", 60))

SECTIONS = (
    (
        "Emissions",
        "The company emits less carbon every year since the boilers were replaced. "
        "Figure 1 shows how the emissions fell. The board reads the report in spring.",
        "Figure 1. Emissions of carbon dioxide by year",
    ),
    (
        "Water",
        "The laundry uses most of the water. Its tanks are filled at night and cleaned on Mondays.",
        "Figure 2. Water use by month",
    ),
    (
        "Waste",
        "Each site weighs its own waste. Glass is collected on Fridays by a contractor.",
        "Figure 3. Rubbish by site",
    ),
    (
        "Incidents",
        "Employees report every incident within two days. An auditor reviews the incidents in March.",
        "",
    ),
)


def illustrated() -> Paper:
    """Return the report; ``figures`` has the box and caption of each drawing."""
    paper, corner = Paper("illustrated"), logo()
    for number, (heading, text, caption) in enumerate(SECTIONS):
        page = paper.new_page()
        decorate(page, title="Green Report 2023", number=number + 1, style=0, corner=corner)
        y = write(page, MARGIN, 84, [f"{number + 1}. {heading}"], size=14, font=BOLD) + 6
        y = write(page, MARGIN, y, wrapped(text, INNER)) + 20
        room = pymupdf.Rect(MARGIN, y, MARGIN + 380, y + 180)
        drawn = DRAWINGS[number](page, room, Random(number))
        label(page, MARGIN, room.y1 + 16, caption, size=9)
        paper.figures[paper.page] = [{"box": fractions(drawn), "caption": caption}]
        write(page, MARGIN, room.y1 + 40, wrapped(f"The chapter on {heading.lower()} ends here.", INNER))
    return paper


def _pixels(page: Any, box: Any, random: Random) -> Any:
    """Draw a horizontal bar chart as an image, so that none of its labels is text."""
    with pymupdf.open() as drawing:
        canvas = drawing.new_page(width=box.width, height=box.height)
        for number, (site, tons) in enumerate(SITES):
            y = 20 + 40 * number
            canvas.draw_rect((90, y, 90 + 3 * tons, y + 22), color=None, fill=charts.PALETTE[number])
            label(canvas, 10, y + 16, site, size=14)
            label(canvas, 98 + 3 * tons, y + 16, f"{tons} tons", size=14)
        page.insert_image(box, pixmap=canvas.get_pixmap(dpi=150))
    return box


DRAWINGS: tuple[charts.Draw, ...] = (charts.bars, charts.curves, _pixels, charts.flow)
