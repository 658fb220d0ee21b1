"""Tables: labelled cells in the right places, and invented tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

from tools.bench.reading.findings import Findings, Rows, normalised
from tools.bench.reading.labels import Pages
from tools.bench.reading.tally import Tally

# Allowed shifts of a whole table in rows and columns: a caption taken for its first row moves no cell.
SHIFTS = tuple(sorted(product(range(-3, 4), range(-2, 3)), key=lambda shift: abs(shift[0]) + abs(shift[1])))

Cells = dict[tuple[int, int], str]


def count_tables(labels: Mapping[str, Pages], seen: Mapping[str, Findings]) -> Tally:
    """Count ``right`` of ``asked`` cells (without empty ones), and ``invented`` tables."""
    tally = Tally()
    for name, pages in labels.items():
        for page, asked in pages.items():
            found = [_cells(rows) for rows in seen[name].tables.get(int(page), ())]
            _count_page(tally, f"{name} p. {page}", [_cells(rows) for rows in asked], found)
    return tally


def _count_page(tally: Tally, where: str, asked: Sequence[Cells], found: list[Cells]) -> None:
    """Match each labelled table with the best found one, best pairs first, and count."""
    pairs = sorted(
        ((len(_right(one, other)), i, j) for i, one in enumerate(asked) for j, other in enumerate(found)),
        reverse=True,
    )
    matched: dict[int, int] = {}
    for count, i, j in pairs:
        if count and i not in matched and j not in matched.values():
            matched[i] = j
    for i, cells in enumerate(asked):
        right = _right(cells, found[matched[i]]) if i in matched else set()
        tally.counts["asked"] += len(cells)
        tally.counts["right"] += len(right)
        tally.wrong += [f"{where}, table {i + 1}: {_missed(place, cells)}" for place in cells.keys() - right]
    invented = [cells for j, cells in enumerate(found) if j not in matched.values()]
    tally.counts["invented"] += len(invented)
    tally.wrong += [f"{where}: invented a table {' | '.join(cells.values())[:90]!r}" for cells in invented]


def _missed(place: tuple[int, int], cells: Cells) -> str:
    return f"row {place[0] + 1}, column {place[1] + 1}: {cells[place][:70]!r}"


def _cells(rows: Rows) -> Cells:
    """Return (row, column) -> text of the non-empty cells."""
    return {
        (row, column): text
        for row, cells in enumerate(rows)
        for column, cell in enumerate(cells)
        if cell and (text := normalised(cell))
    }


def _right(asked: Cells, found: Cells) -> set[tuple[int, int]]:
    """Return the labelled cells in their places in a found table, at its best shift as a whole."""
    best: set[tuple[int, int]] = set()
    for down, along in SHIFTS:
        right = {
            place for place, text in asked.items() if found.get((place[0] + down, place[1] + along)) == text
        }
        best = max(best, right, key=len)
    return best
