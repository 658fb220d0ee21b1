"""Figures: labelled ones that were found, and decoration among the found ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tools.bench.reading.findings import Area, Findings
from tools.bench.reading.labels import Pages
from tools.bench.reading.tally import Tally

# Minimum intersection over union (IoU) of a labelled and a found figure.
LIKE = 0.6


def count_figures(labels: Mapping[str, Pages], seen: Mapping[str, Findings]) -> Tally:
    """Count ``right`` of ``asked`` figures, and ``decoration`` among the ``found`` ones."""
    tally = Tally()
    for name, pages in labels.items():
        for page, figures in pages.items():
            found = seen[name].figures.get(int(page), ())
            asked = [Area(*one["box"]) for one in figures if not one.get("doubtful")]
            real = [Area(*one["box"]) for one in figures]
            _count_page(tally, f"{name} p. {page}", asked, real, found)
    return tally


def _count_page(
    tally: Tally, where: str, asked: Sequence[Area], real: Sequence[Area], found: Sequence[Area]
) -> None:
    left = list(found)
    for box in asked:
        tally.counts["asked"] += 1
        like = max(left, key=box.iou, default=None)
        if like and box.iou(like) >= LIKE:
            left.remove(like)
            tally.counts["right"] += 1
        else:
            tally.wrong.append(f"{where}: missed the figure {_shown(box)}")
    decoration = [box for box in found if sum(map(box.shared, real)) < box.size / 2 or not box.size]
    tally.counts["found"] += len(found)
    tally.counts["decoration"] += len(decoration)
    tally.wrong += [f"{where}: took decoration for a figure {_shown(box)}" for box in decoration]


def _shown(box: Area) -> str:
    return f"[{', '.join(f'{side:.2f}' for side in box)}]"
