"""Cache of document frequencies of a tenant's file, valid until the file changes.

FTS5 counts a term by visiting every chunk that contains it, and people ask about the same things.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Collection

from storage.index.embedded import tenant_rows
from storage.index.embedded.vector_matrix import TenantFileState
from storage.lru_cache import LRUCache

# Tenants in the LRU cache.
CACHE_SIZE = 64
# Terms per tenant.
TERM_CACHE_SIZE = 5000


class DocumentFrequencyCache:
    """Document frequencies per process. Several processes share a file, so each lookup compares its state."""

    def __init__(self) -> None:
        self._known: LRUCache[str, tuple[TenantFileState, dict[str, int]]] = LRUCache(CACHE_SIZE)
        self._lock = threading.Lock()

    def document_frequencies(
        self, tenant: str, connection: sqlite3.Connection, terms: Collection[str]
    ) -> tuple[int, dict[str, int]]:
        """Return (number of chunks in the tenant, chunks per term), within the caller's transaction."""
        state = tenant_rows.read_state(connection)
        with self._lock:
            kept_state, kept = self._known.get(tenant, (state, {}))
        known = {term: kept[term] for term in terms if term in kept} if kept_state == state else {}
        missing = [term for term in dict.fromkeys(terms) if term not in known]
        chunks, counted = tenant_rows.document_frequencies(connection, missing)
        counts = known | counted
        with self._lock:
            kept_state, kept = self._known.get(tenant, (state, {}))
            is_usable = kept_state == state and len(kept) < TERM_CACHE_SIZE
            self._known[tenant] = (state, kept | counts if is_usable else counts)
        return chunks, counts
