"""Among passages of nearly equal relevance the newer document comes first.

score = (1 - w) * relevance + w * 2 ** (-age / half-life): a document's age counts from its effective
day, else from its last update. One that says neither keeps its relevance; a coming day counts as today.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date

from bot.core.editions import day_of
from bot.core.fusion import rank_order
from bot.core.models import Passage


@dataclass(frozen=True, slots=True)
class Recency:
    """How much age counts."""

    weight: float = 0.1
    """Share (0-1) of a score that is decided by age."""
    half_life_days: float = 730
    """Days after which it counts half."""

    def order(self, passages: Iterable[Passage], today: date) -> list[Passage]:
        """The passages with their new scores, best first."""
        return sorted((self._aged(passage, today) for passage in passages), key=rank_order)

    def _aged(self, passage: Passage, today: date) -> Passage:
        day = day_of(passage.publication)
        if day is None:
            return passage
        age = max((today - day).days, 0)
        freshness = 2 ** (-age / self.half_life_days)
        score = (1 - self.weight) * passage.score + self.weight * freshness
        return replace(passage, score=score, parts=(*passage.parts, ("freshness", freshness)))
