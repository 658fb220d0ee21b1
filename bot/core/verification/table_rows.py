"""The rows of a table in a passage: which columns they have, and how a person reads them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import dropwhile, groupby, pairwise, takewhile, zip_longest

# A cell that repeats the label above it, and what stands between cells and in the rule under a header.
_ABOVE = "^^"
_BARS = re.compile(r"\|+|---|\^\^")
# A row of one cell over all columns: the name of the rows below it.
_GROUP = re.compile(r"\|[^|]+\|{2,}\s*")
# Under the row that names a table's columns.
_RULE = re.compile(r"\|(?:\s*:?-{3,}:?\s*\|)+\s*")
_TABLE = re.compile(r"(?:^\|.*(?:\n|$))+", re.MULTILINE)
_CAPTION = re.compile(
    r"\W*(?:table|tabelle|tableau|tabla|tabella|tabela|tab)\b\.?\s*[a-z]?\d.*", re.IGNORECASE
)


def cells_of(row: str) -> list[str]:
    """What stands in the cells of a row, or of a part of it, each on one line; empty ones are left out."""
    parts = groupby(row.split(), key=lambda token: _BARS.fullmatch(token) is not None)
    return [" ".join(part) for is_bar, part in parts if not is_bar]


def readable_rows(text: str, start: int, end: int) -> str:
    """The rows ``text[start:end]`` as a person reads them, a line each, the numbered caption above the first.

    ``Column: value`` where a header names the columns; else the cells with a dot between them, but none
    between a label and its value. Labels of empty fields are left out.
    """
    lines, at = [find_caption(text, start)], start
    for part in text[start:end].split("\n"):
        lines.append(_readable_row(text, at, at + len(part)))
        at += len(part) + 1
    return "\n".join(filter(None, lines))


def find_caption(text: str, at: int) -> str:
    """Return the numbered caption right above the table that holds a row; empty where there is none."""
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


def names_of_row(text: str, at: int) -> str:
    """All that names the row at an offset: its table's caption, its columns' names, its group, its label."""
    header = find_header(text, at)
    return " ".join((find_caption(text, at), text[slice(*header)] if header else "", *labels_above(text, at)))


def labels_above(text: str, at: int) -> tuple[str, str]:
    """Names that the row at an offset stands under: its group's, and the label it repeats; '' for none."""
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
    """Return the cells without labels that no value follows."""
    return [
        cell
        for cell, after in pairwise([*cells, ""])
        if not (cell.endswith(":") and (not after or after.endswith(":")))
    ]


def _all_cells(row: str) -> list[str]:
    inside = row.strip().removeprefix("|").removesuffix("|")
    return [" ".join(cell.split()) for cell in inside.split("|")]


def _row_at(text: str, at: int) -> str:
    """Return the whole line that an offset stands in."""
    return text[text.rfind("\n", 0, at) + 1 :].partition("\n")[0]


def _table_above(text: str, at: int) -> list[str]:
    """Return the rows of a table above the one at an offset, the nearest first."""
    return list(takewhile(lambda line: line.startswith("|"), reversed(text[:at].split("\n")[:-1])))


def find_header(text: str, at: int) -> tuple[int, int] | None:
    """(start, end) of the row that names the columns of the row at an offset: a rule stands under it."""
    above = text[:at].split("\n")[:-1]
    table = _table_above(text, at)
    if len(table) < 2 or not _RULE.fullmatch(table[-2]):
        return None
    start = sum(len(line) + 1 for line in above[: len(above) - len(table)])
    return start, start + len(table[-1])


def find_table(text: str, at: int, most_rows: int) -> tuple[int, int] | None:
    """(start, end) of the table that holds an offset, or of the nearest one; None where there is none.

    Args:
        text: a passage.
        at: an offset in it, as of a row or of a caption.
        most_rows: rows of a long table that are taken, its header beside them.
    """
    found = list(_TABLE.finditer(text))
    if not found:
        return None
    table = next((one for one in found if at < one.end()), found[-1])
    rows = table[0].rstrip("\n").split("\n")[: most_rows + 2]
    return table.start(), table.start() + len("\n".join(rows))
