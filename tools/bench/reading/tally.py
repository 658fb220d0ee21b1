"""Tally of right, asked and wrong items of one reader."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class Tally:
    """Counts of one measure; ``wrong`` lists items for a person to look at."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def share(self, part: str, whole: str) -> float:
        """Return one count as a fraction of another; 0 if that is 0."""
        return self.counts[part] / self.counts[whole] if self.counts[whole] else 0.0
