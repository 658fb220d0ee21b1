"""Table rows in a passage: their column names, and their form for display."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import dropwhile, groupby, pairwise, takewhile, zip_longest

# Content of a cell that repeats the label above it; separators of cells and below a header.
_ABOVE = "^^"
_BARS = re.compile(r"\|+|---|\^\^")
# A row of one cell across all columns: the name of the rows below it.
_GROUP = re.compile(r"\|[^|]+\|{2,}\s*")
# Rule below a table's header row.
_RULE = re.compile(r"\|(?:\s*:?-{3,}:?\s*\|)+\s*")
_TABLE = re.compile(r"(?:^\|.*(?:\n|$))+", re.MULTILINE)
_CAPTION = re.compile(
    r"\W*(?:table|tabelle|tableau|tabla|tabella|tabela|tab)\b\.?\s*[a-z]?\d.*", re.IGNORECASE
)


def cells_of(row: str) -> list[str]:
    """Return the non-empty cells of a row, or of a part of it, each on one line."""
    parts = groupby(row.split(), key=lambda token: _BARS.fullmatch(token) is not None)
    return [" ".join(part) for is_bar, part in parts if not is_bar]


def readable_rows(text: str, start: int, end: int) -> str:
    """Return the rows ``text[start:end]`` for display, a line each, below the numbered caption of the table.

    ``Column: value`` if a header names the columns; else the cells separated by dots, but none between a
    label and its value. Labels of empty fields are left out.
    """
    lines, at = [find_caption(text, start)], start
    for part in text[start:end].split("\n"):
        lines.append(_readable_row(text, at, at + len(part)))
        at += len(part) + 1
    return "\n".join(filter(None, lines))


def find_caption(text: str, at: int) -> str:
    """Return the numbered caption directly above the table that contains a row; '' if there is none."""
    above = text[:at].split("\n")[:-1]
    outside = dropwhile(lambda line: line.startswith("|") or not line.strip(), reversed(above))
    line = " ".join(next(outside, "").split())
    return line if is_caption(line) else ""


def is_caption(line: str) -> bool:
    """True if a line is a table's numbered caption."""
    return _CAPTION.fullmatch(line) is not None


def _readable_row(text: str, start: int, end: int) -> str:
    below = text[end:].removeprefix("\n").partition("\n")[0]
    if _RULE.fullmatch(text[start:end]) or _RULE.fullmatch(below):
        return "" if find_header(text, end + len(below) + 2) else _cells_in_a_line(text[start:end])
    group, label = labels_above(text, start)
    row, header = _row_at(text, start), find_header(text, start)
    if header is None or _GROUP.fullmatch(row):
        return " · ".join(filter(None, (group, label, _cells_in_a_line(text[start:end]))))
    values = _all_cells(row)
    pairs = zip_longest(_all_cells(text[slice(*header)]), [label or values[0], *values[1:]], fillvalue="")
    shown = [f"{name.rstrip(':')}: {value}" if name else value for name, value in pairs if value]
    return " · ".join(filter(None, (group, *shown)))


def is_table_row(text: str, at: int) -> bool:
    """True if an offset is in the row of a table."""
    return _row_at(text, at).startswith("|")


def names_of_row(text: str, at: int) -> str:
    """Return the names of the row at an offset: its table's caption, column names, group and label."""
    header = find_header(text, at)
    return " ".join((find_caption(text, at), text[slice(*header)] if header else "", *labels_above(text, at)))


def labels_above(text: str, at: int) -> tuple[str, str]:
    """Return (name of the group, repeated label) of the row at an offset; '' for none."""
    row = _row_at(text, at)
    if not row.startswith("|") or _GROUP.fullmatch(row):
        return "", ""
    above = _table_above(text, at)
    group = next((cells_of(line)[0] for line in above if _GROUP.fullmatch(line)), "")
    is_repeated = _all_cells(row)[0] == _ABOVE
    labels = (_all_cells(line)[0] for line in above if is_repeated)
    return group, next((label for label in labels if label != _ABOVE), "")


def _cells_in_a_line(row: str) -> str:
    cells = cells_of(row)
    return " · ".join(_filled(cells) or cells).replace(": · ", ": ")


def _filled(cells: Sequence[str]) -> list[str]:
    """Return the cells without labels that have no value."""
    return [
        cell
        for cell, after in pairwise([*cells, ""])
        if not (cell.endswith(":") and (not after or after.endswith(":")))
    ]


def _all_cells(row: str) -> list[str]:
    inside = row.strip().removeprefix("|").removesuffix("|")
    return [" ".join(cell.split()) for cell in inside.split("|")]


def _row_at(text: str, at: int) -> str:
    """Return the whole line at an offset."""
    return text[text.rfind("\n", 0, at) + 1 :].partition("\n")[0]


def _table_above(text: str, at: int) -> list[str]:
    """Return the table rows above the one at an offset, nearest first."""
    return list(takewhile(lambda line: line.startswith("|"), reversed(text[:at].split("\n")[:-1])))


def find_header(text: str, at: int) -> tuple[int, int] | None:
    """Return (start, end) of the header above the row at an offset; None without one (a rule follows it)."""
    above = text[:at].split("\n")[:-1]
    table = _table_above(text, at)
    if len(table) < 2 or not _RULE.fullmatch(table[-2]):
        return None
    start = sum(len(line) + 1 for line in above[: len(above) - len(table)])
    return start, start + len(table[-1])


def find_table(text: str, at: int, most_rows: int) -> tuple[int, int] | None:
    """Return (start, end) of the table that contains an offset, or of the nearest one; None without tables.

    Args:
        text: a passage.
        at: an offset in it, e.g. of a row or a caption.
        most_rows: maximum rows of a long table, header excluded.
    """
    found = list(_TABLE.finditer(text))
    if not found:
        return None
    table = next((one for one in found if at < one.end()), found[-1])
    rows = table[0].rstrip("\n").split("\n")[: most_rows + 2]
    return table.start(), table.start() + len("\n".join(rows))
