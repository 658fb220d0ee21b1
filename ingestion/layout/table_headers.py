"""Header detection of a table: a header looks different from the rows, or names the values below it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

# Columns in which a header must differ from the rows: a table of two columns may begin with any pair.
MIN_DIFFERING, MIN_COLUMNS = 2, 3

# Fraction of a column's cells that must be of one kind.
MOST = 0.6

# Ratio of the header's font size to the smallest one of the rows.
LARGER = 1.1

_NUMBER = re.compile(r"\d(?:[\d.,'\u2019\u202f\xa0]*\d)?")
_VALUE = re.compile(r"[\W_]*(?:[A-Z]{1,3}\W{0,2})?\d")
_SENTENCE = re.compile(r".+\s.+\s.+[.!?]")
_YEAR = re.compile(r"(?:19|20)\d\d(?:[/\u2013-]\d{2,4})?")

Texts = Sequence[str]


def find_headers(rows: Sequence[Texts], *, bold: Sequence[bool], sizes: Sequence[float]) -> list[int]:
    """Return the indices of header rows; arguments as in ``is_header``.

    Tables close to each other are detected as one. Below the first row, only bold print marks a header.
    """
    found = [0] if is_header(rows, bold=bold, sizes=sizes) else []
    return found + [
        number
        for number in range(2, len(rows) - 1)
        if bold[number] and not bold[number - 1] and _names_all(rows[number:])
        if is_header(rows[number:], bold=bold[number:], sizes=sizes[number:])
    ]


def _names_all(rows: Sequence[Texts]) -> bool:
    """True if the first row has a cell wherever the next one has."""
    return all(name or not cell for name, cell in zip(*rows[:2], strict=True))


def is_header(rows: Sequence[Texts], *, bold: Sequence[bool], sizes: Sequence[float]) -> bool:
    """True if the first row names the columns.

    Args:
        rows: cell texts of each row, all of the same length; '' for an empty cell.
        bold: for each row, whether all of it is bold.
        sizes: for each row, its font size.
    """
    first, others = rows[0], [row for row in rows[1:] if row != rows[0]]
    if sum(map(bool, first)) < 2 or not others:
        return False
    columns = [(cell, list(filter(None, own))) for cell, *own in zip(first, *others, strict=True) if cell]
    if any(_is_one_of(cell, own) for cell, own in columns):
        return False
    is_larger = [size >= LARGER * min(sizes) for size in sizes]
    capitals = ["".join(row).isupper() for row in rows]
    is_set_apart = any(_is_alone(sign) for sign in (bold, is_larger, capitals))
    has_corner = not first[0] and all(row[0] for row in others)
    differing = sum(_differs(cell, own) for cell, own in columns)
    return (
        is_set_apart
        or has_corner
        or differing >= MIN_DIFFERING
        or (differing > 0 and len(first) >= MIN_COLUMNS)
    )


def _is_alone(sign: Sequence[bool]) -> bool:
    """True if the first row has a property that most of the others lack."""
    return sign[0] and sum(sign) - 1 < len(sign) / 2


def _is_one_of(cell: str, others: Texts) -> bool:
    """True if a cell is a value like those below it, or equal to one of them."""
    shape, (usual, _) = _shape(cell), _usual_shape(others)
    is_value = _VALUE.match(cell) is not None and not _is_year_above(cell, others)
    return cell in others or shape == usual != cell or (is_value and _are_values(others))


def _differs(cell: str, others: Texts) -> bool:
    """True if a cell names the values or sentences below it, which are all of one kind."""
    _, count = _usual_shape(others)
    is_name = not (_VALUE.match(cell) or _SENTENCE.fullmatch(cell) or cell[0].islower())
    are_alike = count >= MOST * len(others) and _are_values(others)
    are_sentences = sum(_SENTENCE.fullmatch(other) is not None for other in others) >= MOST * len(others)
    return len(others) > 1 and (are_alike or are_sentences) and (is_name or _is_year_above(cell, others))


def _is_year_above(cell: str, others: Texts) -> bool:
    return _YEAR.fullmatch(cell) is not None and not any(map(_YEAR.fullmatch, others))


def _are_values(cells: Texts) -> bool:
    return sum(_VALUE.match(cell) is not None for cell in cells) > MOST * len(cells)


def _usual_shape(cells: Texts) -> tuple[str, int]:
    """Return the most common shape of the cells, and its count."""
    return Counter(map(_shape, cells)).most_common(1)[0] if cells else ("", 0)


def _shape(cell: str) -> str:
    """Return a cell with its numbers masked: ``18.50 EUR`` is like ``1,204 EUR``, a year like a year."""
    return "year" if _YEAR.fullmatch(cell) else _NUMBER.sub("9", cell)
