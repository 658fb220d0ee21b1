"""Vectors that were made before, by embedder and text: no text is embedded twice, a kill loses none.

Those of sentences are many: they take a byte a number, and are kept only for as long as their reading may
take to be made; a chunk of one sentence is embedded as both.
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

KEPT_UNUSED = timedelta(days=30)
SENTENCES_KEPT = timedelta(days=1)
# A use is written down at most so often: else every question to the cache would be a write.
TOUCHED_EVERY = timedelta(days=1)

# After a month's holiday all of a home's may have come to their end, and writers wait for a deletion.
PRUNE_BATCH_SIZE = 5000

Vector = npt.NDArray[np.float32]


class VectorCache:
    """Keeps each vector under its space and the hash of its text.

    A vector reveals something of its text, so it counts as document content: those of erased documents
    are erased as unused ones are, 30 days after their last use.
    """

    def __init__(self, database: Database, *, of_sentences: bool = False) -> None:
        """``of_sentences``: keep them in a byte a number, apart from the others, for a day."""
        self._database = database
        self._of_sentences = of_sentences
        # Texts whose vectors were kept, and those that were embedded, since this process began.
        self.hits = self.misses = 0

    async def embed(self, embedder: Embedder, texts: Sequence[str]) -> Vectors:
        """Vectors of ``texts``, at least one, as ``Embedder.aembed``; what is new is kept at once.

        Raises:
            EmbedderUnavailable: the embedder's own machine fails.
            DatabaseUnavailable: the database does.
        """
        hashes = [hashlib.blake2b(text.encode(), digest_size=16).hexdigest() for text in texts]
        vectors = await self._find(embedder, set(hashes))
        missing = {key: text for key, text in zip(hashes, texts, strict=True) if key not in vectors}
        self.hits += len(vectors)
        self.misses += len(missing)
        if missing:
            made = dict(zip(missing, await embedder.aembed(list(missing.values())), strict=True))
            await self._keep(self._space_key(embedder), made)
            vectors |= made
        return np.stack([vectors[key] for key in hashes])

    async def prune(self) -> int:
        """Erase some of what nobody has used for 30 days; returns how many vectors that were."""
        key = col(CachedVectorRow.space), col(CachedVectorRow.text_hash)
        is_unused = col(CachedVectorRow.used_at) < utc_now() - KEPT_UNUSED
        some = select(*key).where(is_unused).limit(PRUNE_BATCH_SIZE)
        unused = delete(CachedVectorRow).where(tuple_(*key).in_(some))
        async with self._database.transaction() as session:
            done = await session.execute(unused)
            return done.rowcount if isinstance(done, CursorResult) else 0

    def _space_key(self, embedder: Embedder) -> str:
        """What stands for the space in the table."""
        return f"{embedder.space}/sentences" if self._of_sentences else embedder.space

    def _packed(self, vector: Vector) -> bytes:
        return (
            quantize(vector[np.newaxis]).tobytes() if self._of_sentences else vector.astype("<f4").tobytes()
        )

    def _unpacked(self, data: bytes) -> Vector:
        if not self._of_sentences:
            return np.frombuffer(data, "<f4")
        unit: Vector = dequantize(np.frombuffer(data, np.int8)[np.newaxis])[0]
        return unit

    async def _find(self, embedder: Embedder, hashes: Collection[str]) -> dict[str, Vector]:
        """Those that are kept; what has another length than the embedder's is none of its vectors."""
        space_key, key = self._space_key(embedder), col(CachedVectorRow.text_hash)
        query = select(key, col(CachedVectorRow.vector), col(CachedVectorRow.used_at)).where(
            col(CachedVectorRow.space) == space_key, key.in_(hashes)
        )
        async with self._database.snapshot() as session:
            rows = (await session.execute(query)).all()
        if any(used_at < self._now() - TOUCHED_EVERY for _, _, used_at in rows):
            used = update(CachedVectorRow).where(col(CachedVectorRow.space) == space_key, key.in_(hashes))
            async with self._database.transaction() as session:
                await session.execute(used.values(used_at=self._now()))
        found = {text_hash: self._unpacked(vector) for text_hash, vector, _ in rows}
        return {key: vector for key, vector in found.items() if vector.size == embedder.dimensions}

    def _now(self) -> datetime:
        """What a use is dated: that of a sentence so far back that a day remains of the 30."""
        return utc_now() - (KEPT_UNUSED - SENTENCES_KEPT if self._of_sentences else timedelta())

    async def _keep(self, space_key: str, vectors: dict[str, Vector]) -> None:
        """Keep new ones in the place of any that another worker, or another model, made meanwhile."""
        older = delete(CachedVectorRow).where(
            col(CachedVectorRow.space) == space_key, col(CachedVectorRow.text_hash).in_(vectors)
        )
        used_at = self._now()
        async with self._database.transaction() as session:
            await session.execute(older)
            session.add_all(
                CachedVectorRow(space=space_key, text_hash=key, vector=self._packed(vector), used_at=used_at)
                for key, vector in vectors.items()
            )
