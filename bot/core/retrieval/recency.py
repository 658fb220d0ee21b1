"""Among passages of nearly equal relevance the newer document comes first.

score = (1 - w) * relevance + w * 2 ** (-age / half-life): a document's age counts from its effective day,
else from its last update. One that says neither keeps its relevance; a coming day counts as today.

Of several editions of one procedure in a channel, the newest one in force keeps its score, the others lose.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date
from itertools import permutations
from uuid import UUID

from bot.core.models import Passage
from bot.core.retrieval.fusion import rank_order
from storage.models import LivePublication
from storage.text.analyzer import fold

_Age = tuple[int, ...]


def outdated(publications: Iterable[LivePublication], today: date) -> frozenset[UUID]:
    """The publications whose procedure another one of these documents describes as it is now.

    Editions are told by their SOP id and organisation. Days decide, the effective one before that of the
    last update; where an edition has none, version numbers do, part by part. What is effective only in
    the future gives way to what is in force; what cannot be compared is left alone.
    """
    editions: dict[tuple[str, str], list[LivePublication]] = {}
    for one in publications:
        if sop_id := _said(one, "sop_id"):
            editions.setdefault((_key(sop_id), _key(_said(one, "organisation"))), []).append(one)
    groups = (group for group in editions.values() if len(group) > 1)
    pairs = (pair for group in groups for pair in permutations(group, 2))
    return frozenset(one.id for one, other in pairs if _is_newer(other, one, today))


def _is_newer(other: LivePublication, one: LivePublication, today: date) -> bool:
    """Whether ``other`` replaces ``one``."""
    if other.document_id == one.document_id:
        return False
    is_coming, is_other_coming = _is_coming(one, today), _is_coming(other, today)
    if is_coming != is_other_coming:
        return is_coming
    days = day_of(one), day_of(other)
    if days[0] and days[1]:
        return days[1] > days[0]
    versions = _version(one), _version(other)
    return bool(versions[0] and versions[1] and versions[1] > versions[0])


def _is_coming(one: LivePublication, today: date) -> bool:
    effective = one.metadata.get("effective")
    return effective is not None and effective.day is not None and effective.day > today.isoformat()


def day_of(one: LivePublication) -> date | None:
    """The day it is effective from, else that of its last update; None when it says neither."""
    fields = (one.metadata.get(name) for name in ("effective", "last_updated"))
    return next((date.fromisoformat(field.day) for field in fields if field and field.day), None)


def _version(one: LivePublication) -> _Age:
    """1.10 is newer than 1.9, and 03 is 3."""
    return tuple(int(part) for part in re.findall(r"\d+", _said(one, "version")))


def _said(one: LivePublication, name: str) -> str:
    field = one.metadata.get(name)
    return field.value if field else ""


def _key(text: str) -> str:
    return fold(text).casefold().strip()


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
