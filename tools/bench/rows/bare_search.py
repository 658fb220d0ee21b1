"""Lower bound for the cost of a question: its embedding, and one query of the bare engine."""

from __future__ import annotations

import sqlite3
from typing import Protocol

import numpy as np

from storage.index.weaviate.collection import SHOWN
from storage.index.weaviate.index import WeaviateIndex
from storage.models import Channel
from storage.text.analyzer import analyze
from tools.bench.rows.bench_home import BenchHome

LIMIT = 24
WORDS_WEIGHT = 0.6
_FOUND = """
    SELECT found.rowid, found.rank, chunk.text FROM (
        SELECT rowid, rank FROM words WHERE words MATCH ? ORDER BY rank LIMIT ?
    ) AS found JOIN chunk ON chunk.id = found.rowid
"""


class BareSearch(Protocol):
    """A search engine without our code."""

    async def search(self, question: str) -> int:
        """Embed the question, fetch the texts of the best chunks, and return their number."""


class BareFts5:
    """SQLite FTS5's BM25 and a matrix product, on the tenant's file of the embedded index."""

    def __init__(self, home: BenchHome, channel: Channel) -> None:
        file = home.path / "index" / f"{channel.tenant}.sqlite3"
        self._sql = sqlite3.connect(f"file:{file}?mode=ro", uri=True)
        rows = self._sql.execute("SELECT id, vector FROM chunk WHERE vector IS NOT NULL").fetchall()
        self._ids = [row[0] for row in rows]
        self._vectors = np.array([np.frombuffer(row[1], np.float32) for row in rows])
        self._embedder = home.embedder

    async def search(self, question: str) -> int:
        """Run two queries on open connections, without rank fusion."""
        vector = (await self._embedder.aembed([question]))[0]
        query = " OR ".join(f'"{term}"' for term in analyze(question))
        words = self._sql.execute(_FOUND, (query, LIMIT)).fetchall()
        best = np.argpartition(-(self._vectors @ vector), LIMIT)[:LIMIT]
        ids = ",".join(str(self._ids[row]) for row in best)
        near = self._sql.execute(f"SELECT id, text FROM chunk WHERE id IN ({ids})").fetchall()  # noqa: S608 - numbers
        return len(words) + len(near)


class BareWeaviate:
    """Weaviate's hybrid query with its own client."""

    def __init__(self, home: BenchHome, channel: Channel) -> None:
        assert isinstance(home.index, WeaviateIndex)
        self._shard = home.index._collection.with_tenant(channel.tenant)
        self._vector_name = home.embedder.space
        self._embedder = home.embedder

    async def search(self, question: str) -> int:
        """Run one hybrid query."""
        vector = (await self._embedder.aembed([question]))[0]
        found = await self._shard.query.hybrid(
            " ".join(analyze(question)),
            query_properties=["terms"],
            vector=vector.tolist(),
            target_vector=self._vector_name,
            alpha=1 - WORDS_WEIGHT,
            limit=LIMIT,
            return_properties=SHOWN,
        )
        return len(found.objects)


def bare_search(home: BenchHome, channel: Channel) -> BareSearch:
    """Return the bare engine for a home."""
    is_weaviate = isinstance(home.index, WeaviateIndex)
    return BareWeaviate(home, channel) if is_weaviate else BareFts5(home, channel)
