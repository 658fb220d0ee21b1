"""What was right, what was asked for, and what went wrong, of one reader."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class Tally:
    """Counts of one measure; ``wrong`` says in a line each what a person would want to look at."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def share(self, part: str, whole: str) -> float:
        """One count as a share of another; of nothing it is 0."""
        return self.counts[part] / self.counts[whole] if self.counts[whole] else 0.0
