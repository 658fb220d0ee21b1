"""Benchmark results as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """A row of the table."""

    what: str
    # Required value; empty for a figure that is only reported.
    bar: str
    measured: str
    # Value of the bare library in the same run.
    raw: str
    ratio: str
    # None: there is no bar.
    is_met: bool | None


HEAD = ("what", "bar", "measured", "raw", "ratio", "")
VERDICTS = {True: "pass", False: "FAIL", None: ""}


def table(figures: Sequence[Figure]) -> str:
    """Return the figures as a Markdown table."""
    return markdown([HEAD, *((*astuple(figure)[:-1], VERDICTS[figure.is_met]) for figure in figures)])


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as an aligned Markdown table; the first row is the header."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in rows
    ]
    return "\n".join([lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]])
