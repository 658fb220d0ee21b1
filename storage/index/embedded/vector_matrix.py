"""In-memory vectors of a tenant: one matrix per space and process, synchronised with the tenant's file.

Several processes share a file, so every search compares the file's state with that of the matrix: new rows
are appended, after a removal the matrix is reloaded.
"""

from __future__ import annotations

import sqlite3
import threading
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from storage.lru_cache import LRUCache

# Matrices in the LRU cache; 10,000 vectors of 384 numbers take 15 MB.
CACHE_SIZE = 64


class TenantFileState(NamedTuple):
    """Version of the vectors in a tenant's file."""

    # Random number of the file: changes if a tenant is dropped and created again.
    file: int
    removals: int
    last_id: int


@dataclass(frozen=True, slots=True)
class VectorMatrix:
    """L2-normalised vectors and the ids of their chunks, in ascending order."""

    state: TenantFileState
    ids: NDArray[np.int64]
    vectors: NDArray[np.float32]

    def nearest(
        self, vector: NDArray[np.float32], allowed: NDArray[np.int64] | None, limit: int
    ) -> list[tuple[int, float]]:
        """Return (chunk id, cosine) of the nearest chunks among ``allowed``, nearest first."""
        if not self.ids.size:
            return []
        scores = self.vectors @ vector
        rows = np.arange(self.ids.size) if allowed is None else np.flatnonzero(np.isin(self.ids, allowed))
        if rows.size > limit:
            rows = rows[np.argpartition(-scores[rows], limit - 1)[:limit]]
        rows = rows[np.lexsort((self.ids[rows], -scores[rows]))]
        return [(int(self.ids[row]), float(scores[row])) for row in rows]


class VectorMatrixCache:
    """LRU cache of the matrices of this process."""

    def __init__(self) -> None:
        self._matrices: LRUCache[tuple[str, str], VectorMatrix] = LRUCache(CACHE_SIZE)
        self._lock = threading.Lock()

    def get(
        self, tenant: str, space: str, connection: sqlite3.Connection, state: TenantFileState
    ) -> VectorMatrix:
        """Return a space's matrix for ``state``, loading rows within the caller's transaction."""
        key = (tenant, space)
        with self._lock:
            known = self._matrices.get(key)
        if known is None or known.state != state:
            known = _refresh(known, connection, space, state)
        with self._lock:
            self._matrices[key] = known
        return known


def _refresh(
    known: VectorMatrix | None, connection: sqlite3.Connection, space: str, state: TenantFileState
) -> VectorMatrix:
    """Append the rows added since ``known``; reload everything after a removal."""
    if known is None or known.state[:2] != state[:2] or known.state.last_id > state.last_id:
        ids, vectors = _load(connection, space, 0)
        return VectorMatrix(state, ids, vectors)
    ids, vectors = _load(connection, space, known.state.last_id)
    if not ids.size:
        return VectorMatrix(state, known.ids, known.vectors)
    if not known.ids.size:
        return VectorMatrix(state, ids, vectors)
    return VectorMatrix(state, np.concatenate((known.ids, ids)), np.concatenate((known.vectors, vectors)))


def _load(
    connection: sqlite3.Connection, space: str, after: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    rows = connection.execute(
        "SELECT id, vector FROM chunk WHERE id > ? AND vector IS NOT NULL AND space = ? ORDER BY id",
        (after, space),
    ).fetchall()
    ids = np.fromiter((row[0] for row in rows), dtype=np.int64, count=len(rows))
    vectors = np.frombuffer(b"".join(row[1] for row in rows), dtype=np.float32)
    return ids, vectors.reshape(len(rows), -1) if rows else vectors.reshape(0, 0)
