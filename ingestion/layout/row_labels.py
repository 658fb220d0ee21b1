"""Finds what a table's rows stand under: the name of their group, and labels printed once for several rows.

MultiMarkdown says both: a cell over all columns ends in ``|||``, and ``^^`` stands for the cell above.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingestion.layout.table_headers import Texts

ABOVE = "^^"

# Columns from which on a row with one cell names a group in plain print, too: of two, one may be blank.
MIN_COLUMNS = 3

# Labels with blank cells below them that make these cells repeat a label: one may stand by a total.
MIN_LABELS = 2


def find_groups(rows: Sequence[Texts], bold: Sequence[bool], *, has_header: bool) -> frozenset[int]:
    """Numbers of the rows that name the group of those below.

    Args:
        rows, bold: as of ``table_headers.is_header``.
        has_header: the first row names the columns.
    """
    alone = [
        n for n in range(has_header, len(rows) - 1) if _is_name(rows[n]) and sum(map(bool, rows[n + 1])) > 1
    ]
    printed = [n for n in alone if bold[n] and not bold[n + 1]]
    # Plain print: rows before the first name would stand in no group, so it is a row with gaps.
    is_plain = not printed and len(rows[0]) >= MIN_COLUMNS and has_header and alone[:1] == [1]
    others = [row for n, row in enumerate(rows) if n not in alone]
    return frozenset(alone if is_plain and all(map(all, others)) else printed)


def _is_name(row: Texts) -> bool:
    first, *others = row
    return bool(first) and not any(others) and not first[0].islower() and first[-1] not in ".:;,"


def find_repeats(rows: Sequence[Texts], groups: frozenset[int], *, has_header: bool) -> dict[int, int]:
    """For each row whose first cell repeats a label, the row where that is printed."""
    labels: dict[int, int] = {}
    label: int | None = None
    for number, row in enumerate(rows):
        if number in groups or (number == 0 and has_header):
            label = None
        elif row[0]:
            label = number
        elif label is not None and [bool(cell) for cell in row[1:]] == [
            bool(cell) for cell in rows[label][1:]
        ]:
            labels[number] = label
        else:
            return {}
    return labels if len(set(labels.values())) >= MIN_LABELS else {}
