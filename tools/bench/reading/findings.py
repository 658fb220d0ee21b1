"""Findings: a common form for what readers find in a PDF, and text normalisation."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

# Rows of a table; None continues a merged label.
Rows = Sequence[Sequence[str | None]]

_TORN = re.compile(r"(?<=[^\W\d_])[-\u00ad]\s+(?=[^\W\d_])")
_QUOTES = str.maketrans("’‘“”", "''\"\"")


class Area(NamedTuple):
    """A rectangle as fractions (0-1) of the displayed page, origin top left."""

    x0: float
    y0: float
    x1: float
    y1: float

    @property
    def size(self) -> float:
        """Fraction of the page that it fills."""
        return max(0.0, self.x1 - self.x0) * max(0.0, self.y1 - self.y0)

    def shared(self, other: Area) -> float:
        """Return the fraction of the page that is in both."""
        return Area(
            max(self.x0, other.x0), max(self.y0, other.y0), min(self.x1, other.x1), min(self.y1, other.y1)
        ).size

    def iou(self, other: Area) -> float:
        """Return the intersection over union (IoU)."""
        shared = self.shared(other)
        whole = self.size + other.size - shared
        return shared / whole if whole else 0.0

    def covers(self, x: float, y: float) -> bool:
        """True if it contains a point."""
        return self.x0 <= x <= self.x1 and self.y0 <= y <= self.y1


@dataclass(frozen=True, slots=True)
class Findings:
    """Findings of a reader in one PDF; pages are 1-based."""

    headings: Sequence[tuple[int, str]] = ()
    tables: Mapping[int, Sequence[Rows]] = field(default_factory=dict)
    # By page, in reading order.
    text: Mapping[int, str] = field(default_factory=dict)
    figures: Mapping[int, Sequence[Area]] = field(default_factory=dict)

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Findings:
        """Return findings from JSON, where page numbers are strings and all else lists."""
        return cls(
            [(page, text) for page, text in plain["headings"]],
            {int(page): tables for page, tables in plain["tables"].items()},
            {int(page): text for page, text in plain["text"].items()},
            {int(page): [Area(*box) for box in boxes] for page, boxes in plain["figures"].items()},
        )


@dataclass(frozen=True, slots=True)
class Readout:
    """Findings of a reader in all files, and the effort."""

    # File, as in the labels -> findings.
    seen: Mapping[str, Findings]
    pages: int
    # CPU seconds without start-up.
    seconds: float


def normalised(text: str) -> str:
    """Return a text normalised for comparison: Unicode form, case, quotes, hyphenation, white space."""
    whole = unicodedata.normalize("NFKC", _TORN.sub("", text)).translate(_QUOTES)
    return " ".join(whole.casefold().split())


def squeezed(text: str) -> str:
    """Return a normalised text without white space, so that word boundaries do not count."""
    return normalised(text).replace(" ", "")
