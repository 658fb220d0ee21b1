"""Row labels of a table: names of row groups, and labels printed once for several rows.

Written as in MultiMarkdown: ``|||`` ends a cell that spans all columns, ``^^`` repeats the cell above.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingestion.layout.table_headers import Texts

ABOVE = "^^"

# From this many columns, a row with one cell in plain print names a group; of two, one cell may be blank.
MIN_COLUMNS = 3

# Minimum labels with blank cells below them; a single one may be next to a total.
MIN_LABELS = 2


def find_groups(rows: Sequence[Texts], bold: Sequence[bool], *, has_header: bool) -> frozenset[int]:
    """Return the indices of the rows that name the group of the rows below.

    Args:
        rows, bold: as in ``table_headers.is_header``.
        has_header: the first row names the columns.
    """
    alone = [
        n for n in range(has_header, len(rows) - 1) if _is_name(rows[n]) and sum(map(bool, rows[n + 1])) > 1
    ]
    printed = [n for n in alone if bold[n] and not bold[n + 1]]
    # In plain print, rows before the first name would have no group: then it is just a row with gaps.
    is_plain = not printed and len(rows[0]) >= MIN_COLUMNS and has_header and alone[:1] == [1]
    others = [row for n, row in enumerate(rows) if n not in alone]
    return frozenset(alone if is_plain and all(map(all, others)) else printed)


def _is_name(row: Texts) -> bool:
    first, *others = row
    return bool(first) and not any(others) and not first[0].islower() and first[-1] not in ".:;,"


def find_repeats(rows: Sequence[Texts], groups: frozenset[int], *, has_header: bool) -> dict[int, int]:
    """Return row -> row with its label, for each row whose first cell repeats a label."""
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
