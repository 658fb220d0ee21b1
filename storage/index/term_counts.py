"""Remembered answers to "how many chunks hold this term": Weaviate has to count them one by one."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from storage.models import TenantName

CACHE_SIZE = 50_000
DRIFT = 0.02
"""Share by which a tenant may grow or shrink before its counts are taken again; idf hardly moves."""


class TermCounts:
    """Chunks per term and tenant, each with the size of the tenant when it was counted."""

    def __init__(self) -> None:
        self._counts: dict[tuple[TenantName, str], tuple[int, int]] = {}

    def fresh(self, tenant: TenantName, terms: Collection[str], chunks: int) -> dict[str, int]:
        """The counts that still hold for a tenant that now has ``chunks`` chunks."""
        kept = {term: self._counts.get((tenant, term)) for term in terms}
        return {term: one[1] for term, one in kept.items() if one and abs(one[0] - chunks) <= DRIFT * chunks}

    def keep(self, tenant: TenantName, chunks: int, counted: Mapping[str, int]) -> None:
        """Remember what was counted when the tenant held ``chunks`` chunks."""
        if len(self._counts) > CACHE_SIZE:
            self._counts.clear()
        self._counts.update({(tenant, term): (chunks, count) for term, count in counted.items()})
