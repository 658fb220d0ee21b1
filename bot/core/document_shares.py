"""Which documents a question is about, by its words that few of the found documents hold.

"Did the Panama pilot file a flight plan?" is about the report that says Panama, though the passage on flight
plans does not: what a document holds anywhere among its found passages counts for all of them.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from uuid import UUID

from bot.core.models import Passage


def document_shares(terms: Collection[str], passages: Iterable[Passage]) -> dict[UUID, float]:
    """Publication -> share (0-1) of the question's weight that its passages hold together.

    A term weighs by how few of the found publications hold it, so that what all of them say singles out none.
    """
    held: dict[UUID, set[str]] = {}
    for passage in passages:
        known = held.setdefault(passage.publication.id, set())
        known.update(term for term in terms if term in passage.terms)
    weights = {term: _rarity(term, held) for term in terms}
    total = sum(weights.values())
    return {
        id_: sum(weights[term] for term in known) / total if total else 0.0 for id_, known in held.items()
    }


def _rarity(term: str, held: Mapping[UUID, Collection[str]]) -> float:
    holders = sum(term in known for known in held.values())
    return max(math.log((len(held) + 1) / (holders + 0.5)), 0.0)
