"""What the benchmarks measured, as one table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """One row of the table."""

    what: str
    # What is asked for; empty for a figure that is only reported.
    bar: str
    measured: str
    # The bare library, measured in the same run.
    raw: str
    ratio: str
    # None: nothing is asked for.
    is_met: bool | None


HEAD = ("what", "bar", "measured", "raw", "ratio", "")
VERDICTS = {True: "pass", False: "FAIL", None: ""}


def table(figures: Sequence[Figure]) -> str:
    """Return the figures as lines of a Markdown table."""
    return markdown([HEAD, *((*astuple(figure)[:-1], VERDICTS[figure.is_met]) for figure in figures)])


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """Rows as a Markdown table whose columns line up; the first is its head."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in rows
    ]
    return "\n".join([lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]])
