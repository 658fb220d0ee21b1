"""What a reader has seen in a PDF, in one form for all of them, and how texts are compared."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

# A table, row by row; None where a merged cell of a label goes on.
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
        """Share of the page that it fills."""
        return max(0.0, self.x1 - self.x0) * max(0.0, self.y1 - self.y0)

    def shared(self, other: Area) -> float:
        """Share of the page that lies in both."""
        return Area(
            max(self.x0, other.x0), max(self.y0, other.y0), min(self.x1, other.x1), min(self.y1, other.y1)
        ).size

    def likeness(self, other: Area) -> float:
        """Intersection over union."""
        shared = self.shared(other)
        whole = self.size + other.size - shared
        return shared / whole if whole else 0.0

    def covers(self, x: float, y: float) -> bool:
        """True if a point lies in it."""
        return self.x0 <= x <= self.x1 and self.y0 <= y <= self.y1


@dataclass(frozen=True, slots=True)
class Seen:
    """What a reader has seen in one PDF; pages count from 1."""

    headings: Sequence[tuple[int, str]] = ()
    tables: Mapping[int, Sequence[Rows]] = field(default_factory=dict)
    # In reading order.
    text: Mapping[int, str] = field(default_factory=dict)
    figures: Mapping[int, Sequence[Area]] = field(default_factory=dict)

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Seen:
        """From JSON, where pages are texts and everything else is a list."""
        return cls(
            [(page, text) for page, text in plain["headings"]],
            {int(page): tables for page, tables in plain["tables"].items()},
            {int(page): text for page, text in plain["text"].items()},
            {int(page): [Area(*box) for box in boxes] for page, boxes in plain["figures"].items()},
        )


@dataclass(frozen=True, slots=True)
class Readout:
    """What a reader has seen in all of them, and what that took."""

    # File, as the labels name it, -> what was seen.
    seen: Mapping[str, Seen]
    pages: int
    # CPU seconds, without the start of the program.
    seconds: float


def normalised(text: str) -> str:
    """As texts are compared: compatible characters are one, so are cases, quotes and any white space."""
    whole = unicodedata.normalize("NFKC", _TORN.sub("", text)).translate(_QUOTES)
    return " ".join(whole.casefold().split())


def squeezed(text: str) -> str:
    """Return the same without any white space: where words part is not what is compared."""
    return normalised(text).replace(" ", "")
