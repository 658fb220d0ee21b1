"""The rows of a table in a passage: which columns they have, and how a person reads them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import dropwhile, groupby, pairwise, takewhile, zip_longest

_BARS = {"|", "---"}
"""Between two cells, and part of the rule under a header."""
_RULE = re.compile(r"\|(?:\s*:?-{3,}:?\s*\|)+\s*")
"""Under the row that names a table's columns."""
_TABLE = re.compile(r"(?:^\|.*(?:\n|$))+", re.MULTILINE)
_CAPTION = re.compile(
    r"\W*(?:table|tabelle|tableau|tabla|tabella|tabela|tab)\b\.?\s*[a-z]?\d.*", re.IGNORECASE
)


def cells_of(row: str) -> list[str]:
    """What stands in the cells of a row, or of a part of it, each on one line; empty ones are left out."""
    parts = groupby(row.split(), key=lambda token: token in _BARS)
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
    """The numbered caption right above the table that holds a row; empty where there is none."""
    above = text[:at].split("\n")[:-1]
    outside = dropwhile(lambda line: line.startswith("|") or not line.strip(), reversed(above))
    line = " ".join(next(outside, "").split())
    return line if is_caption(line) else ""


def is_caption(line: str) -> bool:
    """Whether a line is a table's numbered caption."""
    return _CAPTION.fullmatch(line) is not None


def _readable_row(text: str, start: int, end: int) -> str:
    below = text[end:].removeprefix("\n").partition("\n")[0]
    if _RULE.fullmatch(text[start:end]) or _RULE.fullmatch(below):
        return "" if find_header(text, end + len(below) + 2) else _cells_in_a_line(text[start:end])
    if (header := find_header(text, start)) is None:
        return _cells_in_a_line(text[start:end])
    first, last = text.rfind("\n", 0, start) + 1, text.find("\n", end)
    values = _all_cells(text[first : last if last >= 0 else None])
    pairs = zip_longest(_all_cells(text[slice(*header)]), values, fillvalue="")
    return " · ".join(f"{name.rstrip(':')}: {value}" if name else value for name, value in pairs if value)


def _cells_in_a_line(row: str) -> str:
    cells = cells_of(row)
    return " · ".join(_filled(cells) or cells).replace(": · ", ": ")


def _filled(cells: Sequence[str]) -> list[str]:
    """The cells without labels that no value follows."""
    return [
        cell
        for cell, after in pairwise([*cells, ""])
        if not (cell.endswith(":") and (not after or after.endswith(":")))
    ]


def _all_cells(row: str) -> list[str]:
    inside = row.strip().removeprefix("|").removesuffix("|")
    return [" ".join(cell.split()) for cell in inside.split("|")]


def find_header(text: str, at: int) -> tuple[int, int] | None:
    """(start, end) of the row that names the columns of the row at an offset: a rule stands under it."""
    above = text[:at].split("\n")[:-1]
    table = list(takewhile(lambda line: line.startswith("|"), reversed(above)))
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
