"""Persistent cache of vectors by embedder and text: no text is embedded twice, even after a crash.

Sentence vectors are numerous, so they are stored as int8 and only for as long as their reading may take. A
chunk of one sentence is embedded as both.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

import numpy as np
import numpy.typing as npt
from sqlalchemy import CursorResult, delete, select, tuple_, update
from sqlmodel import col

from storage.clock import utc_now
from storage.embeddings.base import Embedder, Vectors
from storage.embeddings.quantized_vectors import dequantize, quantize
from storage.sql.database import Database
from storage.sql.tables import CachedVectorRow

UNUSED_TTL = timedelta(days=30)
SENTENCE_TTL = timedelta(days=1)
# Resolution of ``used_at``: without it, every cache hit would be a write.
TOUCH_INTERVAL = timedelta(days=1)

# Bounds the transaction: after a month's holiday all of a home's vectors may have expired, and writers wait.
PRUNE_BATCH_SIZE = 5000

Vector = npt.NDArray[np.float32]


class VectorCache:
    """Stores vectors under their space and the hash of their text.

    A vector reveals something of its text, so it counts as document content. Vectors of erased documents
    expire like unused ones, 30 days after their last use.
    """

    def __init__(self, database: Database, *, of_sentences: bool = False) -> None:
        """Create the cache; ``of_sentences``: as int8, under a separate key, with a TTL of one day."""
        self._database = database
        self._of_sentences = of_sentences
        # Cached and embedded texts since this process started.
        self.hits = self.misses = 0

    async def embed(self, embedder: Embedder, texts: Sequence[str]) -> Vectors:
        """Return the vectors of at least one text, as ``Embedder.aembed``; new ones are stored at once.

        Raises:
            EmbedderUnavailable: the endpoint failed.
            DatabaseUnavailable: the database failed.
        """
        hashes = [hashlib.blake2b(text.encode(), digest_size=16).hexdigest() for text in texts]
        vectors = await self._find(embedder, set(hashes))
        missing = {key: text for key, text in zip(hashes, texts, strict=True) if key not in vectors}
        self.hits += len(vectors)
        self.misses += len(missing)
        if missing:
            made = dict(zip(missing, await embedder.aembed(list(missing.values())), strict=True))
            await self._store(self._space_key(embedder), made)
            vectors |= made
        return np.stack([vectors[key] for key in hashes])

    async def prune(self) -> int:
        """Delete one batch of vectors that were not used for 30 days; return their number."""
        key = col(CachedVectorRow.space), col(CachedVectorRow.text_hash)
        is_unused = col(CachedVectorRow.used_at) < utc_now() - UNUSED_TTL
        some = select(*key).where(is_unused).limit(PRUNE_BATCH_SIZE)
        unused = delete(CachedVectorRow).where(tuple_(*key).in_(some))
        async with self._database.transaction() as session:
            done = await session.execute(unused)
            return done.rowcount if isinstance(done, CursorResult) else 0

    def _space_key(self, embedder: Embedder) -> str:
        """Return the value of the ``space`` column."""
        return f"{embedder.space}/sentences" if self._of_sentences else embedder.space

    def _decode(self, data: bytes) -> Vector:
        if not self._of_sentences:
            return np.frombuffer(data, "<f4")
        unit: Vector = dequantize(np.frombuffer(data, np.int8)[np.newaxis])[0]
        return unit

    async def _find(self, embedder: Embedder, hashes: Collection[str]) -> dict[str, Vector]:
        """Return the cached vectors; one of another length than the embedder's is a miss."""
        space_key, key = self._space_key(embedder), col(CachedVectorRow.text_hash)
        query = select(key, col(CachedVectorRow.vector), col(CachedVectorRow.used_at)).where(
            col(CachedVectorRow.space) == space_key, key.in_(hashes)
        )
        async with self._database.snapshot() as session:
            rows = (await session.execute(query)).all()
        if any(used_at < self._now() - TOUCH_INTERVAL for _, _, used_at in rows):
            used = update(CachedVectorRow).where(col(CachedVectorRow.space) == space_key, key.in_(hashes))
            async with self._database.transaction() as session:
                await session.execute(used.values(used_at=self._now()))
        found = {text_hash: self._decode(vector) for text_hash, vector, _ in rows}
        return {key: vector for key, vector in found.items() if vector.size == embedder.dimensions}

    def _now(self) -> datetime:
        """Return the ``used_at`` of a use; backdated for sentences, so that one of the 30 days remains."""
        return utc_now() - (UNUSED_TTL - SENTENCE_TTL if self._of_sentences else timedelta())

    async def _store(self, space_key: str, vectors: dict[str, Vector]) -> None:
        """Replace vectors that another worker, or another model of this name, may have stored."""
        older = delete(CachedVectorRow).where(
            col(CachedVectorRow.space) == space_key, col(CachedVectorRow.text_hash).in_(vectors)
        )
        used_at = self._now()
        async with self._database.transaction() as session:
            await session.execute(older)
            for key, vector in vectors.items():
                kept = quantize(vector[np.newaxis]) if self._of_sentences else vector.astype("<f4")
                row = CachedVectorRow(space=space_key, text_hash=key, vector=kept.tobytes(), used_at=used_at)
                session.add(row)
